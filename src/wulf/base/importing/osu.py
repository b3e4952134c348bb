"""OSU Micro-Benchmarks, releases 3 to 7.5: ``c/util/osu_util*.c`` and the ``BENCHMARK`` of each program."""

from __future__ import annotations

from wulf.base.importing.grammar import MB, Caption, Column, Grammar, Means, Qualifier, Test
from wulf.base.importing.series import MEAN

GRAMMAR = Grammar(
    title="OSU Micro-Benchmarks",
    prefix="OSU",
    recognises=r"^# OSU ",
    begins=r"^# OSU (?:MPI(?:-(?P<rest>[A-Z]+(?: MANAGED)?))?\s+)?(?P<title>.+?)(?: Test)?"
    r"(?: v[\d.]+\S*| \(Version [\d.]+\))?\s*$",
    tests=(
        Test(
            r"^([NRX]CCL )?(Latency( Persistent)?|Multi-(threaded|process) Latency)$",
            "ping-pong",
            "half round trip",
            2,
        ),
        # As many pairs as there are ranks, which it does not say.
        Test(r"^Multi Latency$", "ping-pong", "half round trip"),
        Test(r"^([NRX]CCL )?Bandwidth( Persistent)?$", "stream", "time per message", 2),
        Test(
            r"^([NRX]CCL )?Bi-Directional Bandwidth",
            "streams both ways",
            "time per message of either direction",
            2,
        ),
        Test(r"^Multiple Bandwidth", "stream", "time per message of all pairs"),
        Test(r"^MPI_Get Multi", "one-sided", ""),
        Test(r"^MPI_\w+ Bi-", "one-sided", "time per message of either direction", 2),
        Test(r"^MPI_\w+.*Bandwidth", "one-sided", "time per message", 2),
        Test(r"^MPI_\w+", "one-sided", "time of a call", 2),
        Test(r"Barrier", "barrier", "time of a call", moves_bytes=False),
    ),
    # What the title says behind "MPI-": collectives have no other line for where buffers are.
    in_title=(Qualifier(r"^(?P<accelerator>.+)$", "{accelerator}"),),
    qualifiers=(
        Qualifier(
            r"^# Send Buffer on \w+ \((?P<source>\w+)\) and Receive Buffer on \w+ \((?P<target>\w+)\)",
            "{source} {target}",
        ),
        Qualifier(
            r"^# Rank 0 Memory on \w+ \((?P<source>\w+)\) and Rank 1 Memory on \w+ \((?P<target>\w+)\)",
            "{source} {target}",
        ),
        Qualifier(r"^# Datatype: (?P<type>.+?)\.?\s*$", "{type}", usual="MPI_CHAR"),
        Qualifier(r"^# \[ pairs: (?P<pairs>\d+) \]", "{pairs} pairs"),
        # Where it is "varied" it stands above the columns.
        Qualifier(r"^# \[ pairs: \d+ \] \[ window size: (?P<window>\d+) \]", "window {window}"),
        Qualifier(r"^# Window creation: (?P<window>.+?)\s*$", "{window}"),
        Qualifier(r"^# Synchronization: (?P<how>.+?)\s*$", "{how}"),
        Qualifier(r"^# Number of Sender threads: (?P<senders>\d+)", "{senders} sending threads"),
        Qualifier(r"^# Number of Receiver threads: (?P<receivers>\d+)", "{receivers} receiving threads"),
        Qualifier(
            r"^# Number of forked processes in sender: (?P<senders>\d+)", "{senders} sending processes"
        ),
        Qualifier(
            r"^# Number of forked processes in receiver: (?P<receivers>\d+)",
            "{receivers} receiving processes",
        ),
    ),
    remarks=(r"^# \S+/POSIX_MEMALIGN: ", r"^# Overall = ", r"^#\s*$"),
    comment=r"^#",
    captions=(
        Caption(
            r"^# Uni-directional Bandwidth \(MB/sec\)$",
            Column("size", Means.SIZE),
            Column("window", Means.BYTES_PER_S, MB, "window {n}"),
        ),
        Caption(
            r"^# Message Rate Profile$",
            Column("size", Means.SIZE),
            Column("window", Means.PER_S, label="window {n}"),
            again=True,
        ),
    ),
    heading=r"^#\s*(Size|Overall\(us\)|(Avg )?Latency ?\(us\)|Bandwidth \(MB/s\)|MB/s)(\s|$)",
    columns=(
        Column(r"#\s*Size", Means.SIZE),
        # Where the rate is there, too, it has more digits.
        Column(r"(#\s*)?Messages/s", Means.PER_S),
        Column(r"(#\s*)?(Avg )?(Lat|Latency) ?\(us\)", Means.TIME, 1e-6),
        Column(r"(#\s*)?Overall\(us\)", Means.TIME, 1e-6),
        Column(r"(#\s*)?(Bi-Directional )?Bandwidth ?\(MB/s\)", Means.BYTES_PER_S, MB),
        Column(r"(#\s*)?MB/s", Means.BYTES_PER_S, MB),
        Column(r"Pure Comm\.\(us\)", Means.TIME, 1e-6, label="pure communication"),
        Column(
            r"P(?P<p>\d+) Tail Lat\(us\)", Means.TIME, 1e-6, "p{p}", "p{p} of the iterations of one launch"
        ),
        Column(
            r"P(?P<p>\d+) Tail BW\(MB/s\)",
            Means.BYTES_PER_S,
            MB,
            "p{p}",
            "p{p} of the iterations of one launch",
        ),
        Column(r"Validation", Means.CHECK, tells="validated"),
        Column(r"Transmit Size", tells="derived datatype"),
        *(
            Column(heading)
            for heading in (
                r"(Min|Max) Latency ?\(us\)",
                r"(Min|Max) Comm\.\(us\)",
                r"Compute\(us\)",
                r"Coll\. Init\(us\)",
                r"MPI_(Test|Wait)\(us\)",
                r"Overlap\(%\)",
                r"Iterations",
            )
        ),
    ),
    passed=frozenset({"Pass"}),
    statistic=MEAN,
)
