"""Roll-outs over simulated fleets of 400 nodes, through the real decisions (`wulf.tools.rollout.schedule`).

In each fleet a change makes most nodes faster by 3 to 20 %. A figure of a pair scatters by 0.5 to 3 % from one launch
to the next (Student's t with 4 degrees of freedom; in "noisy" 5 % with 3), beside what all launches of a moment have in
common, which moves by 2 % from each to the next. In some fleets 2 to 35 % of the nodes are of a kind on which it harms:

hardware    it is of other hardware, which the facts show, and slower by 8 to 100 % with the change
hidden      the same, but no fact shows it
together    it is slower only while both nodes of a pair have the change
large       only large messages are slower
loss        it loses 0.5 to 5 % of datagrams
dead        nothing can be measured with the change
refuses     nodes do not take it

harmful     nodes that harm and are left with the change, over all fleets: goal 0
kept        of the gain on all other nodes, the share that is kept in the end, the mean over the fleets with harm and
            over those without: goal ≥ 95 %
halts       fleets in which nothing more is set on hardware that the change harms nowhere: goal ≤ 2 %
silent      fleets in which a node stops answering in some step: those in which the roll-out does not halt there, or has
            left the step's nodes changed: goal 0

``--quick``: a tenth of the fleets; ``--fleets=N``: N of each kind.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from bench.common import Figure, finish
from wulf.base.records import Pair
from wulf.tools.rollout.evidence import STATES, Loss, Match, Round, StepTest
from wulf.tools.rollout.record import Hardware, RolloutPlan
from wulf.tools.rollout.request import RolloutRequest
from wulf.tools.rollout.schedule import Course, HaltError, measure
from wulf.tools.rollout.work import plan_of

NODES = 400
SEED = 20261126
HARMS = ("hardware", "hidden", "together", "large", "loss", "dead", "refuses")
FIGURES = ("small", "large")
#: Datagrams of a look at the losses.
SENT = 4000


class Fleet(NamedTuple):
    """What is true of a fleet."""

    harm: str
    harmful: frozenset[str]
    #: Difference of logarithms, below zero where it helps.
    gain: float
    cost: float
    loss: float
    scatter: float
    freedom: float
    #: The step in which a node stops answering; −1: none does.
    silent: int = -1


class Ended(NamedTuple):
    """How a roll-out ended."""

    harmful_kept: int
    gain_kept: float
    false_halt: bool
    steps: int
    rounds: int
    silence_passed: bool


def fleet(number: int, harm: str, names: Sequence[str], *, noisy: bool, silent: int) -> Fleet:
    """Draw a fleet."""
    rng = np.random.default_rng([SEED, number, 1])
    some = int(rng.uniform(0.02, 0.35) * len(names)) if harm else 0
    return Fleet(
        harm=harm,
        harmful=frozenset(rng.permutation(names)[:some].tolist()),
        gain=math.log1p(-rng.uniform(0.03, 0.2)),
        cost=math.log1p(rng.uniform(0.08, 1.0)),
        loss=rng.uniform(0.005, 0.05),
        scatter=0.05 if noisy else rng.uniform(0.005, 0.03),
        freedom=3.0 if noisy else 4.0,
        silent=silent,
    )


class Simulated:
    """Nodes of a fleet as they are measured."""

    def __init__(self, true: Fleet, seed: int) -> None:
        self._true = true
        self._rng = np.random.default_rng([SEED, seed, 2])
        self._common = 0.0
        self._step = -1
        #: Nodes that have the change for good.
        self.changed: set[str] = set()

    def prepare(self, matches: Sequence[Match]) -> Mapping[str, str]:
        """Refuse what refuses."""
        self._step += 1
        nodes = [node for match in matches for node in match.pair[: 1 + match.both]]
        if self._true.harm != "refuses":
            return {}
        return {node: "the driver refused it" for node in nodes if node in self._true.harmful}

    def round(self, matches: Sequence[Match], number: int) -> Round:
        """Measure under each state, in random order."""
        if self._step == self._true.silent and number == 2:
            raise HaltError("a node does not answer")
        found: dict[tuple[bool, bool], dict[Pair, dict[str, float] | str]] = {}
        for index in self._rng.permutation(len(STATES)):
            self._common += 0.02 * float(self._rng.standard_normal())
            found[STATES[index]] = {match.pair: self._reading(match, STATES[index]) for match in matches}
        return found

    def _reading(self, match: Match, state: tuple[bool, bool]) -> dict[str, float] | str:
        true = self._true
        second = state[1] if match.both else match.second in self.changed
        having = {node for node, on in ((match.first, state[0]), (match.second, second)) if on}
        bad = having & true.harmful
        if true.harm == "dead" and bad:
            return "it was lost"
        return {name: math.exp(self._log(name, having, bad)) for name in FIGURES}

    def _log(self, figure: str, having: set[str], bad: set[str]) -> float:
        true = self._true
        hurt = {
            "hardware": len(bad),
            "hidden": len(bad),
            "together": len(bad) if len(having) == 2 else 0,
            "large": len(bad) if figure == "large" else 0,
        }.get(true.harm, 0)
        helped = len(having) - (len(bad) if true.harm in ("hardware", "hidden") else 0)
        noise = (
            true.scatter
            * float(self._rng.standard_t(true.freedom))
            / math.sqrt(true.freedom / (true.freedom - 2))
        )
        return self._common + noise + true.gain * helped * (figure == "small") + true.cost * hurt

    def losses(self, matches: Sequence[Match]) -> Mapping[Pair, Loss | str]:
        """Lose datagrams."""
        found = {}
        for match in matches:
            bad = self._true.harmful & {match.first, *([match.second] if match.both else [])}
            share = self._true.loss * len(bad) if self._true.harm == "loss" else 0.0
            without = self._true.loss * len(self._true.harmful & self.changed & {match.second})
            without = without if self._true.harm == "loss" else 0.0
            lost = [int(self._rng.binomial(SENT, min(one, 1.0))) for one in (share + without, without)]
            found[match.pair] = Loss(lost[0], lost[1], SENT)
        return found


def kinds(true: Fleet, names: Sequence[str]) -> list[Hardware]:
    """Return the hardware as facts show it."""
    other = [name for name in names if name in true.harmful] if true.harm == "hardware" else []
    common = [name for name in names if name not in other]
    found = [Hardware(name="A", nodes=common, tried=True), Hardware(name="B", nodes=other, tried=True)]
    return [kind for kind in found if kind.nodes]


def roll(true: Fleet, names: Sequence[str], plan: RolloutPlan, seed: int) -> Ended:
    """Roll a change out."""
    course = Course(plan, kinds(true, names))
    bench = Simulated(true, seed)
    rounds, halted = 0, ""
    while matches := course.next(names):
        test = StepTest(plan, matches)
        try:
            measure(test, bench, plan.rounds)
        except HaltError as error:
            halted = str(error)
            break
        bench.changed |= set(test.passed)
        rounds += test.rounds
        course.take(test.outcomes(course.steps + 1, course.kind_of))
    good = [name for name in names if name not in true.harmful]
    false = any(kind.ended and not true.harmful.issuperset(kind.nodes) for kind in course.hardware())
    passed = true.silent >= 0 and course.steps > true.silent
    return Ended(
        harmful_kept=len(bench.changed & true.harmful),
        gain_kept=len(bench.changed & set(good)) / len(good),
        false_halt=false and not halted,
        steps=course.steps,
        rounds=rounds,
        silence_passed=passed,
    )


def one(number: int, harm: str, noisy: bool, silent: int) -> Ended:
    """Draw a fleet and roll a change out there."""
    names = [f"node{index:03}" for index in range(NODES)]
    plan = plan_of(RolloutRequest(settings=["nic.mtu=9000"]), {"nic.mtu": "9000"}, "", SEED + number)
    return roll(fleet(number, harm, names, noisy=noisy, silent=silent), names, plan, number)


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    given = [word.partition("=")[2] for word in arguments if word.startswith("--fleets=")]
    fleets = int(given[0]) if given else 4 if "--quick" in arguments else 40
    worlds = [(harm, False, -1) for harm in HARMS] + [
        ("hidden", True, -1),
        ("", False, -1),
        ("", True, -1),
        ("", False, 2),
    ]
    shares = dict.fromkeys(worlds, fleets) | {("", False, -1): 5 * fleets, ("", True, -1): 2 * fleets}
    cases = [(number, *world) for world, count in shares.items() for number in range(count)]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(one, *zip(*cases, strict=True), chunksize=4))
    by_world: dict[tuple[str, bool, int], list[Ended]] = {}
    for case, ended in zip(cases, found, strict=True):
        by_world.setdefault(case[1:], []).append(ended)
    for (harm, noisy, silent), runs in by_world.items():
        print(
            f"  {harm or 'none':9s}{' noisy' if noisy else '':7s}{' silent' if silent >= 0 else '':8s} {len(runs):4d} "
            f"fleets: harmful kept {sum(run.harmful_kept for run in runs)}, gain kept "
            f"{np.mean([run.gain_kept for run in runs]):.1%} (worst {min(run.gain_kept for run in runs):.1%}), false "
            f"halts {sum(run.false_halt for run in runs)}, steps {np.mean([run.steps for run in runs]):.1f}, rounds "
            f"{np.mean([run.rounds for run in runs]):.0f}"
        )
    whole = {world: runs for world, runs in by_world.items() if world[2] < 0}
    lost = {
        bool(harm): 1
        - float(
            np.mean([run.gain_kept for w, runs in whole.items() if bool(w[0]) == bool(harm) for run in runs])
        )
        for harm in ("", "harm")
    }
    every = [run for runs in whole.values() for run in runs]
    return finish(
        "rollout",
        [
            Figure(name="harmful", value=float(sum(run.harmful_kept for run in found)), goal=0.0),
            Figure(name="lost-gain-with-harm", value=lost[True], goal=0.05),
            Figure(name="lost-gain-without", value=lost[False], goal=0.05),
            Figure(name="false-halts", value=float(np.mean([run.false_halt for run in every])), goal=0.02),
            Figure(name="silence-passed", value=float(sum(run.silence_passed for run in found)), goal=0.0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
