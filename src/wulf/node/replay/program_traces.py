"""Traces of a program as files: which of several launches is replayed, and how long each took."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base.errors import UsageError
from wulf.base.trace.reader import Trace, read
from wulf.base.trace.summary import command_of, run_time
from wulf.node.replay import patterns
from wulf.stats.prediction.launches import Launches


@contextmanager
def opened(source: Path, ranks: int, scratch: Path | None = None) -> Iterator[Path]:
    """Give the trace to replay: of a pattern it is made for that, in a directory of `scratch`, and taken away.

    Raises
    ------
    UsageError
        There is no such file.
    """
    if not is_pattern(source):
        yield _there(source)
        return
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wulf-pattern-", dir=scratch) as directory:
        yield patterns.pattern_trace(source, ranks, Path(directory))


def usual(source: Path, again: Sequence[Path]) -> tuple[Path, Launches | None]:
    """Return of the traces of a program that of the median run time, and the run times of all; None of one alone.

    They are taken to be named in the order in which they were made.

    Raises
    ------
    UsageError
        One is given twice, some do not say how long the program ran, or they are not of the same program.
    """
    if not again:
        return source, None
    paths = [_there(path).resolve() for path in (source, *again)]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{path}: is given twice: --again is for traces of other launches")
    traces = {path: read(path) for path in paths}
    if len({(command_of(one), one.ranks) for one in traces.values()}) > 1:
        raise UsageError("--again: traces of launches of one program; these differ in command or ranks")
    known: dict[Path, float] = {}
    for path, trace in traces.items():
        time_s = own_time(trace)
        if time_s is None:
            raise UsageError(f"{path}: does not say how long the program ran: leave it out")
        known[path] = time_s
    ordered = sorted(known, key=known.__getitem__)
    return ordered[(len(ordered) - 1) // 2], Launches(list(known.values()))


def alone(trace: Trace) -> Launches | None:
    """Return the run time of the only trace; None where it does not say."""
    time_s = own_time(trace)
    return Launches([time_s]) if time_s is not None else None


def own_time(trace: Trace) -> float | None:
    """Return how long the traced program ran, by its slowest rank; None where the trace does not say [s]."""
    return run_time(trace) or None


def is_pattern(source: Path) -> bool:
    """Whether it is a pattern, a file or one of the gallery by its name, and no trace."""
    return source.suffix == ".toml" or (not source.exists() and str(source) in patterns.gallery())


def _there(source: Path) -> Path:
    if not source.is_file():
        raise UsageError(
            f"{source}: there is no such file: 'wulf program trace -o {source} -- COMMAND' writes a trace"
        )
    return source
