"""OSU Micro-Benchmarks: latency and bandwidth tests, point to point and collective."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import MEAN, Line, Series, Source, size_of

TITLE = "OSU Micro-Benchmarks"
_TITLE = re.compile(r"^# OSU (?:MPI(?:-CUDA|-ROCM|-OPENACC)?\s+)?(.+?)(?: Test)?(?: v[\d.]+)?$")
_COLUMNS = re.compile(r"^#?\s*Size\s+(.*(?:Latency|Bandwidth).*)$")
_NO_SIZE = re.compile(r"^#\s*(?:Avg )?Latency ?\(us\)")


def recognises(text: str) -> bool:
    """Whether a text is an output of these benchmarks."""
    return re.search(r"^# OSU ", text, re.MULTILINE) is not None


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each table."""
    title = ""
    measure = ""
    times: dict[int, float] = {}
    for line in [*source.lines, Line(len(source.lines) + 1, "# OSU")]:
        text = line.text.strip()
        if text.startswith("# OSU"):
            if times:
                yield _series(title, measure, times)
            found = _TITLE.match(text)
            title, measure, times = (found[1] if found else ""), "", {}
        elif columns := _COLUMNS.match(text):
            measure = "bandwidth" if "Bandwidth" in columns[1] else "latency"
        elif _NO_SIZE.match(text):
            measure = "barrier"
        elif text and not text.startswith("#") and measure:
            size, seconds = _row(source, line, measure)
            times[size] = seconds
    if not title and not measure:
        return


def _row(source: Source, line: Line, measure: str) -> tuple[int, float]:
    numbers = source.numbers(line, "a latency [us]" if measure == "barrier" else f"a size and a {measure}")
    if measure == "barrier":
        return 0, source.positive(numbers[0], "a latency [us]", line) * 1e-6
    if len(numbers) < 2:
        source.fail(f"expected a size and a {measure}", line)
    size = size_of(source, numbers[0], line)
    value = source.positive(numbers[1], f"a {measure}", line)
    # A bandwidth is in MB/s (10⁶), of the messages of one direction.
    return size, value * 1e-6 if measure == "latency" else size / (value * 1e6)


def _series(title: str, measure: str, times: dict[int, float]) -> Series:
    ping_pong = title in ("Latency", "Multi-threaded Latency", "Multi Latency")
    quantity = (
        "half round trip" if ping_pong else "time per message" if measure == "bandwidth" else "time of a call"
    )
    return Series(
        name=f"OSU {title}",
        pattern="ping-pong" if ping_pong else "stream" if measure == "bandwidth" else title.lower(),
        quantity=quantity,
        statistic=MEAN,
        times_s=times,
        moves_bytes=set(times) != {0},
    )
