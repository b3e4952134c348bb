"""The kinds of runs: what makes a directory one of each, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from wulf.base.errors import StoreError
from wulf.base.store.files import has
from wulf.base.store.hpl import HEAD as HPL
from wulf.base.store.hpl import load_hpl
from wulf.base.store.runs import MANIFEST, find_run, list_runs, load
from wulf.base.store.tuning import HEAD as TUNING
from wulf.base.store.tuning import load_tuning


class Kind(NamedTuple):
    """A kind of runs."""

    name: str
    #: The file that makes a directory a run of it.
    head: str
    load: Callable[[Path], Any]


KINDS = (
    Kind("measurement", MANIFEST, load),
    Kind("tuning", TUNING, load_tuning),
    Kind("hpl", HPL, load_hpl),
)


def kind_of(path: Path) -> Kind:
    """Return what kind of run a directory is.

    Raises
    ------
    StoreError
        It is none.
    """
    for kind in KINDS:
        if has(path, kind.head):
            return kind
    raise StoreError(
        f"{path} is not a run directory: it has none of {', '.join(kind.head for kind in KINDS)}"
    )


def find_any(name: str, root: Path) -> Path:
    """Return the run of any kind that a user names, as `wulf.base.store.find_run` does."""
    return find_run(name, root, *(kind.head for kind in KINDS))


def list_any(root: Path) -> list[tuple[Kind, Path]]:
    """Return all runs under `root`, those of a kind with the newest last."""
    return [(kind, path) for kind in KINDS for path in list_runs(root, kind.head)]
