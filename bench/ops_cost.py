"""What the probe's loop of every MPI operation between two ranks costs over a bare one of the same calls.

The probe's own object files measure it and their own operation in turn, visit by visit in random order, in one launch
(bench/native/paired; the bare loops are bare.c): same processes, connection and buffers. Of each launch the median
ratio of neighbouring visits; the interval is that of the launches' pseudo-median. The bare loop against itself is shown
beside: its interval must hold 1. mpi_bisection between two ranks is mpi_pingpong; what is timed as single calls
(mpi_send_overhead) has nothing but the clock around it, whose cost every run says. One-sided operations are those of
MPICH: Open MPI 4.1 has none between nodes that only TCP connects (MPI_ERR_WIN).

Goal: the worst of all operations, at 8 B and 64 KiB, <= 1.05.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import common, probe_mpi
from wulf.base.native import build

OPS = (
    "mpi_pingpong",
    "mpi_pingpong_nb",
    "mpi_persistent",
    "mpi_exchange",
    "mpi_ring",
    "mpi_put",
    "mpi_get",
    "mpi_rate",
    "mpi_strided",
    "mpi_packed",
    "mpi_outofcache",
)
ONE_SIDED = {"mpi_put", "mpi_get"}
SIZES = (8, 65536)
LAUNCHES, BLOCKS = 10, 300
GOAL = 1.05


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    rounds = 6 if "--quick" in arguments else LAUNCHES
    with common.pair() as pair:
        arms: dict[str, Callable[[], dict[str, float]]] = {}
        for family in ("openmpi", "mpich"):
            mpi = build.find_mpi(family)[0]
            built = common.build_mpi(probe_mpi.SOURCE, probe_mpi.PAIRED, mpi)
            program = pair.install(built.rename(built.with_name(f"paired-{family}")))
            arms |= {
                op: probe_mpi.alternating(pair, mpi, program, op, SIZES, BLOCKS)
                for op in OPS
                if (op in ONE_SIDED) is (family == "mpich")
            }
        print(f"{rounds} rounds of one launch each, in random order; {' – '.join(common.PAIR)}")
        ratios = common.interleave(arms, rounds)
    figures = []
    for op in OPS:
        for size in SIZES:
            found = common.shift(f"{op}/{size}B", ratios[op][f"{size} B"], GOAL)
            control = common.shift("", ratios[op][f"{size} B, control"], 1)
            figures.append(found)
            print(
                f"  {op:16} {size:6} B  {found.value:.4f} ({found.low:.4f} to {found.high:.4f});"
                f"  the bare loop against itself {control.value:.4f} ({control.low:.4f} to {control.high:.4f})"
            )
    return common.finish("ops-cost", [max(figures, key=lambda figure: figure.value)])
