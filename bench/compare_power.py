"""What ``wulf compare`` finds and what it falsely claims, of two runs one after the other and of launches in turn.

20 launches of each of two settings, which scatter by 3 % (one standard deviation), in worlds in which

* launches are *independent*, from a normal distribution or one with heavy tails (t, 3 degrees);
* times *drift* by one standard deviation while 20 launches are made, on and on;
* launches resemble the one before them (*AR(1)*), or share a *regime* with the next 4 to 12;
* every run as a whole has an *offset*: uniform within ±5 %, or normal of 2 %; interleaved launches are one run.

A *claim* is a verdict better, worse or mixed: it is false where nothing differs. *Different* says that two runs differ
and that it may be an offset, *refused* that launches depend on each other or that a drift explains it: neither claims
an effect. *None* is "no difference". *Found* is an effect of 5 % that is claimed or, of two runs of independent
launches, called different (between two runs such an effect *may* be an offset; one of 25 % is claimed).

Goal: at most 5 % false claims in every world, for both; a 5 % effect found in at least 90 % of the cases, of two runs
in the independent worlds, and interleaved in all. Two runs must not be called different in more than 5 % of the cases
in the independent worlds, where they are not, and a 25 % effect must be claimed there in 90 %.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench import aa_sim
from bench.coverage import regimes
from wulf.base.records import Analysis, Cell
from wulf.stats.estimate import compare, compare_interleaved

Floats = NDArray[np.float64]
LAUNCHES = 20
SCATTER = 0.03
EFFECT, LARGE = 0.05, 0.25
CELL = Cell(op="mpi_pingpong", size_bytes=64, place=("a", "b"))
MOST_FALSE, LEAST_FOUND = 0.05, 0.9

#: Of so many launches in a row, which run each belongs to → how each differs from the usual, in logarithms.
World = Callable[[np.random.Generator, NDArray[np.intp]], Floats]


def _independent(rng: np.random.Generator, run: NDArray[np.intp]) -> Floats:
    return SCATTER * rng.standard_normal(run.size)


def _heavy(rng: np.random.Generator, run: NDArray[np.intp]) -> Floats:
    return np.asarray(SCATTER / np.sqrt(3) * rng.standard_t(3, run.size), dtype=np.float64)


def _drift(rng: np.random.Generator, run: NDArray[np.intp]) -> Floats:
    path = rng.choice([-1, 1]) * np.arange(run.size) / LAUNCHES
    return np.asarray(SCATTER * (path + rng.standard_normal(run.size)), dtype=np.float64)


def _autoregression(rho: float) -> World:
    def world(rng: np.random.Generator, run: NDArray[np.intp]) -> Floats:
        level = rng.standard_normal(run.size)
        for index in range(1, run.size):
            level[index] = rho * level[index - 1] + np.sqrt(1 - rho**2) * level[index]
        return SCATTER * level

    return world


def _regimes(rng: np.random.Generator, run: NDArray[np.intp]) -> Floats:
    levels = regimes(rng, 1, run.size)[0] + 0.5 * rng.standard_normal(run.size)
    return np.asarray(SCATTER * levels / np.sqrt(1.25), dtype=np.float64)


def _offset(draw: Callable[[np.random.Generator], Floats]) -> World:
    return lambda rng, run: SCATTER * rng.standard_normal(run.size) + draw(rng)[run]


WORLDS: dict[str, World] = {
    "independent": _independent,
    "independent, heavy tails": _heavy,
    "drift of 1 SD a run": _drift,
    "AR(1) 0.3": _autoregression(0.3),
    "AR(1) 0.5": _autoregression(0.5),
    "regimes of 4 to 12": _regimes,
    "offset within ±5 %": _offset(lambda rng: rng.uniform(-0.05, 0.05, 2)),
    "offset, normal, 2 %": _offset(lambda rng: 0.02 * rng.standard_normal(2)),
}
INDEPENDENT = ("independent", "independent, heavy tails")


def _run(name: str, logs: Floats) -> Analysis:
    return Analysis(
        schema_version=1,
        run_id=name,
        cells=[aa_sim.estimated(CELL, 1e-5 * np.exp(logs))],
        models=[],
        warnings=[],
        launches_ok=logs.size,
        launches_failed=0,
        launches_contaminated=0,
    )


def two_runs(world: World, effect: float, rng: np.random.Generator) -> str:
    """Verdict on two runs, one after the other."""
    run = np.repeat([0, 1], LAUNCHES)
    logs = world(rng, run) + np.log1p(effect) * run
    found = compare(_run("base", logs[:LAUNCHES]), _run("candidate", logs[LAUNCHES:]), [], [])
    refused = found.verdict == "no decision" and ("resemble" in found.reason or "drift" in found.reason)
    return "refused" if refused else found.verdict


def in_turn(world: World, effect: float, rng: np.random.Generator) -> str:
    """Verdict on launches that take turns; the order of every pair is drawn for itself."""
    second_first = rng.random(LAUNCHES) < 0.5
    candidate = np.column_stack([second_first, ~second_first]).ravel()
    logs = world(rng, np.zeros(2 * LAUNCHES, dtype=np.intp)) + np.log1p(effect) * candidate
    pairs = [
        ({CELL: 1e-5 * float(np.exp(a))}, {CELL: 1e-5 * float(np.exp(b))})
        for a, b in zip(logs[~candidate], logs[candidate], strict=True)
    ]
    return compare_interleaved("base", "candidate", pairs, candidate_first=second_first.tolist()).verdict


def shares(
    design: Callable[[World, float, np.random.Generator], str], world: World, effect: float, runs: int
) -> Counter[str]:
    """How often each verdict is given, as shares."""
    rng = np.random.default_rng(24)
    counted = Counter(design(world, effect, rng) for _ in range(runs))
    return Counter({verdict: count / runs for verdict, count in counted.items()})


def claims(found: Counter[str]) -> float:
    """Share in which an effect is claimed."""
    return found["better"] + found["worse"] + found["mixed"]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    runs = 200 if "--quick" in arguments else 2000
    print(f"{runs} simulated comparisons each")
    false, found = [], []
    for title, design in (("two runs", two_runs), ("interleaved", in_turn)):
        print(f"\n{title:26s}{'nothing differs:':>42s}{f'{EFFECT:.0%} slower:':>38s}")
        print(f"{'':26s}" + 2 * f"{'claimed':>10s}{'different':>11s}{'refused':>9s}{'none':>8s}")
        for name, world in WORLDS.items():
            same, slower = (shares(design, world, effect, runs) for effect in (0.0, EFFECT))
            print(f"{name:26s}" + "".join(map(_words, (same, slower))), flush=True)
            false.append(claims(same))
            if design is in_turn:
                found.append(slower["worse"])
            elif name in INDEPENDENT:
                false.append(claims(same) + same["different"])
                large = shares(design, world, LARGE, runs)["worse"]
                print(f"{'':26s}{LARGE:.0%} slower: claimed {large:.1%}")
                found += [slower["worse"] + slower["different"], large]
    passed = round(max(false), 3) <= MOST_FALSE and round(min(found), 3) >= LEAST_FOUND
    print(
        f"\ncompare-power value=false:{max(false):.3f},found:{min(found):.3f} "
        f"goal=false:{MOST_FALSE},found:{LEAST_FOUND} {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1


def _words(found: Counter[str]) -> str:
    return (
        f"{claims(found):10.1%}{found['different']:11.1%}{found['refused']:9.1%}{found['no difference']:8.1%}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
