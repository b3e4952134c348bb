"""The search where two settings can be measured in turn within the same launches."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from tests.unit.make_search import LATENCY, knob, make_plan
from wulf.base.records import Trial
from wulf.node.trials.experiment import Search
from wulf.node.trials.experiment.costs import Costs
from wulf.node.trials.experiment.evidence import Evidence

BUDGET_S = 240.0


def make_trial(index, setting, value, *, within=None, phase="screening", request=None, seconds=2.0):
    return Trial(
        index=index,
        phase=request.phase if request else phase,
        round=request.round if request else 0,
        block=request.block if request else 0,
        setting=setting,
        within=within,
        started_at="2026-01-01T00:00:00Z",
        duration_s=seconds,
        status="ok" if value else "failed",
        error=None if value else "no answer",
        values={"latency": value} if value else {},
    )


class Nodes:
    """Launches have a level of their own, which two settings within one share; some settings fail."""

    def __init__(self, effects, *, seed=1, launch=0.1, inner=0.02, broken="", can=True):
        self.rng = np.random.default_rng(seed)
        self.effects, self.launch, self.inner, self.broken, self.can = effects, launch, inner, broken, can

    def _value(self, setting, level, scatter):
        if self.broken in setting:
            return None
        true = sum(math.log(self.effects.get(name, 1.0)) for name in setting)
        return math.exp(true + level + scatter * self.rng.standard_normal())

    def trials(self, request, index):
        level = self.launch * self.rng.standard_normal()
        if request.beside is None or request.made or not self.can:
            value = self._value(request.setting, level, self.inner)
            return [make_trial(index, request.setting, value, request=request, seconds=3.4)]
        both = request.setting, request.beside
        values = [self._value(setting, level, self.inner) for setting in both]
        if None in values:
            values = [None, None]
        return [
            make_trial(index + i, setting, value, within=index, request=request)
            for i, (setting, value) in enumerate(zip(both, values, strict=True))
        ]

    def run(self, search, left_s=BUDGET_S, most=10**6):
        made, waiting = [], []
        while len(made) < most and (request := search.ask(left_s)) is not None:
            waiting = waiting or self.trials(request, len(made))
            made.append(waiting.pop(0))
            left_s -= made[-1].duration_s
            search.tell(made[-1])
        return made


def plan(live=6, others=0, **other):
    knobs = [knob(f"k{i}", established=True) for i in range(live)] + [knob(f"n{i}") for i in range(others)]
    given = {"metrics": [LATENCY], "budget_s": BUDGET_S, "dwells": 8, "margin": 0.02, "false_discovery": 0.02}
    return make_plan(*knobs, **{**given, **other})


def test_small_effects_are_found_within_launches():
    search = Search(plan())
    made = Nodes({"k2": 0.95}).run(search)
    found = search.tuning("r", "complete")
    assert found.kept == {"k2": "on"}
    assert found.confirmation.ratio.low < 0.95 < found.confirmation.ratio.high
    assert all(trial.within is not None for trial in made if trial.phase != "control")
    assert found.control.smallest_effect < 0.05


def test_where_the_control_shows_that_it_brings_nothing_trials_are_made():
    search = Search(plan())
    nodes = Nodes({"k2": 0.6}, launch=0.0)
    alike = nodes.trials

    def disturbed(request, index):
        pair = alike(request, index)
        if len(pair) == 1:
            return pair
        noise = np.exp(0.3 * nodes.rng.standard_normal(2))
        return [
            msgspec.structs.replace(trial, values={"latency": trial.values["latency"] * factor})
            for trial, factor in zip(pair, noise, strict=True)
        ]

    nodes.trials = disturbed
    made = nodes.run(search)
    assert {trial.within for trial in made if trial.phase == "screening"} == {None}
    assert search.tuning("r", "complete").kept == {"k2": "on"}


def test_nodes_that_cannot_alternate_are_measured_in_trials():
    search = Search(plan())
    made = Nodes({"k2": 0.7}, can=False, launch=0.02).run(search)
    assert {trial.within for trial in made} == {None}
    assert search.tuning("r", "complete").kept == {"k2": "on"}


def test_a_knob_whose_switching_ends_the_connections_is_compared_from_launch_to_launch():
    search = Search(plan(live=3, others=1))
    nodes = Nodes({"k1": 0.7, "k2": 0.8}, launch=0.02)
    alike = nodes.trials
    failed = []

    def severed(request, index):
        pair = alike(request, index)
        if len(pair) == 1 or ("k1" in pair[0].setting) == ("k1" in pair[1].setting):
            return pair
        failed.append(index)
        return [
            msgspec.structs.replace(trial, status="failed", error="no answer for 8 s", values={})
            for trial in pair
        ]

    nodes.trials = severed
    made = nodes.run(search)
    found = search.tuning("r", "complete")
    assert set(found.kept) == {"k1", "k2"}
    assert 1 <= len(failed) <= 2  # then it is known which of three it is
    assert any("k1" in note and "switched gave no value: no answer for 8 s" in note for note in found.notes)
    assert {trial.within is None for trial in made if "k1" in trial.setting and trial.status == "ok"} == {
        True
    }
    assert any(
        trial.within is not None for trial in made if trial.phase == "screening" and trial.status == "ok"
    )


def test_where_nothing_can_be_measured_within_launches_that_is_said():
    search = Search(plan())
    nodes = Nodes({"k2": 0.7}, launch=0.02)
    alike = nodes.trials

    def broken(request, index):
        pair = alike(request, index)
        return (
            pair
            if len(pair) == 1
            else [
                msgspec.structs.replace(trial, status="failed", error="the guard is gone", values={})
                for trial in pair
            ]
        )

    nodes.trials = broken
    made = nodes.run(search)
    assert {trial.within for trial in made if trial.phase == "screening"} == {None}
    found = search.tuning("r", "complete")
    assert found.kept == {"k2": "on"}
    assert any("within one nothing was measured: the guard is gone" in note for note in found.notes)


def test_other_knobs_are_compared_between_launches_beside_them():
    search = Search(plan(live=3, others=3, budget_s=400.0))
    made = Nodes({"k1": 0.9, "n1": 0.6}, launch=0.05).run(search, 400.0)
    found = search.tuning("r", "complete")
    assert found.kept == {"k1": "on", "n1": "on"}
    for trial in made:
        if trial.phase == "screening":
            assert all(name.startswith("n" if trial.within is None else "k") for name in trial.setting)
    assert found.control.smallest_within is not None
    assert found.control.smallest_within < found.control.smallest_effect


def test_a_value_that_fails_within_launches_is_found_and_left_out():
    search = Search(plan())
    Nodes({"k2": 0.9}, broken="k4").run(search)
    found = search.tuning("r", "complete")
    assert found.kept == {"k2": "on"}
    assert any("k4=on is not tried any more" in note for note in found.notes)


@pytest.mark.parametrize("at", [9, 10, 12, 13, 20, 21])
def test_a_search_goes_on_from_stored_trials_also_between_two_of_one_launch(at):
    whole = Nodes({"k2": 0.93}, seed=5)
    first = Search(plan())
    made = whole.run(first)
    again = Search(plan())
    for trial in made[:at]:
        again.tell(trial)
    told = Search(plan())
    for trial in made:
        told.tell(trial)
    assert told.tuning("r", "complete") == first.tuning("r", "complete")
    # The second of a pair whose first one alone was stored is made by itself.
    request = again.ask(BUDGET_S)
    assert request.made == (made[at].within is not None and made[at].within != at)
    assert request.setting == made[at].setting
    rest = [
        msgspec.structs.replace(trial, index=at + i) for i, trial in enumerate(Nodes({}).trials(request, at))
    ]
    again.tell(rest[0])


def test_the_level_of_launches_says_nothing_of_a_difference():
    rng = np.random.default_rng(2)
    known, level = Evidence(Costs([LATENCY])), Evidence(Costs([LATENCY]))
    for number in range(20):
        high = math.exp(rng.standard_normal())
        for index, (setting, factor) in enumerate((({"k": "on"}, 0.9), ({}, 1.0))):
            noise = math.exp(0.01 * rng.standard_normal())
            for evidence, own in ((known, 1.0), (level, high)):
                evidence.take(
                    make_trial(2 * number + index, setting, factor * noise * own, within=2 * number)
                )
    for number in range(40, 46):
        for evidence in (known, level):
            evidence.take(make_trial(number, {}, math.exp(0.2 * rng.standard_normal())))
    first, second = (one.model([("k", "on")]).contrast({"k": "on"}, {}) for one in (known, level))
    assert first.value == pytest.approx(math.log(0.9), abs=0.01)
    assert second.value == pytest.approx(first.value, abs=1e-3)
    assert second.error < 0.01


def test_half_a_pair_says_nothing():
    evidence = Evidence(Costs([LATENCY]))
    assert evidence.take(make_trial(0, {"k": "on"}, 1.0, within=0))
    assert evidence.take(make_trial(1, {}, 1.0))
    assert [row.setting for row in evidence.rows] == [{}]
    assert not evidence.take(make_trial(2, {"k": "on"}, None, within=2))
    assert evidence.take(make_trial(3, {}, 1.0, within=2))
    assert len(evidence.rows) == 1
