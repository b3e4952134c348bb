"""HPC Challenge: the summary at the end of hpccoutf.txt, names with values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wulf.importing.series import Series, Source

TITLE = "HPC Challenge"
_ENTRY = re.compile(r"^(\w+)=(\S+)$")
#: Sizes of the messages of its latency and bandwidth tests [B] (HPCC's bench_lat_bw).
_SHORT, _LONG = 8, 2_000_000
_RUN_TIMES = ("HPL_time", "PTRANS_time", "MPIRandomAccess_time", "MPIRandomAccess_LCG_time")


def recognises(text: str) -> bool:
    """Whether a text is an output of HPCC."""
    return "Begin of Summary section." in text


def read(source: Source) -> Iterator[Series]:
    """Yield its times: latencies, bandwidths as times of their messages, and run times."""
    begin = next(line.number for line, _ in source.found(r"Begin of Summary section\."))
    if "End of Summary section." not in source.text:
        source.fail("the summary has no end: did HPCC come to its own?")
    entries = {
        found[1]: (line, found[2])
        for line in source.lines[begin:]
        if (found := _ENTRY.match(line.text.strip()))
    }
    ranks = int(entries["CommWorldProcs"][1]) if "CommWorldProcs" in entries else 2
    for name, (line, text) in entries.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if value <= 0:
            continue  # not measured
        latency = re.fullmatch(r"(\w+)Latency_usec", name)
        bandwidth = re.fullmatch(r"(\w+)Bandwidth_GBytes", name)
        pair = "PingPong" in name
        if latency:
            yield _series(latency[1], pair, ranks, {_SHORT: value * 1e-6}, name)
        elif bandwidth:
            yield _series(bandwidth[1], pair, ranks, {_LONG: _LONG / (value * 1e9)}, name)
        elif name in _RUN_TIMES:
            seconds = source.positive(value, "a time [s]", line)
            yield Series(
                name=f"HPCC {name}",
                pattern="application",
                quantity="run time",
                statistic="one launch",
                times_s={0: seconds},
                ranks=ranks,
                moves_bytes=False,
            )


def _series(test: str, pair: bool, ranks: int, times: dict[int, float], name: str) -> Series:
    return Series(
        name=f"HPCC {test}{'Latency' if name.endswith('usec') else 'Bandwidth'}",
        pattern="ping-pong" if pair else "ring",
        quantity="half round trip" if pair else "time per message",
        statistic=f"{name} of one launch",
        times_s=times,
        ranks=2 if pair else ranks,
    )
