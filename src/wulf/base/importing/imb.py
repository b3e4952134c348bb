"""Intel MPI Benchmarks: MPI-1, NBC, RMA, EXT, IO and MT parts, 3.2 to 2021 (``src_c/IMB_output.c``, ``src_cpp/MT``)."""

from __future__ import annotations

from wulf.base.importing.grammar import MB, Column, Grammar, Means, Qualifier, Test
from wulf.base.importing.series import MEAN

_SLOWEST = f"{MEAN}, of the slowest rank"
GRAMMAR = Grammar(
    title="Intel MPI Benchmarks",
    prefix="IMB",
    recognises=r"Intel\(R\) MPI Benchmarks|^# Benchmarking \S",
    begins=r"^# Benchmarking\s+(?P<title>\S+)",
    tests=(
        Test(r"^(Multi-)?PingPong(SpecificSource|AnySource)?$", "ping-pong", "half round trip", 2),
        Test(r"^PingPongMT$", "ping-pong", "half round trip"),
        Test(r"^(Multi-)?PingPing(SpecificSource|AnySource|MT)?$", "exchange", "time of a call", 2),
        Test(r"^(Multi-)?Sendrecv(MT)?$", "ring", "time of a call"),
        Test(r"^(Multi-)?Exchange(MT)?$", "ring exchange", "time of a call"),
        Test(r"^(Multi-)?Uni[Bb]and(MT)?$", "stream", "time per message of all pairs"),
        Test(r"^(Multi-)?Bi[Bb]and(MT)?$", "streams both ways", "time per message of all pairs"),
        Test(r"[Bb]arrier|Open_Close", "barrier", "time of a call", moves_bytes=False),
    ),
    qualifiers=(
        Qualifier(r"^# #processes\s*=\s*(?P<ranks>\d+)"),
        Qualifier(r"^# #processes\s*=\s*\d+ \(threads: (?P<threads>\d+)\)", "{threads} threads", "1 threads"),
        Qualifier(
            r"^# \( (?P<n>\d+) groups of (?P<ranks>\d+) processes each running", "{n} groups of {ranks}"
        ),
        Qualifier(r"^#\s+MODE:\s+(?P<mode>\S+)", "{mode}"),
        Qualifier(r"^# window_size\s*=\s*(?P<window>\d+)", "window {window}"),
        Qualifier(r"^#\s+(?P<order>\d+(?:\s+\d+)+)\s*$", "rank order {order}", adds=True),
        Qualifier(r"^# MPI_Datatype\s+:\s+(?P<type>\S+)", "{type}", "MPI_BYTE", lasting=True),
        Qualifier(
            r"^# MPI_Datatype for reductions\s+:\s+(?P<type>\S+)",
            "reductions of {type}",
            "reductions of MPI_FLOAT",
            lasting=True,
        ),
        Qualifier(r"^# MPI_Op\s+:\s+(?P<op>\S+)", "{op}", "MPI_SUM", lasting=True),
        Qualifier(r"^# !! IMB_(?P<mode>OPTIONAL) mode", "{mode}", lasting=True),
    ),
    remarks=(
        r"^#[-#\s]*$",
        r"^# \( \d+ additional process(es)? waiting in MPI_Barrier\)",
        r"^# Group\s+\d+:",
        r"^# All processes entering MPI_Finalize",
        r"^# NO SUCCESSFUL EXECUTIONS",
    ),
    comment=r"^#",
    heading=r"^\s*(&?Group\s+)?(#bytes|#repetitions)\s",
    columns=(
        Column(r"#bytes", Means.SIZE),
        # Of IMB-P2P the time beside it is of a pair, and this of all of them.
        Column(r"t\[usec\]", Means.TIME, 1e-6),
        Column(r"Msg/sec", Means.PER_S),
        # Of collectives the mean of the slowest rank, as the others are of single ranks.
        Column(r"t_max\[usec\]", Means.TIME, 1e-6, statistic=_SLOWEST),
        Column(r"t_ovrl\[usec\]", Means.TIME, 1e-6),
        Column(r"t_avg\[usec\]", Means.TIME, 1e-6),
        # Of RMA's passive tests and of non-blocking collectives: without computing meanwhile.
        Column(r"t_pure\[usec\]", Means.TIME, 1e-6, label="pure communication"),
        # Since 2018 of 10⁶ bytes, before of 2²⁰: only since then are there tables without a time.
        Column(r"Mbytes/sec", Means.BYTES_PER_S, MB),
        Column(r"Group", Means.QUALIFIES, label="group {}"),
        *(
            Column(one)
            for one in (r"#repetitions", r"t_min\[usec\]", r"t_CPU\[usec\]", r"overlap\[%\]", r"defects")
        ),
    ),
    failed=((r"^[\s\d]*(?P<why>out-of-mem|time-out|int-overflow)\b", "{why}"),),
    statistic=MEAN,
)
