"""False "better" or "worse" of ``wulf compare`` in simulation: two runs of a network in which nothing has changed.

What is assumed: launches scatter log-normally; all sizes of a launch move together to a part (placement) and apart
to another; each run has a level of its own, smaller than the scatter of its launches (two runs are never at
exactly the same); some clusters drift, straight on from the first run to the second or as a random walk. Goal: a
verdict "better", "worse" or "mixed" for the whole comparison in at most 5 % of the pairs, for every case.

What no analysis of two runs can do: tell an effect from levels that differ by more than that and leave no trace
inside either run. With levels of 1 % and launches that scatter by 0.5 % a fifth of the pairs is called different;
that case is printed, and does not count.
"""

from __future__ import annotations

import sys

import msgspec
import numpy as np

from wulf.base.records import Analysis, Cell, CellEstimate, Estimate, LaunchPoint
from wulf.stats.core import intervals
from wulf.stats.estimate import compare

SIZES = (1, 64, 1024, 16384, 65536, 1 << 20)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of cluster."""

    name: str
    launches: int
    #: Standard deviation of a launch, common to its sizes, and of each of its sizes (relative).
    common: float
    own: float
    #: Standard deviation of a run's own level.
    level: float = 0.0
    #: Change over a run, straight on from the first run to the second.
    drift: float = 0.0
    #: Standard deviation of a step of a random walk, per launch.
    walk: float = 0.0
    #: False where the case only shows what cannot be done.
    counts: bool = True


CASES = [
    Case(name="quiet", launches=6, common=0.002, own=0.002),
    Case(name="quiet, levels 0.2 %", launches=6, common=0.002, own=0.002, level=0.002),
    Case(name="usual", launches=8, common=0.01, own=0.005, level=0.003),
    Case(name="noisy", launches=20, common=0.05, own=0.02, level=0.005),
    Case(name="very noisy", launches=40, common=0.2, own=0.05, level=0.01),
    Case(name="noise between sizes", launches=10, common=0.0, own=0.05),
    Case(name="drift 2 %", launches=6, common=0.002, own=0.005, drift=0.02),
    Case(name="drift 5 %", launches=12, common=0.01, own=0.005, drift=0.05),
    Case(name="drift 10 %", launches=20, common=0.002, own=0.005, drift=0.1),
    Case(name="random walk", launches=12, common=0.0, own=0.005, walk=0.005),
    Case(name="random walk, long", launches=20, common=0.0, own=0.005, walk=0.01),
    Case(name="levels beyond noise", launches=12, common=0.005, own=0.005, level=0.01, counts=False),
]


def simulate(case: Case, rng: np.random.Generator) -> tuple[Analysis, Analysis]:
    """Two runs, one after the other."""
    n = case.launches
    series = (
        case.common * rng.standard_normal(2 * n)
        + np.repeat(case.level * rng.standard_normal(2), n)
        + case.drift * rng.choice([-1, 1]) * np.arange(2 * n) / n
        + np.cumsum(case.walk * rng.standard_normal(2 * n))
    )
    return _run(case, rng, series[:n], "base"), _run(case, rng, series[n:], "candidate")


def _run(case: Case, rng: np.random.Generator, launch: np.ndarray, name: str) -> Analysis:
    cells = []
    for size in SIZES:
        medians = 1e-5 * (1 + size / 1e4) * np.exp(launch + case.own * rng.standard_normal(case.launches))
        cells.append(estimated(Cell(op="mpi_pingpong", size_bytes=size, place=("a", "b")), medians))
    return Analysis(
        schema_version=1,
        run_id=name,
        cells=cells,
        models=[],
        warnings=[],
        launches_ok=case.launches,
        launches_failed=0,
        launches_contaminated=0,
    )


def estimated(cell: Cell, medians: np.ndarray) -> CellEstimate:
    """Return a cell of a run with these launches."""
    found = intervals.median(medians)
    return CellEstimate(
        cell=cell,
        time=Estimate(
            value=found.value,
            low=found.low,
            high=found.high,
            confidence=0.95,
            unit="s",
            n=found.n,
            method=found.method,
        ),
        bandwidth=None,
        quantiles_s={},
        launches=[
            LaunchPoint(
                launch=f"{index}",
                index=index,
                median_s=float(median),
                quantiles_s={},
                modes=1,
                contaminated=False,
            )
            for index, median in enumerate(medians)
        ],
        iterations=0,
        lost=0,
        corrupt=0,
        modes_between=1,
        target=0.02,
        reached=True,
    )


def false_rates(pairs: int, seed: int = 11) -> dict[str, float]:
    """Share of A/A pairs with a false verdict, by case."""
    rng = np.random.default_rng(seed)
    rates = {}
    for case in CASES:
        verdicts = [compare(*simulate(case, rng), [], []).verdict for _ in range(pairs)]
        rates[case.name] = sum(verdict in ("better", "worse", "mixed") for verdict in verdicts) / pairs
    return rates


def worst_rate(rates: dict[str, float]) -> float:
    """Largest rate of the cases that count."""
    return max(rates[case.name] for case in CASES if case.counts)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    pairs = 300 if "--quick" in arguments else 1000
    rates = false_rates(pairs)
    print(f"{pairs} A/A pairs each:")
    for name, rate in rates.items():
        print(f"  {name:24s} {rate:.1%}")
    worst = worst_rate(rates)
    print(f"aa-sim value={worst:.3f} goal=0.05 {'pass' if worst <= 0.05 else 'short'}")
    return 0 if worst <= 0.05 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
