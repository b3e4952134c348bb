"""What all long work begins with: where it is stored, the head of its run, and its seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from wulf import __version__
from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION, FactValue, Operation
from wulf.base.store.files import timestamp
from wulf.base.store.runs import checked_name
from wulf.node.cluster import inventory


def new_seed(seed: int | None = None) -> int:
    """Return the seed that the user has chosen, or a new one."""
    return random.SystemRandom().getrandbits(32) if seed is None else seed


def new_run(name: Path | str | None, runs: Path) -> Path:
    """Return the directory of a run that is begun now, of a name among `runs`.

    Raises
    ------
    UsageError
        The name cannot be one, or there is a run of this name.
    """
    path = runs / (
        checked_name(str(name))
        if name is not None
        else datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    )
    if path.exists():
        raise UsageError(f"{path} exists already: choose another name, or go on with --resume")
    return path


def place_of(path: Path | str | None, runs: Path) -> Path:
    """Return the directory of a new run: of a name among `runs`, or of a path.

    Raises
    ------
    UsageError
        The name cannot be one, or there is a run of this name.
    """
    if isinstance(path, Path) or (path is not None and "/" in path):
        return new_run(Path(path).name, Path(path).parent)
    return new_run(path, runs)


def head(
    name: str,
    config: inventory.ClusterConfig,
    operations: Sequence[Operation],
    software: Mapping[str, FactValue],
) -> dict[str, Any]:
    """Return the fields of `wulf.base.records.RunHead` for a run that is begun now."""
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
