"""qperf: a block for each test, latencies and bandwidths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.base.importing.series import MEAN, NUMBER, Line, Series, Source
from wulf.base.units import parse_size

TITLE = "qperf"
_TEST = re.compile(r"^(\w+_(?:lat|bw)):\s*$")
_VALUE = re.compile(rf"^\s+(latency|bw|recv_bw|msg_size)\s+=\s+({NUMBER})\s*(\S+)")
_SECONDS = {"sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BYTES_PER_S = {"bytes/sec": 1.0, "KB/sec": 1e3, "MB/sec": 1e6, "GB/sec": 1e9}


def recognises(text: str) -> bool:
    """Whether a text is an output of qperf."""
    return any(_TEST.match(line) for line in text.splitlines()) and "=" in text


def read(source: Source) -> Iterator[Series]:
    """Yield a series for each test."""
    test = ""
    values: dict[str, tuple[Line, float, str]] = {}
    for line in [*source.lines, Line(len(source.lines) + 1, "end_lat:")]:
        if found := _TEST.match(line.text):
            if test:
                yield _series(source, test, values)
            test, values = found[1], {}
        elif found := _VALUE.match(line.text):
            values[found[1]] = line, float(found[2]), found[3]


def _series(source: Source, test: str, values: dict[str, tuple[Line, float, str]]) -> Series:
    kind = test.rpartition("_")[2]
    if "msg_size" not in values:
        source.fail(f"{test} does not say the size of its messages: run qperf with -vvu")
    _, number, unit = values["msg_size"]
    size = parse_size(f"{number:g}{unit.replace('bytes', 'B').replace('byte', 'B')}")
    if kind == "lat":
        time = _value(source, test, values, ("latency",), _SECONDS)
        pattern, quantity = "ping-pong", "half round trip"
    else:
        time = size / _value(source, test, values, ("recv_bw", "bw"), _BYTES_PER_S)
        pattern, quantity = "stream", "time per message"
    return Series(
        name=f"qperf {test}", pattern=pattern, quantity=quantity, statistic=MEAN, times_s={size: time}
    )


def _value(
    source: Source,
    test: str,
    values: dict[str, tuple[Line, float, str]],
    names: tuple[str, ...],
    units: dict[str, float],
) -> float:
    name = next((name for name in names if name in values), None)
    if name is None:
        source.fail(f"{test} has no {' or '.join(names)}")
    line, number, unit = values[name]
    if unit not in units:
        source.fail(f"expected a {name} in one of {', '.join(units)}", line)
    return source.positive(number * units[unit], f"a {name}", line)
