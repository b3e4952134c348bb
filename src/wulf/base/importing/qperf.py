"""qperf: a block for each test, numbers with their names and units."""

from __future__ import annotations

from wulf.base.importing.grammar import GB, GIB, KB, KIB, MB, MIB, SECONDS, Column, Grammar, Means, Test, Unit
from wulf.base.importing.series import MEAN

_BYTES = {"bytes": 1.0, "byte": 1.0, "KB": KB, "MB": MB, "GB": GB, "KiB": KIB, "MiB": MIB, "GiB": GIB}
_BITS = {"bits": 1.0, "Kb": KB, "Mb": MB, "Gb": GB, "Tb": 1e12}
GRAMMAR = Grammar(
    title="qperf",
    prefix="qperf",
    recognises=r"^\w+_(lat|bw|mr|swap|add|quit|conf):\s*$",
    begins=r"^(?P<title>\w+):\s*$",
    tests=(
        Test(
            r"^(rc|uc|ud|xrc)_rdma_read_lat$|^(ver_)?rc_(compare_swap|fetch_add)",
            "one-sided",
            "time of a call",
            2,
        ),
        Test(r"_lat$", "ping-pong", "half round trip", 2),
        Test(r"_bi_bw$", "streams both ways", "time per message of either direction", 2),
        Test(r"_bw$", "stream", "time per message", 2),
        Test(r"_mr$", "stream", "time per message", 2),
    ),
    only_known=True,
    entry=r"^\s+(?P<heading>\w+)\s+=\s+(?P<value>[\d.,]+)\s*(?P<unit>[^\s(]+)?(?:\s+\((?P<exact>[\d,]+)\))?",
    columns=(
        Column("msg_size", Means.SIZE),
        Column("latency", Means.TIME),
        Column("recv_bw|bw", Means.BYTES_PER_S),
        Column("send_bw", Means.BYTES_PER_S, label="sent"),
        Column("msg_rate|(send|recv)_msgs|(send|recv)_bytes"),
        Column(
            r"time|timeout|\w+_time|\w+_cost|\w+_cpus_\w+|\w+_cpu_\w+|mtu_size|cq_entries|access_recv|rd_atomic|use_bits_per_sec|port"
        ),
    ),
    units={
        **SECONDS,
        **{name: Unit(Means.SIZE, factor) for name, factor in _BYTES.items()},
        **{f"{name}/sec": Unit(Means.BYTES_PER_S, factor) for name, factor in _BYTES.items()},
        "TB/sec": Unit(Means.BYTES_PER_S, 1e12),
        **{f"{name}/sec": Unit(Means.BYTES_PER_S, factor / 8) for name, factor in _BITS.items()},
    },
    statistic=MEAN,
    advice=" (run qperf with -vvu)",
    sized_by="expected msg_size among the numbers of a test: run qperf with -vvu",
)
