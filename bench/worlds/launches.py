"""Worlds for the interval of a run: states that last, noise without a scale, launches like the third before, clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.worlds.line import Count, World
from wulf.base.records import Plan, Workload
from wulf.stats.core.trend import DEPENDENT_P, dependence
from wulf.stats.estimate.cells import interval

Floats = NDArray[np.float64]
LAUNCHES = 40
NOISE = 0.01


def states(mean: float) -> Callable[[np.random.Generator, int], Floats]:
    """Two states 3 % apart, with stays of a heavy tail (Pareto, 1.5)."""

    def make(rng: np.random.Generator, count: int) -> Floats:
        levels = np.empty(0)
        high = bool(rng.integers(2))
        while levels.size < count:
            stay = max(int(mean / 3 * (1 + rng.pareto(1.5))), 1)
            levels = np.append(levels, np.full(stay, 0.015 if high else -0.015))
            high = not high
        return levels[:count] + NOISE * rng.standard_normal(count)

    return make


def pink(rng: np.random.Generator, count: int) -> Floats:
    """1/f noise over 4096 launches, of which a run sees the last ones."""
    total = 4096
    spectrum = rng.standard_normal(total // 2 + 1) + 1j * rng.standard_normal(total // 2 + 1)
    spectrum[0] = 0
    spectrum[1:] /= np.sqrt(np.arange(1, total // 2 + 1))
    series = np.fft.irfft(spectrum, total)
    return np.asarray(0.02 * series[-count:] / series.std())


def third(rng: np.random.Generator, count: int) -> Floats:
    """Each launch resembles the third before it by 0.6."""
    noise = NOISE * rng.standard_normal(count + 60)
    for index in range(3, noise.size):
        noise[index] += 0.6 * noise[index - 3]
    return np.asarray(noise[-count:])


def independent(rng: np.random.Generator, count: int) -> Floats:
    return NOISE * rng.standard_normal(count)


def _plan() -> Plan:
    return Plan(
        workload=Workload(parts=[], sweeps=1, visit_us=1000),
        ladder="none",
        max_size_bytes=0,
        precision=0.02,
        confidence=0.95,
        budget_s=60.0,
        min_launches=6,
        max_launches=LAUNCHES,
        tested_launches=24,
        seed=1,
    )


def _silent(make: Callable[[np.random.Generator, int], Floats]) -> Callable[[Sequence[int], int], Count]:
    """Count runs whose interval does not hold the true median, and which say nothing of dependence."""

    def world(seed: Sequence[int], times: int) -> Count:
        rng, plan = np.random.default_rng(seed), _plan()
        hits = 0
        for _ in range(times):
            medians = 20e-6 * np.exp(make(rng, LAUNCHES))
            found = interval([(one, False) for one in medians.tolist()], plan)
            covers = found.low is not None and found.high is not None and found.low <= 20e-6 <= found.high
            p_value = dependence(medians)
            hits += not covers and not (p_value is not None and p_value < DEPENDENT_P)
        return Count(hits=hits, of=times)

    return world


def _warned(seed: Sequence[int], times: int) -> Count:
    rng = np.random.default_rng(seed)
    p_values = [dependence(independent(rng, LAUNCHES)) for _ in range(times)]
    return Count(hits=sum(p is not None and p < DEPENDENT_P for p in p_values), of=times)


def _clock(seed: Sequence[int], times: int) -> Count:
    """Count the intervals that hold the truth where a clock of 1 us tells half of a round trip."""
    rng, plan = np.random.default_rng(seed), _plan()
    hits = 0
    for _ in range(times):
        true = float(rng.uniform(5e-6, 40e-6))
        noise = 0.004 * rng.standard_normal((LAUNCHES, 1)) + 0.01 * rng.standard_normal((LAUNCHES, 101))
        round_trips = 2 * true * np.exp(noise)
        ticks = np.floor(round_trips * 1e6 + rng.random(round_trips.shape))
        points = [(float(one), False) for one in (np.median(ticks, axis=1) * 0.5e-6).tolist()]
        found = interval(points, plan, 0.5e-6)
        hits += found.low is not None and found.high is not None and found.low <= true <= found.high
    return Count(hits=hits, of=times)


WORLDS = (
    *(
        World(
            item="C1",
            name=f"interval-{name}",
            says=f"runs of 40 launches ({said}) that miss the true median and do not warn",
            at_most=0.05,
            times=400,
            run=_silent(make),
        )
        for name, said, make in (
            ("states-6", "two states of 6 launches on average, heavy tails", states(6)),
            ("states-15", "the same of 15", states(15)),
            ("states-40", "the same of 40", states(40)),
            ("pink", "1/f noise", pink),
            ("third", "each resembles the third before it", third),
        )
    ),
    World(
        item="C1",
        name="interval-false-warning",
        says="runs of independent launches that say that these resemble each other",
        at_most=0.06,
        times=2000,
        run=_warned,
    ),
    World(
        item="C2",
        name="interval-clock",
        says="intervals that hold the true time where a clock ticks each microsecond",
        at_least=0.93,
        times=400,
        run=_clock,
    ),
)
