"""Evaluating a loaded trace on eight networks at a time, on one thread, without and with what the longest path is of.

A stencil of 64 and of 1024 ranks with a small reduction: 5.7 M operations, as LogGOPSim counts them (sends, receives,
computations). Figures: milliseconds for the eight networks (goal: at most 30), and 200 M operations × networks a second
÷ those that were evaluated (goal: at most 1); medians of rounds.
"""

from __future__ import annotations

import statistics

from bench.common import Figure, finish
from bench.replay import NETWORKS, machine, rounds, said
from bench.traces import Stencil

GOAL_MS = 30.0
GOAL_PER_S = 200e6
ROUNDS = 15
STENCILS = (Stencil(64, 3300), Stencil(1024, 145))
QUICK = (Stencil(64, 200),)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    print(f"  {machine()}")
    figures = []
    for stencil in QUICK if quick else STENCILS:
        found = rounds(stencil, NETWORKS, 3 if quick else ROUNDS)
        times = [1e-6 * one.evaluate_ns for one in found.times]
        paths = [1e-6 * one.paths_ns for one in found.times]
        took_ms = statistics.median(times)
        per_s = 1e3 * found.operations * len(NETWORKS) / took_ms
        print(
            f"  {said(stencil)}, vectors of {found.times[0].vectors}: {found.operations} operations × "
            f"{len(NETWORKS)} networks in {took_ms:.1f} ms ({min(times):.1f} to {max(times):.1f}, n {len(times)}): "
            f"{1e-6 * per_s:.0f} M/s; with paths {statistics.median(paths):.1f} ms "
            f"({min(paths):.1f} to {max(paths):.1f})"
        )
        figures += [
            Figure(name=f"ms-{stencil.ranks}", value=took_ms, goal=GOAL_MS),
            Figure(name=f"200M-per-s-{stencil.ranks}", value=GOAL_PER_S / per_s, goal=1.0),
        ]
    return finish("replay-eval", figures)
