"""mpptest and goptest: a table of lengths and times between commands for a plotting program."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import NUMBER, Series, Source, size_of

TITLE = "mpptest"
STATISTIC = "mean over iterations, the least of several repetitions of one launch"
_POINT_TO_POINT = re.compile(r"^#?\s*p0\s+p1\s+dist\s+len\s+ave time")
_ROW = re.compile(rf"^\s*{NUMBER}(?:\s+{NUMBER})+\s*$")


def recognises(text: str) -> bool:
    """Whether a text is an output of either."""
    return any(_POINT_TO_POINT.match(line.strip()) for line in text.splitlines())


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each table."""
    times: dict[int, float] = {}
    inside = False
    for line in source.lines:
        text = line.text.strip()
        if _POINT_TO_POINT.match(text):
            if times:
                yield _series(times)
            inside, times = True, {}
        elif inside and _ROW.match(text):
            numbers = source.numbers(line, "p0 p1 dist len time rate")
            if len(numbers) < 5:
                source.fail("expected p0, p1, dist, len, ave time [us] and rate", line)
            size = size_of(source, numbers[3], line)
            times[size] = source.positive(numbers[4], "a time [us]", line) * 1e-6
    if times:
        yield _series(times)


def _series(times: dict[int, float]) -> Series:
    return Series(
        name="mpptest", pattern="ping-pong", quantity="half round trip", statistic=STATISTIC, times_s=times
    )
