"""NetPIPE: its file of results (np.out), or what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import NUMBER, Series, Source, size_of

TITLE = "NetPIPE"
STATISTIC = "least time of the trials of one launch"
_PRINTED = re.compile(
    rf"^\s*\d+:\s+(\d+)\s+bytes\s+\d+\s+times\s+-->\s+({NUMBER})\s+Mbps in\s+({NUMBER})\s+usec", re.MULTILINE
)


def recognises(text: str) -> bool:
    """Whether a text is one of both."""
    if _PRINTED.search(text):
        return True
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return len(rows) > 2 and all(_is_row(row) for row in rows)


def _is_row(words: list[str]) -> bool:
    """Whether size, rate [Mbit/s] and time [s] of a line agree with each other."""
    if len(words) != 3 or any(re.fullmatch(NUMBER, word) is None for word in words):
        return False
    size, rate, time = map(float, words)
    return time > 0 and abs(size * 8 / time / 1024**2 - rate) <= 0.1 * max(rate, 0.01)


def read(source: Source) -> Iterator[Series]:
    """Yield the one series."""
    times: dict[int, float] = {}
    for line in source.lines:
        if found := _PRINTED.match(line.text):
            times[int(found[1])] = source.positive(float(found[3]), "a time [usec]", line) * 1e-6
        elif _PRINTED.search(source.text) is None and line.text.strip():
            size, _, time = source.numbers(line, "size, rate [Mbit/s], time [s]")
            times[size_of(source, size, line)] = source.positive(time, "a time [s]", line)
    yield Series(
        name="NetPIPE", pattern="ping-pong", quantity="half round trip", statistic=STATISTIC, times_s=times
    )
