"""What it brings the tuner to switch settings while the probe measures, in simulation: worlds that it has not seen.

Ten knobs, eight of which act on established connections; in half of the worlds one of these helps by 5 %, nothing else
does. Launches differ by 10 % from each other, two settings within one by a further 4 % (Student's t with 3 degrees of
freedom). A trial takes 2.2 s and its change 1.2 s, two settings within a launch 3.8 s, the budget is 5 minutes.

found     of the worlds with a knob that helps, those that keep it: goal ≥ 90 %; beside it the same where all is
          compared from launch to launch
false     worlds of all in which something useless is kept: goal ≤ 2.5 %
inside    of what was found, confirmations whose interval holds the true effect: goal ≥ 90 %
nothing   where switching brings nothing (15 % within a launch, launches alike but for 7 %), an effect of 20 %: found at
          least as often, less a tenth, as from launch to launch
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import msgspec
import numpy as np

from bench import simulated
from bench.common import Figure, finish
from wulf.base.records import Values
from wulf.node.trials.experiment import Search

SEED, WORLDS = 20261123, 200
BUDGET_S, TRIAL_S, CHANGE_S, BOTH_S = 300.0, 2.2, 1.2, 3.8
KNOBS, ESTABLISHED, DWELLS = 10, 8, 8


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of cluster."""

    #: Of the knob that helps, as a share.
    effect: float
    #: Scatter of launches, and of two settings within one, in logarithms.
    launches: float
    within: float


USUAL = World(effect=0.05, launches=0.10, within=0.04)
NOTHING = World(effect=0.20, launches=0.07, within=0.15)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    found: bool
    false: bool
    #: Whether the interval of the confirmation holds the true effect.
    inside: bool


def run(world: World, seed: int, *, planted: bool, dwells: int) -> Outcome:
    """Tune a cluster."""
    rng = np.random.default_rng(seed)
    names = [f"knob{index}" for index in range(KNOBS)]
    plan = simulated.plan(names, BUDGET_S, TRIAL_S, seed)
    candidates = [
        msgspec.structs.replace(one, established=number < ESTABLISHED)
        for number, one in enumerate(plan.candidates)
    ]
    search = Search(msgspec.structs.replace(plan, candidates=candidates, dwells=dwells))
    helpful = names[int(rng.integers(ESTABLISHED))]
    before: Values | None = None

    def noise(scatter: float) -> float:
        return scatter * float(rng.standard_t(3)) / math.sqrt(3)

    def true(setting: Values) -> float:
        return math.log1p(-world.effect) if planted and helpful in setting else 0.0

    def measure(setting: Values) -> simulated.Outcome:
        nonlocal before
        change_s = CHANGE_S if setting != before else 0.0
        before = setting
        return simulated.Outcome(
            cost=true(setting) + noise(world.launches), trial_s=TRIAL_S, change_s=change_s
        )

    def measure_both(first: Values, second: Values) -> tuple[simulated.Outcome, simulated.Outcome]:
        nonlocal before
        before = None
        level = noise(world.launches)
        here, there = (
            simulated.Outcome(
                cost=true(setting) + level + noise(world.within), trial_s=BOTH_S / 2, change_s=0.0
            )
            for setting in (first, second)
        )
        return here, there

    for _ in simulated.trials(search, measure, measure_both):
        pass
    found = search.tuning("simulated", "complete")
    useful = {helpful} if planted else set()
    ratio = found.confirmation.ratio if found.confirmation is not None else None
    inside = ratio is not None and (ratio.low or 0.0) <= 1 - world.effect <= (ratio.high or math.inf)
    return Outcome(
        found=planted and helpful in found.kept, false=bool(set(found.kept) - useful), inside=inside
    )


def found(outcomes: Sequence[Outcome]) -> float:
    """Share of the worlds that keep what helps; every second world has something that does."""
    return sum(outcome.found for outcome in outcomes) / len(outcomes[::2])


def simulate(world: World, worlds: int, dwells: int) -> list[Outcome]:
    """Tune so many clusters of a kind."""
    return [run(world, SEED + number, planted=number % 2 == 0, dwells=dwells) for number in range(worlds)]


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    worlds = 10 if "--quick" in arguments else WORLDS
    figures = []
    shares = {}
    for name, world in (("usual", USUAL), ("nothing", NOTHING)):
        within, between = (simulate(world, worlds, dwells) for dwells in (DWELLS, 0))
        shares[name] = found(within), found(between)
        false = sum(outcome.false for outcome in within) / worlds
        kept = [outcome for outcome in within if outcome.found and not outcome.false]
        outside = sum(not outcome.inside for outcome in kept) / max(len(kept), 1)
        print(
            f"  {name}: found {shares[name][0]:.0%} (from launch to launch {shares[name][1]:.0%}), false {false:.1%} "
            f"(of {worlds}), true effect outside its interval {outside:.0%}",
            flush=True,
        )
        figures.append(Figure(name=f"{name}-false", value=false, goal=0.025))
        if world is USUAL:
            figures.append(Figure(name="missed", value=1 - shares[name][0], goal=0.1))
            figures.append(Figure(name="outside", value=outside, goal=0.1))
    lost = max(shares["nothing"][1] - shares["nothing"][0], 0.0)
    figures.append(Figure(name="lost-where-it-brings-nothing", value=lost, goal=0.1))
    return finish("tune-within", figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
