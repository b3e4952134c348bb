"""perftest: bandwidth and latency of RDMA verbs (``src/perftest_parameters.h``, ``src/perftest_parameters.c``)."""

from __future__ import annotations

from wulf.base.importing.grammar import MIB, Column, Grammar, Means, Qualifier, Test
from wulf.base.importing.series import MEAN

#: Both are powers of two: "MB" of older releases, too (``format_factor`` is 0x100000).
_MEBI = r"M(i)?B/sec"
GRAMMAR = Grammar(
    title="perftest",
    prefix="perftest",
    recognises=r"^\s*#bytes\s+(#\w+\s+)*#iterations\s+(BW peak|t_min|t_avg)",
    begins=r"^\s{3,}(?P<title>\S.*?)\s+Test\s*$",
    tests=(
        Test(r"^(RDMA_Read|Atomic).*Latency", "one-sided", "time of a call", 2),
        Test(r"Latency", "ping-pong", "half round trip", 2),
        Test(r"Bidirectional BW", "streams both ways", "time per message of either direction", 2),
        Test(r"BW", "stream", "time per message", 2),
    ),
    only_known=True,
    qualifiers=(
        Qualifier(r"^ Number of qps\s*: (?P<n>\d+)", "{n} queue pairs", usual="1 queue pairs"),
        Qualifier(r"^ Connection type\s*: (?P<type>\w+)", "{type}"),
        Qualifier(r"Dual-port\s*: (?P<dual>ON|OFF)", "dual-port {dual}", usual="dual-port OFF"),
        Qualifier(r"^ Post List\s*: (?P<n>\d+)", "post list {n}"),
        Qualifier(r"^ Mtu\s*: (?P<mtu>\d+)\[B\]", "MTU {mtu}"),
        Qualifier(r"^ Test with events", "events"),
    ),
    heading=r"^\s*#bytes\s",
    columns=(
        Column(r"#bytes", Means.SIZE),
        Column(rf"BW average\[{_MEBI}\]", Means.BYTES_PER_S, MIB),
        Column(r"BW average\[Gb/sec\]", Means.BYTES_PER_S, 1e9 / 8),
        Column(r"MsgRate\[Mpps\]", Means.PER_S, 1e6),
        Column(r"t_avg\[usec\]", Means.TIME, 1e-6),
        Column(r"t_typical\[usec\]", Means.TIME, 1e-6, "median", "median of the iterations of one launch"),
        Column(
            r"(?P<p>[\d.]+)% percentile\[usec\]",
            Means.TIME,
            1e-6,
            "p{p}",
            "p{p} of the iterations of one launch",
        ),
        *(
            Column(one)
            for one in (
                r"#iterations",
                r"#sl",
                rf"BW peak\[({_MEBI}|Gb/sec)\]",
                rf"BW Port\d\[({_MEBI}|Gb/sec)\]",
                r"MsgRate Port\d\[Mpps\]",
                r"t_(min|max|stdev)\[usec\]",
                r"tps average",
                r"CPU_Util\[%\]",
            )
        ),
    ),
    statistic=MEAN,
)
