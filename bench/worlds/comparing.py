"""Worlds for `wulf compare` of two runs: pairs and cells that come back a little different, though nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.aa_sim import SIZES, estimated
from bench.worlds.line import Count, World
from wulf.base.records import Analysis, Cell, CellEstimate, Comparison
from wulf.stats.estimate import compare, compare_interleaved

PAIRS, LAUNCHES, SCATTER = 10, 8, 0.01
#: Of launches in turn: pairs, and how a launch scatters.
TURNS, TURN_SCATTER = 24, 0.025
#: Of a cell that is really slower.
SLOWER = 1.35
SLOW_DAY = 1.2


def _two_runs(
    rng: np.random.Generator, of_pairs: float, of_cells: float, slower: float, day: float = 1.0
) -> Comparison:
    """Compare two runs whose pairs and cells are off by so much; the first cell, or all, take so many times as long."""
    sides: tuple[list[CellEstimate], list[CellEstimate]] = ([], [])
    for number in range(PAIRS):
        own = of_pairs * rng.standard_normal() + np.log(day)
        for size in SIZES:
            offset = own + of_cells * rng.standard_normal()
            cell = Cell(op="mpi_pingpong", size_bytes=size, place=("a", f"b{number}"))
            changed = np.log(slower) if (number, size) == (0, SIZES[0]) else 0.0
            for side, shift in zip(sides, (0.0, offset + changed), strict=True):
                noise = SCATTER * rng.standard_normal(LAUNCHES)
                side.append(estimated(cell, 1e-5 * np.exp(shift + noise)))
    base, candidate = (
        Analysis(
            schema_version=1,
            run_id=name,
            cells=cells,
            models=[],
            warnings=[],
            launches_ok=LAUNCHES,
            launches_failed=0,
            launches_contaminated=0,
        )
        for name, cells in zip(("base", "candidate"), sides, strict=True)
    )
    return compare(base, candidate, [], [])


def _alarms(of_pairs: float, of_cells: float) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        runs = (_two_runs(rng, of_pairs, of_cells, 1.0) for _ in range(times))
        hits = sum(any(cell.verdict in ("better", "worse") for cell in run.cells) for run in runs)
        return Count(hits=hits, of=times)

    return world


def _slow_days(seed: Sequence[int], times: int) -> Count:
    """Count verdicts on two runs of the same where a day in ten takes `SLOW_DAY` times as long as a whole."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(times):
        first, second = (SLOW_DAY if slow else 1.0 for slow in rng.random(2) < 0.1)
        hits += _two_runs(rng, 0.01, 0.01, 1.0, second / first).verdict in ("better", "worse")
    return Count(hits=hits, of=times)


def _found(seed: Sequence[int], times: int) -> Count:
    rng = np.random.default_rng(seed)
    runs = (_two_runs(rng, 0.02, 0.02, SLOWER) for _ in range(times))
    return Count(hits=sum(run.cells[0].verdict == "worse" for run in runs), of=times)


def _in_turn(rng: np.random.Generator, carried: float, effect: float) -> Comparison:
    """Compare two sides in turn: the candidate leaves so much to the next launch, whatever that is."""
    order = rng.random(TURNS) < 0.5
    cell = Cell(op="mpi_pingpong", size_bytes=64, place=("a", "b"))
    pairs, last = [], False
    for candidate_first in order:
        times = {}
        for candidate in (bool(candidate_first), not candidate_first):
            noise = TURN_SCATTER * rng.standard_normal() + carried * last + effect * candidate
            times[candidate] = {cell: 1e-5 * float(np.exp(noise))}
            last = candidate
        pairs.append((times[False], times[True]))
    return compare_interleaved("base", "candidate", pairs, candidate_first=order.tolist())


def _turns(carried: float, effect: float, *verdicts: str) -> Callable[[Sequence[int], int], Count]:
    def world(seed: Sequence[int], times: int) -> Count:
        rng = np.random.default_rng(seed)
        hits = sum(_in_turn(rng, carried, effect).verdict in verdicts for _ in range(times))
        return Count(hits=hits, of=times)

    return world


WORLDS = (
    World(
        item="B4",
        name="compare-turns-carried",
        says="interleaved comparisons of the same, called better or worse as one leaves 5 % to the next launch",
        at_most=0.05,
        times=1000,
        run=_turns(0.05, 0.0, "better", "worse"),
    ),
    World(
        item="B4",
        name="compare-turns-found",
        says="interleaved comparisons that call a candidate worse that is slower by 5 % and leaves nothing",
        at_least=0.85,
        times=500,
        run=_turns(0.0, 0.05, "worse"),
    ),
    World(
        item="B4",
        name="compare-turns-none",
        says="interleaved comparisons of the same that leaves nothing, called better or worse",
        at_most=0.02,
        times=1000,
        run=_turns(0.0, 0.0, "better", "worse"),
    ),
    World(
        item="C3",
        name="compare-pairs-off",
        says="two runs of the same, whose pairs are off by 4.5 %, of which any cell is called better or worse",
        at_most=0.05,
        times=100,
        run=_alarms(0.045, 0.0),
    ),
    World(
        item="C3",
        name="compare-cells-off",
        says="the same where each cell is off by 4.5 %",
        at_most=0.05,
        times=100,
        run=_alarms(0.0, 0.045),
    ),
    World(
        item="C3",
        name="compare-cell-found",
        says="cells that take 35 % longer, and are called worse, where pairs and cells are off by 2 %",
        at_least=0.90,
        times=100,
        run=_found,
    ),
    World(
        item="C3",
        name="compare-slow-day",
        says="two runs of the same, called better or worse, where a day in ten is 20 % slower as a whole",
        at_most=0.05,
        times=100,
        run=_slow_days,
    ),
)
