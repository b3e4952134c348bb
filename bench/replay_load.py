"""Loading a trace: from the mapped file to messages that are matched and in an order that can be evaluated.

A stencil of 64 and of 1024 ranks with a small reduction (5.7 M operations each), and one whose messages may be sent by
agreement (rendezvous). An operation is what LogGOPSim counts as one: a send, a receive, a computation (calc); messages
alone (sends and receives) are printed beside it. Figures: 10 M operations a second ÷ those that were loaded (median of
rounds, goal at most 1), and bytes for each operation, of the plan and of what its evaluation notes (goal: at most 32).
"""

from __future__ import annotations

import statistics

from bench.common import Figure, finish
from bench.replay import NETWORKS, machine, rounds, said
from bench.traces import Stencil

GOAL_PER_S = 10e6
GOAL_BYTES = 32.0
ROUNDS = 9
STENCILS = {
    "64": Stencil(64, 3300),
    "1024": Stencil(1024, 145),
    "64-rendezvous": Stencil(64, 3300, bytes=262_144),
}
QUICK = {"64": Stencil(64, 200)}


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    print(f"  {machine()}")
    figures = []
    for name, stencil in (QUICK if quick else STENCILS).items():
        found = rounds(stencil, NETWORKS, 3 if quick else ROUNDS)
        took_s = [1e-9 * (one.load_ns + one.plan_ns) for one in found.times]
        per_s = found.operations / statistics.median(took_s)
        each = found.plan.bytes / found.operations
        print(
            f"  {said(stencil)}: {found.operations} operations in {1e3 * statistics.median(took_s):.0f} ms "
            f"({1e3 * min(took_s):.0f} to {1e3 * max(took_s):.0f}, n {len(took_s)}): {1e-6 * per_s:.1f} M/s; "
            f"messages sent and received {1e-6 * per_s * found.plan.operations / found.operations:.1f} M/s; "
            f"{each:.1f} B an operation"
        )
        figures += [
            Figure(name=f"10M-per-s-{name}", value=GOAL_PER_S / per_s, goal=1.0),
            Figure(name=f"bytes-{name}", value=each, goal=GOAL_BYTES),
        ]
    return finish("replay-load", figures)
