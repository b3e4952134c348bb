"""All formats that are known."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from wulf.base.errors import ImportFormatError
from wulf.base.importing import hpcc, hpl, imb, iperf3, mpptest, netperf, netpipe, osu, qperf, sockperf
from wulf.base.importing.series import Series, Source

#: The more particular ones first: HPCC's output has HPL's within.
FORMATS: tuple[ModuleType, ...] = (hpcc, hpl, imb, osu, mpptest, sockperf, qperf, netperf, iperf3, netpipe)


def read(text: str, name: str) -> list[list[Series]]:
    """Return what an output says, launch by launch: the same operation and size again is the next launch.

    Raises
    ------
    ImportFormatError
        It is of no known format, or a line of it is not as expected; names the file and the line.
    """
    known = next((format_ for format_ in FORMATS if format_.recognises(text)), None)
    if known is None:
        titles = ", ".join(format_.TITLE for format_ in FORMATS)
        raise ImportFormatError(f"{name}: it is no output that is known; these are: {titles}")
    launches = _launches(known.read(Source(text, name)))
    if not launches:
        raise ImportFormatError(f"{name}: an output of {known.TITLE} without any result")
    return launches


def _launches(found: Iterator[Series]) -> list[list[Series]]:
    launches: list[list[Series]] = []
    seen: list[set[tuple[str, int]]] = []
    for series in found:
        keys = {(series.name, size) for size in series.times_s}
        place = next((index for index, known in enumerate(seen) if known.isdisjoint(keys)), None)
        if place is None:
            launches.append([])
            seen.append(set())
            place = len(seen) - 1
        launches[place].append(series)
        seen[place] |= keys
    return launches
