"""The kinds of runs: what makes a directory one of each, and what can be done with it.

A kind is declared as ``RUNS`` by the package of its tool, as its ``TOOL`` is; nothing else names it.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

from wulf.base.errors import StoreError
from wulf.base.store.files import has
from wulf.base.store.runs import MANIFEST, Run, list_runs, load, unreadable_runs, written
from wulf.base.text import count, nearest, printable
from wulf.base.tool import RunKind

#: Where a run that several tools show is declared, beside the tools.
_COMPOSED = "wulf.compose"


@cache
def kinds() -> tuple[RunKind, ...]:
    """Return all kinds, by name."""
    tools = import_module("wulf.tools")
    names = [_COMPOSED, *(f"wulf.tools.{found.name}" for found in pkgutil.iter_modules(tools.__path__))]
    found = [module.RUNS for module in map(import_module, names) if hasattr(module, "RUNS")]
    return tuple(sorted(found, key=lambda kind: kind.name))


def kind_of(path: Path) -> RunKind:
    """Return what kind of run a directory is.

    Raises
    ------
    StoreError
        It is none.
    """
    for kind in kinds():
        if has(path, kind.head):
            return kind
    raise StoreError(
        f"{path} is not a run directory: it has none of {', '.join(kind.head for kind in kinds())}"
    )


def find_any(name: str, root: Path) -> Path:
    """Return the run of any kind that a user names, as `find_run` does."""
    return find_run(name, root, *(kind.head for kind in kinds()))


def list_any(root: Path) -> list[tuple[RunKind, Path]]:
    """Return all runs under `root`, those of a kind with the newest last."""
    return [(kind, path) for kind in kinds() for path in list_runs(root, kind.head)]


def find_run(name: str, root: Path, *heads: str) -> Path:
    """Resolve what a user calls a run: a path, a name under `root`, a unique beginning, or ``latest``.

    Parameters
    ----------
    heads
        The files that make a directory a run of the kinds wanted; measured runs by default.
    """
    heads = heads or (MANIFEST,)
    if any(has(Path(name), head) for head in heads):
        return Path(name)
    found = {run: written(run / head) for head in heads for run in list_runs(root, head)}
    runs = sorted(found, key=found.__getitem__)
    if name == "latest" and runs:
        return runs[-1]
    matches = [run for run in runs if run.name == name] or [run for run in runs if run.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StoreError(
            f"{name!r} is the beginning of {count(len(matches), 'run')}: {', '.join(m.name for m in matches)}"
        )
    for path, reason in unreadable_runs(root).items():
        if path.name == name:
            raise StoreError(f"{path} cannot be read: {reason}")
    nouns = {kind.head: kind.noun for kind in kinds()}
    wanted = " or ".join(nouns[head] for head in heads)
    for path in (Path(name), root / name):
        other = next((noun for head, noun in nouns.items() if has(path, head)), None)
        if other is not None:
            raise StoreError(f"{path} is {other}; this takes {wanted} ('wulf runs list' shows the runs)")
    hint = nearest(name, [run.name for run in runs])
    raise StoreError(
        f"there is no run {printable(name, 120)!r} here or in {root}{hint}; this takes {wanted} "
        "('wulf runs list' shows the runs)"
    )


def opened(run: Run | Path | str, runs: Path) -> Run:
    """Return a measured run: itself, that of its path, or that of its name among `runs`.

    Raises
    ------
    StoreError
        There is none, or it cannot be read.
    """
    return run if isinstance(run, Run) else load(find_run(str(run), runs))
