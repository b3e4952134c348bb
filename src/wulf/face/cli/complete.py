"""What a shell offers when a word is not finished: names that exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from wulf.base.errors import WulfError


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the runs of all kinds, and ``latest``."""
    from wulf.base.store.kinds import list_any

    root = Path(str(ctx.params.get("runs") or "runs"))
    try:
        found = [path.name for _, path in list_any(root)]
    except WulfError:
        found = []
    return _beginning(incomplete, ["latest", *found])


def knobs(incomplete: str) -> list[str]:
    """Offer the ids of all knobs."""
    from wulf.base import catalogue

    return _beginning(incomplete, catalogue.knobs())


def settings(incomplete: str) -> list[str]:
    """Offer ``KNOB=``, and after it the values that are known."""
    from wulf.base import catalogue

    name, mark, _ = incomplete.partition("=")
    if not mark:
        return [f"{knob}=" for knob in knobs(incomplete)]
    known = catalogue.knobs().get(name)
    return _beginning(incomplete, [f"{name}={value}" for value in known.values] if known else [])


def studies(incomplete: str) -> list[str]:
    """Offer the studies that there are, by their names."""
    from wulf.base import user_files

    try:
        known = [source.id for source in user_files.sources("studies")]
    except WulfError:
        known = []
    return _beginning(incomplete, known)


def one_of(words: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what offers these words."""
    known = list(words)

    def offer(incomplete: str) -> list[str]:
        return _beginning(incomplete, known)

    return offer


def operations(incomplete: str) -> list[str]:
    """Offer the operations of the probes that have been built, separated by commas, each once."""
    from wulf.base.native import build

    try:
        known = [operation.name for operation in build.built_operations()]
    except WulfError:
        known = []
    before, comma, word = incomplete.rpartition(",")
    left = [other for other in known if other not in before.split(",")]
    return [f"{before}{comma}{other}" for other in _beginning(word, left)]


def clusters(incomplete: str) -> list[str]:
    """Offer the clusters that need no file, and the files here."""
    files = sorted(path.name for path in Path().glob("*.toml"))
    return _beginning(incomplete, ["lab", "slurm", "local", *files])


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
