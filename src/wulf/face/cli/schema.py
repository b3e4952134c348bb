"""``wulf config schema``: the JSON Schema of what wulf prints with ``--json``, and of the files of a run."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from wulf import __version__
from wulf.base.errors import UsageError
from wulf.base.text import nearest, printable
from wulf.face.cli import complete
from wulf.face.cli.options import show_table


def _names(incomplete: str) -> list[str]:
    """Offer the names of all schemas."""
    from wulf.face.cli.outputs import OUTPUTS

    return complete.one_of(OUTPUTS)(incomplete)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Which one. Default: list them.",
            autocompletion=_names,
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write all of them into this directory: NAME.json.")
    ] = None,
) -> None:
    """Print the JSON Schema (2020-12) of what a command prints with --json, or of a file of a run.

    'wulf audit --json | check-jsonschema --schemafile <(wulf config schema audit) -' is how other programs check it.
    """
    from rich.table import Table

    from wulf.base.store import write_atomically
    from wulf.face.cli.outputs import OUTPUTS

    if to is not None:
        to.mkdir(parents=True, exist_ok=True)
        for one in OUTPUTS if name is None else [name]:
            write_atomically(to / f"{one}.json", text_of(one).encode())
            sys.stdout.write(f"written: {to / one}.json\n")
    elif name is None:
        table = Table("name", "what has it", box=None, pad_edge=False)
        for one, output in OUTPUTS.items():
            table.add_row(one, output.where)
        show_table(table)
    else:
        sys.stdout.write(text_of(name))


def text_of(name: str) -> str:
    """Return a schema as text; raise UsageError where there is none of this name."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=2).decode() + "\n"


def schema_of(name: str) -> dict[str, Any]:
    """Return the schema of an output, with what each field is.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    import msgspec

    from wulf.face.cli.outputs import OUTPUTS

    if name not in OUTPUTS:
        raise UsageError(
            f"there is no schema {printable(name, 60)!r}{nearest(name, OUTPUTS)} ('wulf config schema' lists them)"
        )
    output = OUTPUTS[name]
    (root,), parts = msgspec.json.schema_components([output.type], ref_template="#/$defs/{name}")
    structs = _structs(output.type)
    for part, schema in parts.items():
        _describe(schema, structs.get(part))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:wulf:{__version__}:{name}",
        "title": name,
        "description": output.where,
        **root,
        "$defs": parts,
    }


def comments(kind: type) -> dict[str, str]:
    """Field → its ``#:`` comment in the source, of the records that it extends, too."""
    result: dict[str, str] = {}
    collected: list[str] = []
    extended = [base for base in reversed(kind.__mro__) if base.__module__.startswith("wulf.")]
    for line in (line for base in extended for line in inspect.getsource(base).splitlines()):
        text = line.strip()
        if text.startswith("#:"):
            collected.append(text.removeprefix("#:").strip())
        elif ":" in text and collected:
            result[text.partition(":")[0]] = " ".join(collected)
            collected = []
    return result


def _describe(schema: dict[str, Any], kind: type | None) -> None:
    """Add to the fields of a record what they are."""
    import msgspec

    if kind is None:
        return
    said = comments(kind)
    for field in msgspec.structs.fields(kind):
        found = schema.get("properties", {}).get(field.encode_name)
        if found is not None and field.name in said:
            found["description"] = said[field.name]


def _structs(kind: Any, found: dict[str, type] | None = None) -> dict[str, type]:
    """Return all records that a type is made of, by their names."""
    import msgspec

    found = {} if found is None else found
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind.__name__ not in found:
            found[kind.__name__] = kind
            for field in msgspec.structs.fields(kind):
                _structs(field.type, found)
        return found
    for argument in get_args(kind):
        _structs(argument, found)
    return found
