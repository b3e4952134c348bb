"""The exact curve of run time against latency: 64 ranks × 500 iterations of a stencil, 1 to 100 µs, a thread each CPU.

Figure: seconds for all lines of the curve, of a loaded trace; median of rounds (goal: at most 0.1).
"""

from __future__ import annotations

import os
import statistics

from bench.common import Figure, finish
from bench.replay import NETWORKS, machine, rounds, said
from bench.traces import Stencil

GOAL_S = 0.1
ROUNDS = 11
RANGE_NS = "1000:100000"
STENCIL = Stencil(64, 500)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    print(f"  {machine()}, {len(os.sched_getaffinity(0))} CPUs")
    found = rounds(STENCIL, NETWORKS[:1], 3 if "--quick" in arguments else ROUNDS, ["--curve", RANGE_NS])
    took_s = [1e-9 * one.curve_ns for one in found.times]
    print(
        f"  {said(STENCIL)}: {found.times[0].lines} lines in {statistics.median(took_s):.3f} s "
        f"({min(took_s):.3f} to {max(took_s):.3f}, n {len(took_s)})"
    )
    return finish("curve", [Figure(name="s", value=statistics.median(took_s), goal=GOAL_S)])
