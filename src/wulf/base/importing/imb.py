"""Intel MPI Benchmarks (IMB-MPI1 and its relatives): a table for each benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import MEAN, Line, Series, Source, size_of

TITLE = "Intel MPI Benchmarks"
_BEGIN = re.compile(r"^# Benchmarking (\S+)")
_PROCESSES = re.compile(r"^# #processes = (\d+)")
#: Which column is the time: of collectives the mean of the slowest rank, as the others are of single ranks.
_TIMES = ("t_max[usec]", "t[usec]", "t_ovrl[usec]", "t_avg[usec]")
_PATTERNS = {"PingPong": "ping-pong", "PingPing": "exchange", "Sendrecv": "ring", "Exchange": "ring exchange"}


def recognises(text: str) -> bool:
    """Whether a text is an output of these benchmarks."""
    return "Intel(R) MPI Benchmarks" in text or ("# Benchmarking " in text and "#bytes" in text)


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each table."""
    benchmark = ""
    ranks = 2
    columns: list[str] = []
    times: dict[int, float] = {}
    for line in [*source.lines, Line(len(source.lines) + 1, "")]:
        words = line.text.split()
        if begin := _BEGIN.match(line.text):
            benchmark = begin[1]
        elif processes := _PROCESSES.match(line.text.strip()):
            ranks = int(processes[1])
        elif words and words[0].startswith("#") and any(word in _TIMES for word in words):
            columns = words
        elif columns and words and not line.text.lstrip().startswith("#"):
            if words[0].startswith("out-of-mem") or "--" in words[0]:
                continue
            size, seconds = _row(source, line, columns)
            times[size] = seconds
        elif columns and times:
            yield _series(benchmark, ranks, columns, times)
            columns, times = [], {}
    if columns:
        source.fail(f"the table of {benchmark or 'a benchmark'} has no rows")


def _row(source: Source, line: Line, columns: list[str]) -> tuple[int, float]:
    numbers = source.numbers(line, " ".join(columns))
    if len(numbers) != len(columns):
        source.fail(f"expected {len(columns)} columns ({' '.join(columns)})", line)
    named = dict(zip(columns, numbers, strict=True))
    time = next(named[name] for name in _TIMES if name in named)
    size = size_of(source, named.get("#bytes", 0.0), line)
    return size, source.positive(time, "a time [us]", line) * 1e-6


def _series(benchmark: str, ranks: int, columns: list[str], times: dict[int, float]) -> Series:
    slowest = "t_max[usec]" in columns
    return Series(
        name=f"IMB {benchmark}",
        pattern=_PATTERNS.get(benchmark, benchmark.lower()),
        quantity="half round trip" if benchmark == "PingPong" else "time of a call",
        statistic=f"{MEAN}, of the slowest rank" if slowest else MEAN,
        times_s=times,
        ranks=ranks,
        moves_bytes=set(times) != {0},
    )
