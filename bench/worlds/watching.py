"""Worlds for `wulf watch`: a whole cluster that becomes slower slowly, and what is slow for two or three days."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bench.watched import NOISES, SIZES_BYTES, Change, Cluster, Watch, key_of
from bench.worlds.line import Count, World
from wulf.tools.watch.history import alarms as alarming

NODES, ROUNDS = 14, 5
WEEK, MONTHS_A_YEAR = 7, 12
#: Runs before anything happens, and after something is over.
BEFORE, AFTER = 77, 14
USUAL = NOISES[0]


def _seeds(seed: Sequence[int], times: int) -> list[int]:
    return [int(one) for one in np.random.default_rng(seed).integers(1 << 31, size=times)]


def _drifts(watch: Watch) -> list[tuple[int, str]]:
    """Go to the end; return the run and the level of what is found to have changed slowly."""
    found: list[tuple[int, str]] = []
    while watch.run + 1 < watch.cluster.days:
        watch.measure()
        if watch.run % WEEK == 0:
            found += [(watch.run, one.key.level) for one in watch.drifts()]
    return found


def _creep(days: int, size: float) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        change = Change(level="cluster", nodes=(), run=BEFORE, size=math.log1p(size), over=days)
        hits = 0
        for one in _seeds(seed, times):
            cluster = Cluster(USUAL, NODES, BEFORE + days + WEEK, one, [change])
            found = _drifts(Watch(cluster, ROUNDS))
            hits += any(run >= BEFORE and level == "cluster" for run, level in found)
        return Count(hits=hits, of=times)

    return world


def _quiet(seed: Sequence[int], times: int) -> Count:
    """Count the first of each drift that is found in years without any."""
    hits = 0
    for place, one in enumerate(_seeds(seed, times)):
        watch = Watch(Cluster(NOISES[place % len(NOISES)], NODES, 365, one), ROUNDS)
        while watch.run + 1 < watch.cluster.days:
            watch.measure()
            new = watch.look() if watch.run % WEEK == 0 else []
            hits += sum(alarm.kind == "drift" for alarm in new)
    return Count(hits=hits, of=MONTHS_A_YEAR * times)


def _days(seed: Sequence[int], times: int) -> Count:
    """Count series with one alarm that has returned, and one change back, of a node that was slow for some days."""
    rng = np.random.default_rng(seed)
    hits = 0
    for one in _seeds(seed, times):
        nodes = (int(rng.integers(NODES)),)
        size = math.log1p(float(rng.uniform(0.18, 0.35)))
        back = BEFORE + int(rng.integers(2, 4))
        up = Change(level="node", nodes=nodes, run=BEFORE, size=size)
        down = Change(level="node", nodes=nodes, run=back, size=-size)
        cluster = Cluster(USUAL, NODES, back + AFTER, one, [up, down])
        watch = Watch(cluster, ROUNDS)
        while watch.run + 1 < cluster.days:
            watch.measure()
            if watch.run >= BEFORE:
                watch.look()
        for bytes_ in SIZES_BYTES:
            key = key_of(up, cluster, bytes_)
            states = [alarm.state for alarm in watch.alarms if alarming.key_of(alarm) == key]
            hits += states == ["returned", "noted"]
    return Count(hits=hits, of=len(SIZES_BYTES) * times)


WORLDS = (
    World(
        item="E1",
        name="watch-creep-quarter",
        says="clusters that become 10 % slower in 120 days, all nodes together, which is found by then",
        at_least=0.90,
        times=20,
        run=_creep(120, 0.10),
    ),
    World(
        item="E1",
        name="watch-creep-year",
        says="the same of 13 % in 260 days",
        at_least=0.90,
        times=12,
        run=_creep(260, 0.13),
    ),
    World(
        item="E1",
        name="watch-quiet",
        says="slow changes that are found in a month in which there are none",
        at_most=0.10,
        times=8,
        run=_quiet,
    ),
    World(
        item="E1",
        name="watch-some-days",
        says="nodes that are 18 to 35 % slower for two or three days, of which there is one alarm, and that it is over",
        at_least=0.90,
        times=20,
        run=_days,
    ),
)
