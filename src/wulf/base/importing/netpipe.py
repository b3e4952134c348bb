"""NetPIPE 2.4 to 5: what it prints, and its file of results, which has no headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wulf.base.importing import engine
from wulf.base.importing.grammar import SECONDS, Column, Grammar, Means, Qualifier, Test, Unit
from wulf.base.importing.series import NUMBER, Series, Source

STATISTIC = "least time of the trials of one launch"
_ROW = r"^\s*\d+:\s+"
GRAMMAR = Grammar(
    title="NetPIPE",
    prefix="NetPIPE",
    recognises=rf"{_ROW}{NUMBER}\s+(bytes|[KMGT]?B)\s+\d+\s+times\s+-->",
    tests=(Test("", "ping-pong", "half round trip", 2),),
    qualifiers=(
        Qualifier(
            r"(?P<both>both directions) (simultaneously|at the same time)|Bidirectional mode",
            "both directions",
        ),
        Qualifier(r"[Ss]treaming (data )?in one direction", "streaming"),
        Qualifier(r"(without cache effects|from main memory)", "without cache"),
        Qualifier(r"([Pp]repost(ing)?\b.*receives)", "receives posted before"),
        Qualifier(r"[Ss]ynchronous sends", "synchronous sends"),
        Qualifier(
            r"(Send|Transmit|Receive|Offsetting (send|recv)) buffer (offset: |by )(?P<bytes>[1-9]\d*)",
            "offset {bytes}",
        ),
    ),
    rows=(
        # NetPIPE 2.4 and MPICH's copy print "sec".
        rf"{_ROW}(?P<size>\d+)\s+bytes\s+\d+\s+times\s+-->\s+{NUMBER}\s+Mbps\s+in\s+(?P<time>{NUMBER})\s+(?P<time_unit>\w+)\s*$",
        # NetPIPE 5, sizes below a megabyte, which it prints to the byte.
        rf"{_ROW}(?P<size>{NUMBER})\s+(?P<size_unit>K?B)\s+\d+\s+times\s+-->\s+{NUMBER}\s+[KMGT]?bps\s+in\s+"
        rf"(?P<time>{NUMBER})\s+(?P<time_unit>\w+)",
    ),
    failed=(
        (rf"{_ROW}.*(Integrity check|failures)", "a check of messages, no time"),
        # NetPIPE 5 prints four digits, too few for sizes from a megabyte on.
        (rf"{_ROW}{NUMBER}\s+[MGT]B\s+\d+\s+times", "its size is rounded: the file np.out has it"),
    ),
    columns=(Column("size", Means.SIZE), Column("time", Means.TIME)),
    units={**SECONDS, "B": Unit(Means.SIZE, 1.0), "KB": Unit(Means.SIZE, 1e3)},
    statistic=STATISTIC,
)


class _Shape(NamedTuple):
    """Columns of a file of results: it has no headings, but its numbers have to agree with each other."""

    columns: int
    #: Size [B] and time [s] of a row, and its rate [bit/s].
    read: Callable[[list[float]], tuple[float, float, float]]
    statistic: str
    #: What a rate is off by when it is printed [bit/s].
    rounded: float


_SHAPES = (
    _Shape(3, lambda row: (row[0], row[2], row[1] * 2**20), STATISTIC, 1e3),
    # NetPIPE 5: bytes, mean, least and greatest Gbit/s, microseconds.
    _Shape(5, lambda row: (row[0], row[4] * 1e-6, row[1] * 1e9), "mean over the trials of one launch", 1e6),
    # NetPIPE 2: seconds, Mbit/s, bits, bytes, variance.
    _Shape(5, lambda row: (row[3] if row[2] == 8 * row[3] else -1, row[0], row[1] * 2**20), STATISTIC, 1e3),
)


def recognises(text: str) -> bool:
    """Whether a text is what it prints, or its file of results."""
    return engine.recognises(GRAMMAR, text) or _shape(text) is not None


def read(source: Source) -> Iterator[Series]:
    """Yield the one series."""
    shape = _shape(source.text)
    if engine.recognises(GRAMMAR, source.text) or shape is None:
        yield from engine.read(GRAMMAR, source)
        return
    times: dict[int, float] = {}
    for line in source.lines:
        if words := line.text.split():
            size, seconds, _ = shape.read([source.number(word, "of NetPIPE", line) for word in words])
            times[source.size(size, line)] = source.seconds(seconds, "a time [s]", line)
    yield Series(
        name="NetPIPE",
        pattern="ping-pong",
        quantity="half round trip",
        statistic=shape.statistic,
        times_s=times,
    )


def _shape(text: str) -> _Shape | None:
    """Return how the rows of a file are to be read; None where they do not agree with themselves."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    if len(rows) < 3 or any(re.fullmatch(NUMBER, word) is None for row in rows for word in row):
        return None
    numbers = [[float(word) for word in row] for row in rows]
    return next((shape for shape in _SHAPES if all(_agrees(shape, row) for row in numbers)), None)


def _agrees(shape: _Shape, row: list[float]) -> bool:
    """Whether size, rate and time of a row agree, but for the digits that small ones are printed with."""
    if len(row) != shape.columns:
        return False
    size, seconds, rate = shape.read(row)
    return size >= 0 and seconds > 0 and abs(size * 8 / seconds - rate) <= max(0.1 * rate, shape.rounded)
