"""netperf: request and response, and streams."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import NUMBER, Line, Series, Source, size_of

TITLE = "netperf"
STATISTIC = "mean over one launch"
_ROW = re.compile(rf"^\s*{NUMBER}(?:\s+{NUMBER}){{3,}}\s*$")


def recognises(text: str) -> bool:
    """Whether a text is an output of netperf."""
    return re.search(r"^(MIGRATED )?(TCP|UDP) \S+ TEST (from|to) ", text, re.MULTILINE) is not None


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each test; its row of results is the first one with enough columns."""
    title: Line | None = None
    for line in source.lines:
        if re.match(r"^(MIGRATED )?(TCP|UDP) \S+ TEST (from|to) ", line.text):
            if title is not None:
                source.fail("expected a row of results after it", title)
            title = line
        elif title is not None and _ROW.match(line.text):
            yield _series(source, title, line)
            title = None
    if title is not None:
        source.fail("expected a row of results after it", title)


def _series(source: Source, title: Line, line: Line) -> Series:
    words = title.text.removeprefix("MIGRATED ").split()
    protocol, kind = words[0], words[1]
    numbers = source.numbers(line, "results")
    if kind == "REQUEST/RESPONSE":
        if len(numbers) < 6:
            source.fail("expected socket sizes, request, response, seconds and transactions/s", line)
        size, rate = size_of(source, numbers[2], line), source.positive(numbers[5], "transactions/s", line)
        return _named(f"{protocol}_RR", "ping-pong", "round trip", {size: 1 / rate})
    size = size_of(source, numbers[1] if protocol == "UDP" else numbers[2], line)
    rate = source.positive(numbers[-1], "a throughput [10^6 bits/s]", line) * 1e6
    return _named(f"{protocol}_{kind}", "stream", "time per message", {size: size * 8 / rate})


def _named(test: str, pattern: str, quantity: str, times: dict[int, float]) -> Series:
    return Series(
        name=f"netperf {test}", pattern=pattern, quantity=quantity, statistic=STATISTIC, times_s=times
    )
