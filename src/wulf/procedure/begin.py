"""What all long work begins with: where it is stored, the head of its run, and its seed."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from wulf import __version__
from wulf.cluster import inventory
from wulf.errors import UsageError
from wulf.records import SCHEMA_VERSION, FactValue, Operation
from wulf.store.files import timestamp
from wulf.text import printable

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


def new_seed(seed: int | None = None) -> int:
    """Return the seed that the user has chosen, or a new one."""
    return random.SystemRandom().getrandbits(32) if seed is None else seed


def new_run(name: str | None, runs: Path) -> Path:
    """Return the directory of a run that is begun now.

    Raises
    ------
    UsageError
        The name cannot be one, or there is a run of this name.
    """
    if name is not None and (not _RUN_NAME.fullmatch(name) or name == "latest"):
        raise UsageError(
            f"{printable(name, 80)!r} cannot be the name of a run: letters, digits, '.', '_' and '-', "
            "beginning with a letter or a digit, and not 'latest' (--runs chooses the directory)"
        )
    path = runs / (name or datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S"))
    if path.exists():
        raise UsageError(f"{path} exists already: choose another name, or go on with --resume")
    return path


def head(
    name: str,
    config: inventory.ClusterConfig,
    operations: Sequence[Operation],
    software: Mapping[str, FactValue],
) -> dict[str, Any]:
    """Return the fields of `wulf.records.RunHead` for a run that is begun now."""
    now = timestamp()
    return {
        "schema_version": SCHEMA_VERSION,
        "id": name,
        "created_at": now,
        "updated_at": now,
        "status": "running",
        "wulf_version": __version__,
        "command_line": sys.argv,
        "operations": list(operations),
        "cluster": inventory.render(config),
        "software": dict(software),
    }
