"""Worlds for `wulf program predict`: changes of the run time by calibrations that scatter in ways of their own.

A program that computes and exchanges messages of three sizes, by what the calibration says each of them takes: the true
change is that of the network without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.aa_sim import estimated
from bench.worlds.line import Count, World
from wulf.base.records import Cell, CellEstimate, LogGP
from wulf.stats.prediction import calibrate, operation_times, scenario
from wulf.stats.prediction.draws import Sample
from wulf.stats.prediction.launches import Launches
from wulf.stats.prediction.network import Link, Network, at
from wulf.stats.prediction.uncertainty import estimate

Random = np.random.Generator
Floats = NDArray[np.float64]
SIZES = (1, 64, 1024, 8192, 65536, 262144, 1048576)
EAGER = 65536
#: Of what a byte takes in a round trip, so much is the wire's in a train of messages; the rest is the receiver's.
GAP = 0.8
#: Of the true network [s]: latency, both calls, and what a byte takes.
LATENCY, SEND, RECEIVE, PER_BYTE = 22e-6, 3e-6, 4e-6, 9e-9
#: Each draws its numbers once.
SAMPLES = 120
DRAWS = [Sample(1, number) for number in range(SAMPLES)]
#: What the program sends: bytes → messages; and how long it computes [s].
MESSAGES, COMPUTES = {1024: 4000, 8192: 1500, 65536: 300}, 0.12
SCENARIOS = ("latency=x0.4", "bandwidth=x2.5")


def _true(size: int, gap: float = GAP) -> dict[str, float]:
    wire = PER_BYTE * size
    late = 3 if size > EAGER else 1
    return {
        operation_times.ROUND_TRIP: SEND + wire + late * LATENCY + RECEIVE,
        operation_times.SEND: SEND,
        operation_times.ISEND: SEND,
        operation_times.RECEIVE: RECEIVE,
        operation_times.SHORT: SEND + RECEIVE + LATENCY + gap * wire,
        operation_times.LONG: (SEND + RECEIVE + LATENCY + 16 * gap * wire) / 16,
    }


def _cells(
    rng: Random,
    pairs: int,
    launches: int,
    *,
    together: float,
    sizes: float,
    apart: float,
    gap: float = GAP,
) -> list[CellEstimate]:
    """Return a calibration: launches scatter with all sizes, each size by itself, and pairs are off."""
    places = [("n0", f"n{number}") for number in range(1, pairs + 1)]
    cells = []
    for op in _true(1):
        scatter = together * rng.standard_normal((pairs, launches))
        offset = apart * rng.standard_normal(pairs)
        for size in SIZES:
            for number, place in enumerate(places):
                noise = scatter[number] + sizes * rng.standard_normal(launches) + offset[number]
                times = _true(size, gap)[op] * np.exp(noise)
                cells.append(estimated(Cell(op=op, size_bytes=size, place=place), times))
    return cells


def _way(cells: Sequence[CellEstimate]) -> operation_times.Way:
    limit = LogGP(place=("n0", "n1"), setting="default", eager_limit=(EAGER, EAGER + 1))
    return operation_times.between_nodes(cells, [], [limit], "world")


def _time_s(link: Link) -> float:
    """Return what the program takes, one message after the other."""
    sent = sum(
        count * (at(link.send, size) + at(link.wire, size) + link.latency_ns + at(link.receive, size))
        for size, count in MESSAGES.items()
    )
    return COMPUTES + sent * 1e-9


def _changes(way: operation_times.Way, asked: scenario.Scenario) -> tuple[float, Floats]:
    """Return the likely change, and that of every sample."""

    def change(draw: Sample | None) -> float:
        base = Network(calibrate.link(way, draw), None)
        return _time_s(asked.network(base, draw).between) / _time_s(base.between)

    return change(None), np.array([change(draw) for draw in DRAWS])


def _covered(
    pairs: int, launches: int, gap: float = GAP, **scatter: float
) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        exact = _way(_cells(rng, 2, 6, together=0.0, sizes=0.0, apart=0.0, gap=gap))
        hits = 0
        for number in range(times):
            (asked,) = scenario.parse(SCENARIOS[number % len(SCENARIOS)], _none, _none)
            truth = _changes(exact, asked)[0]
            value, samples = _changes(_way(_cells(rng, pairs, launches, gap=gap, **scatter)), asked)
            found = estimate(value, samples, "ratio", "world")
            assert found.low is not None and found.high is not None, "samples have an interval"
            hits += found.low <= truth <= found.high
        return Count(hits=hits, of=times)

    return world


def _none(name: str) -> Any:
    raise AssertionError(f"{name} is not asked about")


def _traces(seed: Sequence[int], times: int) -> Count:
    """Count intervals of a usual launch that hold it, where each launch resembles the one before it by 0.6."""
    rng = np.random.default_rng(seed)
    numbers = np.array([draw.of("usual launch") for draw in DRAWS])
    hits = 0
    for _ in range(times):
        noise = 0.03 * rng.standard_normal(8 + 50)
        for place in range(1, noise.size):
            noise[place] += 0.6 * noise[place - 1]
        own = Launches((10.0 * np.exp(noise[50:])).tolist())
        found = estimate(own.median_s, own.median_s * own.usual(numbers), "s", "world")
        assert found.low is not None and found.high is not None, "samples have an interval"
        hits += found.low <= 10.0 <= found.high
    return Count(hits=hits, of=times)


def _within(name: str, says: str, run: Callable[[Sequence[int], int], Count], times: int) -> World:
    return World(item="E2", name=f"predict-{name}", says=says, at_least=0.92, times=times, run=run)


_OWN = "intervals of a predicted change that hold the true one"
WORLDS = (
    _within(
        "own-scatter",
        f"{_OWN}: six launches of four pairs, each size with scatter of its own (3 %)",
        _covered(4, 6, together=0.01, sizes=0.03, apart=0.0),
        100,
    ),
    _within(
        "pairs-apart",
        f"{_OWN}: the same with little scatter, six pairs that differ by 6 %",
        _covered(6, 6, together=0.005, sizes=0.005, apart=0.06),
        100,
    ),
    _within(
        "gap-is-rest",
        f"{_OWN}: six launches of four pairs (3 %), where the gap of a train is all that is left of a round trip",
        _covered(4, 6, gap=1.0, together=0.01, sizes=0.03, apart=0.0),
        100,
    ),
    _within(
        "three-launches",
        f"{_OWN}: three launches of a pair that scatter by 4 %",
        _covered(1, 3, together=0.03, sizes=0.02, apart=0.0),
        100,
    ),
    _within(
        "traces-resemble",
        "intervals of a usual launch by eight traces, each of which resembles the one before it by 0.6, that hold it",
        _traces,
        400,
    ),
)
