"""All pairs of 1,000 nodes: what the controller's plan and bookkeeping cost, and whether what is wrong is named.

For 250, 500 and 1,000 nodes: all pairs are planned in rounds, and one launch of every pair is booked as in a run, the
launches themselves made up. The verdict: two nodes that take twice as long with everybody, and 40 nodes behind a bad
uplink, in a cluster whose nodes scatter by 2 % and pairs by 5 %. Goals: 100 µs of the controller's time a pair, growth
with the number of pairs to the power of at most 1.1, less than 2 GiB, a plan in less than a second, and the verdict
right in 95 of 100.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from contextlib import suppress
from typing import cast

import numpy as np

from bench import scheduling
from bench.common import Figure, finish
from wulf.base.store import Writer
from wulf.node.measuring import loop
from wulf.node.probe import schedule
from wulf.stats.estimate.pairs import suspects

SIZES = (250, 500, 1000)
VERDICTS = 100
OPS, BYTES = ("mpi_pingpong",), [64, 1 << 20]
BAD, RACK = (17, 500), range(640, 680)


def planned(count: int) -> tuple[float, int]:
    """Return how long the rounds of all pairs take to be planned [s], and how many they are."""
    plan = scheduling.manifest(count, OPS, BYTES, "mpi", at_once=True).plan
    begin = time.perf_counter()
    every = schedule.streams(plan)
    jobs = schedule.jobs(plan, every, every, lambda _: False)
    took_s = time.perf_counter() - begin
    for job in jobs:
        used = [node for _, place in job for node in place]
        assert len(used) == len(set(used)), "a round has a node twice"
    return took_s, len(jobs)


def booked(count: int, launches: int) -> float:
    """Return the controller's time between the launches of one round of all pairs [s]."""
    launcher = scheduling.Launcher(launches)
    head = scheduling.manifest(count, OPS, BYTES, "mpi", at_once=True)
    session = loop.Session(cast("Writer", scheduling.Memory(head)), [], launcher, scheduling.Silent())
    with suppress(scheduling.EnoughError):
        session.measure()
    return sum(launcher.between_s)


def verdict(seed: int) -> bool:
    """Whether exactly what is wrong is named."""
    draw = np.random.default_rng(seed)
    count = SIZES[-1]
    added = 0.02 * draw.standard_normal(count)
    added[list(BAD)] += math.log(2)
    rest = np.triu(0.05 * draw.standard_normal((count, count)), 1)
    behind = np.zeros(count, dtype=bool)
    behind[list(RACK)] = True
    logs = added[:, None] + added[None, :] + rest + rest.T + math.log(2) * (behind[:, None] ^ behind[None, :])
    np.fill_diagonal(logs, np.nan)
    found = {(one.kind, tuple(one.nodes)) for one in suspects(logs, list(map(str, range(count))))}
    wanted = {("node", (str(bad),)) for bad in BAD} | {("group", tuple(map(str, RACK)))}
    return found == wanted


def main(arguments: list[str]) -> int:
    """Entry point."""
    repeats = 3 if "--quick" in arguments else VERDICTS
    costs = []
    for count in SIZES[: 2 if "--quick" in arguments else None]:
        plan_s, rounds = planned(count)
        spent_s = booked(count, rounds)
        pairs = count * (count - 1) // 2
        costs.append((pairs, spent_s))
        print(
            f"  {count} nodes: {pairs} pairs in {rounds} rounds planned in {plan_s:.2f} s, "
            f"{1e6 * spent_s / pairs:.1f} µs a pair until all are booked",
            flush=True,
        )
    growth = math.log(costs[-1][1] / costs[0][1]) / math.log(costs[-1][0] / costs[0][0])
    right = sum(verdict(seed) for seed in range(repeats))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return finish(
        "matrix-scale",
        [
            Figure(name="µs-a-pair", value=1e6 * costs[-1][1] / costs[-1][0], goal=100.0),
            Figure(name="growth", value=growth, goal=1.1),
            Figure(name="plan-s", value=plan_s, goal=1.0),
            Figure(name="GiB", value=memory, goal=2.0),
            Figure(name="wrong", value=1 - right / repeats, goal=0.05),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
