"""False alarms and found changes of ``wulf watch``, in simulation: 32 nodes, measured once a day.

Years in which nothing changes give the false alarms a month, over all series together (the cluster, 32 nodes and 496
links, at two sizes): goal at most 1, for every kind of noise in `bench/watched.py`. Steps of 10 % of the cluster, of a
node and of a link, each in a cluster of its own, are to be found within three runs in at least 95 % of the cases, for
the usual noise; creeps of 10 % within 13 weeks by the time that they are there. Every change counts as an alarm, also
one for the better, and one that goes back again as two.

Beside it the change points of Apache Otava (E-divisive with a t test, as its users have it) and of ruptures (PELT with
a penalty as of Bayes' criterion) on the series of the nodes, one look a day as here.

``--long``: ten times as many years. ``--quick``: less of all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, chi2

from bench.common import Figure, finish, require_module
from bench.watched import NOISES, SIZES_BYTES, Change, Cluster, Noise, Watch, key_of
from wulf.tools.watch.history import alarms, judge

NODES = 32
YEAR = 365
MONTHS_A_YEAR = YEAR / judge.DAYS_A_MONTH
STEP = math.log(1.1)
#: Runs by whose end a step is to be found.
SOON = 3
#: Runs before a step, and days in which a creep grows.
BEFORE, CREEP = 90, 91
_WEEKS_BEFORE_CREEP = 12
Series = NDArray[np.float64]


def false_alarms(noise: Noise, seed: int) -> int:
    """Return how many changes a watch finds in a year in which there are none."""
    return sum(len(found) for found in Watch(Cluster(noise, NODES, YEAR, seed)).days())


def step_found(noise: Noise, level: judge.Level, seed: int) -> list[bool]:
    """Whether a step of 10 % is found within three runs, in the series of each size."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(noise, NODES, BEFORE + SOON, seed)
    watch = Watch(cluster)
    for _ in range(BEFORE):
        watch.measure()
    # Of a link it is the first run that measures it which can see the change.
    change = Change(level=level, nodes=_concerned(level, watch, rng), run=BEFORE, size=STEP)
    cluster.changes.append(change)
    found = set()
    for _ in range(SOON):
        watch.measure()
        found |= {alarms.key_of(one) for one in watch.look()}
    return [key_of(change, cluster, size) in found for size in SIZES_BYTES]


def _concerned(level: judge.Level, watch: Watch, rng: np.random.Generator) -> tuple[int, ...]:
    if level == "cluster":
        return ()
    if level == "node":
        return (int(rng.integers(NODES)),)
    pair = watch.next_pairs()[int(rng.integers(len(watch.next_pairs())))]
    first, second = sorted(watch.cluster.names.index(name) for name in pair)
    return (first, second)


def creep_found(noise: Noise, seed: int) -> list[bool]:
    """Whether a node that becomes slower by 10 % in 13 weeks is found by then, in the series of each size."""
    begin = _WEEKS_BEFORE_CREEP * 7
    rng = np.random.default_rng(seed)
    change = Change(level="node", nodes=(int(rng.integers(NODES)),), run=begin, size=STEP, over=CREEP)
    cluster = Cluster(noise, NODES, begin + CREEP + 1, seed, [change])
    watch = Watch(cluster)
    found: set[judge.Key] = set()
    while watch.run + 1 < cluster.days:
        watch.measure()
        if watch.run >= begin and watch.run % 7 == 0:
            found |= {one.key for one in watch.drifts()}
    return [key_of(change, cluster, size) in found for size in SIZES_BYTES]


def node_series(noise: Noise, seed: int, days: int) -> Series:
    """Return what nodes add at one size (nodes, runs), as other programs would get it."""
    watch = Watch(Cluster(noise, NODES, days, seed))
    for _ in range(days):
        watch.measure()
    packed = judge.packed_series(watch.measured(0)[0])
    return next(one.values for one in packed if one.level == "node")


#: A series so far → places of its change points.
Detector = Callable[[Series], list[int]]


def otava() -> Detector:
    """Return how Apache Otava finds change points, with its own settings."""
    analysis = require_module("otava.analysis", "peers")

    def detect(series: Series) -> list[int]:
        found, _ = analysis.compute_change_points([float(value) for value in np.exp(series)])
        return [point.index for point in found]

    return detect


def ruptures() -> Detector:
    """Return how ruptures finds changes of the mean, with the penalty of Bayes' criterion."""
    module = require_module("ruptures", "peers")

    def detect(series: Series) -> list[int]:
        middle = np.median(series)
        scale = 1.4826 * np.median(np.abs(series - middle))
        algorithm = module.Pelt(model="l2", min_size=2, jump=1).fit((series - middle) / scale)
        return list(algorithm.predict(pen=2 * np.log(series.size)))[:-1]

    return detect


def peer(detect: Detector, noise: Noise, seed: int, series: int, days: int) -> tuple[float, float]:
    """Return the false alarms a month that a detector has on all nodes at all sizes, and the share of steps it finds.

    A change point is an alarm when it is first seen; one that is moved by up to three runs is the same.
    """
    rows = node_series(noise, seed, days)[:series]
    alarms = 0
    for row in rows:
        seen: list[int] = []
        for end in range(30, days + 1):
            for point in detect(row[max(0, end - BEFORE) : end]):
                place = point + max(0, end - BEFORE)
                if all(abs(place - other) > SOON for other in seen):
                    alarms += 1
                    seen.append(place)
    months = (days - 30) / judge.DAYS_A_MONTH
    found = 0
    for row in rows:
        stepped = row[:BEFORE].copy()
        stepped[-SOON:] += STEP
        found += any(abs(point - (BEFORE - SOON)) <= 1 for point in detect(stepped))
    return alarms / len(rows) * NODES * len(SIZES_BYTES) / months, found / len(rows)


def _rate(name: str, count: int, years: int) -> Figure:
    """Return false alarms a month, with the interval of a Poisson rate."""
    months = years * MONTHS_A_YEAR
    low = float(chi2.ppf(0.025, 2 * count)) / 2 / months if count else 0.0
    high = float(chi2.ppf(0.975, 2 * count + 2)) / 2 / months
    return Figure(name=name, value=count / months, goal=1.0, low=low, high=high)


def _missed(name: str, found: Iterable[bool]) -> Figure:
    """Return the share that was not found, with its interval (Clopper and Pearson)."""
    every = list(found)
    missed, n = len(every) - sum(every), len(every)
    low = float(beta.ppf(0.025, missed, n - missed + 1)) if missed else 0.0
    high = float(beta.ppf(0.975, missed + 1, n - missed)) if missed < n else 1.0
    return Figure(name=name, value=missed / n, goal=0.05, low=low, high=high)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick, long = "--quick" in arguments, "--long" in arguments
    years = 1 if quick else 40 if long else 4
    trials = 40 if quick else 1000 if long else 150
    figures = []
    with ProcessPoolExecutor() as pool:
        for noise in NOISES:
            counts = list(pool.map(partial(false_alarms, noise), range(1, years + 1)))
            figures.append(_rate(f"false alarms a month, {noise.name}", sum(counts), years))
            print(f"  {noise.name}: {counts} changes found in {years} years without any", flush=True)
        usual = NOISES[0]
        levels: tuple[judge.Level, ...] = ("cluster", "node", "link")
        for level in levels:
            steps = chain.from_iterable(
                pool.map(partial(step_found, usual, level), range(1000, 1000 + trials))
            )
            figures.append(_missed(f"10 % step of a {level} missed", steps))
        creeps = chain.from_iterable(pool.map(partial(creep_found, usual), range(5000, 5000 + trials // 2)))
        figures.append(_missed("10 % creep of a node missed", creeps))
    _print_peers(quick=quick)
    return finish("watch-alarms", figures)


def _print_peers(*, quick: bool) -> None:
    """Print what others would find on the series of the nodes alone; they have no goal here."""
    days, series = (60, 4) if quick else (180, 16)
    for name, make in (("Apache Otava", otava), ("ruptures", ruptures)):
        try:
            detect = make()
        except SystemExit as missing:
            print(f"  {name}: {missing}")
            continue
        alarms, found = peer(detect, NOISES[0], 1, series, days)
        print(
            f"  {name}, series of the nodes, usual noise: {alarms:.1f} false alarms a month, {found:.0%} of 10 % steps "
            f"found within {SOON} runs",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
