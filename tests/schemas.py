"""Whatever a test lets the program print with ``--json`` must be as the published schema says."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import jsonschema

from wulf.face.cli.outputs import OUTPUTS
from wulf.face.cli.schema import schema_of


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def names_for(words: Sequence[str]) -> list[str]:
    """Return the outputs that a command may print: one for `report` of each kind of run."""
    plain = [word for word in words if not word.startswith("-")]
    for length in (3, 2, 1):
        verb = " ".join(["wulf", *plain[:length]])
        found = [
            name
            for name, output in OUTPUTS.items()
            if any(place.partition(" --")[0] == verb for place in output.where.split(", "))
        ]
        if found and len(plain) >= length:
            return found
    return []


def require_published(words: Sequence[str], code: int | None, out: str) -> None:
    """Fail where a command has printed JSON that no schema of it has."""
    if "--json" not in words or code not in (0, 3) or not out.strip():
        return
    names = names_for(words)
    assert names, f"wulf {' '.join(words)}: wulf.face.cli.outputs has no output of it"
    value = json.loads(out)
    faults = {name: next(validator(name).iter_errors(value), None) for name in names}
    first = next(iter(faults.values()))
    assert None in faults.values(), f"{names}: {first.message[:500]} at {first.json_path}" if first else ""
