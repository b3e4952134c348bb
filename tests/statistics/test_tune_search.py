import itertools
import math

import msgspec
import pytest

from tests.unit.make_search import LATENCY, TAIL, Simulation, factors, knob, make_plan, tuned
from wulf.base.errors import AnalysisError, UsageError
from wulf.base.records import Metric, Tuning
from wulf.node.trials.experiment import Search

THREE = (knob("a"), knob("b"), knob("c"))


def test_two_useful_knobs_are_kept_and_confirmed():
    found = tuned(make_plan(*THREE), factors(a=0.9, b=0.85))
    assert found.status == "complete"
    assert found.kept == {"a": "on", "b": "on"}
    assert found.confirmation.verdict == "better"
    assert found.confirmation.ratio.low < 0.9 * 0.85 < found.confirmation.ratio.high
    assert found.path[0].action == "start"
    assert found.path[-1].action == "confirm"
    assert {effect.phase for effect in found.effects} == {"screening", "forward", "backward", "confirmation"}


def test_nothing_is_kept_where_nothing_helps():
    found = tuned(make_plan(*THREE), factors(c=1.1))
    assert found.status == "complete"
    assert found.kept == {}
    assert found.confirmation is None
    assert found.trials_used < 60


def test_a_knob_that_another_makes_useless_is_not_kept():
    def truth(setting):
        return {"latency": 0.8 if setting.keys() & {"a", "b"} else 1.0}

    found = tuned(make_plan(*THREE), truth)
    assert len(found.kept) == 1


def test_a_knob_that_helps_only_on_top_of_another_is_found():
    def truth(setting):
        return {"latency": {0: 1.0, 1: 0.85, 2: 0.7}["a" in setting and 1 + ("b" in setting)]}

    assert tuned(make_plan(*THREE), truth).kept == {"a": "on", "b": "on"}


def test_a_numeric_knob_is_refined():
    def truth(setting):
        value = float(setting.get("n", 4))
        return {"latency": math.exp(0.05 * (math.log2(value) - 4.5) ** 2)}

    numeric = knob("n", ["8", "16", "64", "256"], numeric=True, original="4")
    found = tuned(make_plan(numeric), truth, spread=0.002)
    assert 20 <= int(found.kept["n"]) <= 26
    assert any(step.action == "refine" for step in found.path)


def test_the_direction_of_a_metric_is_turned_to_a_cost():
    rate = Metric(name="rate", pattern="stream", unit="B/s", better="higher", weight=1.0)
    plan = make_plan(knob("a"), knob("b"), metrics=[rate])
    found = tuned(plan, lambda setting: {"rate": 1.2 if "a" in setting else 0.8 if "b" in setting else 1.0})
    assert found.kept == {"a": "on"}
    assert found.confirmation.metrics["rate"].value == pytest.approx(1 / 1.2, rel=0.02)
    assert found.confirmation.patterns == {"stream": "better"}


def test_a_knob_that_harms_a_guard_is_not_kept():
    def truth(setting):
        return {"latency": 0.8 if "a" in setting else 1.0, "tail": 3.0 if "a" in setting else 2.0}

    found = tuned(make_plan(*THREE), truth)
    assert found.kept == {}
    assert found.effects[0].harmed == ["tail"]
    assert any("tail" in note for note in found.notes)


def test_a_guard_that_only_two_together_harm_costs_one_of_them():
    def truth(setting):
        both = {"a", "b"} <= setting.keys()
        return {**factors(a=0.8, b=0.9)(setting), "tail": 3.0 if both else 2.0}

    assert tuned(make_plan(*THREE), truth).kept == {"a": "on"}


def test_a_setting_that_fails_is_dropped_and_noted():
    search = Search(make_plan(*THREE))
    trials = Simulation(lambda setting: None if "a" in setting else {"latency": 1.0}).run(search)
    found = search.tuning("run", "complete")
    assert sum("a" in trial.setting for trial in trials) <= 4
    assert any("a=on" in note and "no value" in note for note in found.notes)
    failing = next(effect for effect in found.effects if effect.knob == "a")
    assert failing.failed == sum("a" in trial.setting for trial in trials)
    assert (failing.trials, failing.verdict) == (0, "no decision")


def test_what_fails_now_and_then_is_not_kept():
    class Flaky(Simulation):
        def trial(self, request, index):
            made = super().trial(request, index)
            if "a" not in request.setting or index % 5 not in (1, 2, 4):
                return made
            return msgspec.structs.replace(made, status="failed", error="no answer", values={})

    search = Search(make_plan(*THREE))
    Flaky(factors(a=0.7, b=0.9), spread=0.003).run(search)
    found = search.tuning("run", "complete")
    assert found.kept == {"b": "on"}, found.notes
    assert any("a" in note for note in found.notes)


def test_the_original_setting_that_fails_ends_the_search():
    search = Search(make_plan(*THREE))
    trials = Simulation(lambda setting: None).run(search)
    found = search.tuning("run", "complete")
    assert found.status == "failed"
    assert len(trials) == 6
    assert found.control is None
    assert "gave no value" in found.notes[0]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_values_that_have_no_logarithm_are_left_out(value):
    def truth(setting):
        return {"latency": value if "b" in setting else 0.9 if "a" in setting else 1.0}

    found = tuned(make_plan(*THREE), truth)
    assert found.kept == {"a": "on"}
    assert "no value in" in next(effect for effect in found.effects if effect.knob == "b").note


def test_a_missing_metric_without_weight_does_not_matter():
    plan = make_plan(*THREE, metrics=[LATENCY, TAIL, msgspec.structs.replace(TAIL, name="absent")])
    found = tuned(plan, factors(a=0.9))
    assert found.kept == {"a": "on"}
    assert set(found.confirmation.metrics) == {"latency", "tail"}


def test_contaminated_trials_are_not_used_where_there_are_enough_others():
    class Foreign(Simulation):
        def trial(self, request, index):
            made = super().trial(request, index)
            if index % 5:
                return made
            slow = {name: 3 * value for name, value in made.values.items()}
            return msgspec.structs.replace(made, values=slow, contamination=["load"])

    search = Search(make_plan(*THREE))
    Foreign(factors(a=0.95)).run(search)
    found = search.tuning("run", "complete")
    assert found.kept == {"a": "on"}
    assert found.control.spread < 0.03


def test_without_time_nothing_is_measured():
    search = Search(make_plan(*THREE))
    assert search.ask(1.0) is None
    found = search.tuning("run", "complete")
    assert found.status == "budget"
    assert found.kept == {}


def test_what_cannot_be_confirmed_is_not_kept():
    plan = make_plan(*THREE)
    search = Search(plan)
    simulation = Simulation(factors(a=0.8, b=0.8))
    trials = []
    # The time ends in the middle of the confirmation, though the plan promised more.
    while (request := search.ask(800.0)) is not None and request.phase != "confirmation":
        trials.append(simulation.trial(request, len(trials)))
        search.tell(trials[-1])
    simulation.run(search, trials, left_s=5.0)
    found = search.tuning("run", "complete")
    assert found.status == "budget"
    assert found.kept == {}
    assert any(step.action == "keep" for step in found.path)
    assert "no time to confirm" in found.notes[-1]


def test_time_for_the_confirmation_is_kept_back():
    for budget_s in range(80, 400, 40):
        found = tuned(make_plan(*THREE, budget_s=float(budget_s)), factors(a=0.8, b=0.8))
        kept_once = any(step.action == "keep" for step in found.path)
        assert bool(found.kept) == kept_once, budget_s


def test_all_candidates_are_tried_though_the_time_is_short():
    many = [knob(f"k{i}", effect=0.1 * i) for i in range(20)]
    search = Search(make_plan(*many, budget_s=160.0))
    trials = Simulation(factors(k3=0.8)).run(search)
    found = search.tuning("run", "complete")
    assert found.kept == {"k3": "on"}
    assert {name for trial in trials for name in trial.setting} == {f"k{i}" for i in range(20)}


def test_what_could_not_be_told_apart_is_said():
    many = [knob(f"k{i}") for i in range(20)]
    found = tuned(make_plan(*many, budget_s=60.0), factors())
    assert found.status == "budget"
    assert "could not all be told apart" in found.notes[0]


def test_no_candidates_is_a_control_only():
    found = tuned(make_plan(), factors())
    assert (found.status, found.kept) == ("complete", {})
    assert found.trials_used <= 6


def test_plans_without_objective_are_refused():
    with pytest.raises(UsageError, match="weight"):
        Search(make_plan(*THREE, metrics=[TAIL]))


def test_the_same_plan_and_trials_give_the_same_search():
    runs = [Simulation(factors(a=0.9, b=0.95)).run(Search(make_plan(*THREE))) for _ in range(2)]
    assert runs[0] == runs[1]
    other = Simulation(factors(a=0.9, b=0.95)).run(Search(make_plan(*THREE, seed=2)))
    assert [trial.setting for trial in other] != [trial.setting for trial in runs[0]]


@pytest.mark.parametrize("budget_s", [800.0, 230.0])
def test_a_search_goes_on_after_any_trial_as_if_nothing_had_been(budget_s):
    plan = make_plan(*THREE, knob("n", ["8", "64"], numeric=True, original="4"), budget_s=budget_s)
    simulation = Simulation(factors(a=0.9, b=0.95, n=0.9))
    whole = Search(plan)
    trials = simulation.run(whole)
    conclusion = whole.tuning("run", "complete")
    search = Search(plan)
    for used, trial in enumerate(trials):
        early = search.tuning("run", "interrupted")
        assert msgspec.json.decode(msgspec.json.encode(early), type=Tuning) == early
        assert (early.trials_used, early.kept) == (used, {})
        search.tell(trial)
    assert search.ask(0.0) is None
    assert search.tuning("run", "complete") == conclusion
    for cut in range(1, len(trials), 17):
        search = Search(plan)
        for trial in trials[:cut]:
            search.tell(trial)
        assert simulation.run(search, trials[:cut]) == trials
        assert search.tuning("run", "complete") == conclusion


def test_a_trial_of_another_plan_is_refused():
    trials = Simulation(factors(a=0.9)).run(Search(make_plan(*THREE)))
    search = Search(make_plan(knob("z")))
    with pytest.raises(AnalysisError, match="does not belong"):
        for trial in trials:
            search.tell(trial)


def test_the_forecast_comes_true_roughly():
    search = Search(make_plan(*THREE))
    simulation = Simulation(factors(a=0.9, b=0.95))
    forecasts, trials = [], []
    while (request := search.ask(800.0)) is not None:
        forecasts.append(search.forecast())
        assert forecasts[-1].phase == request.phase
        trials.append(simulation.trial(request, len(trials)))
        search.tell(trials[-1])
    left = [len(trials) - index for index in range(len(trials))]
    assert all(
        forecast.trials_left <= 4 * max(actual, 20) for forecast, actual in zip(forecasts, left, strict=True)
    )
    assert forecasts[0].trials_left >= len(trials) / 4
    screening = [forecast for forecast in forecasts if forecast.phase == "screening"]
    assert screening[-1].leader == "a=on"
    assert screening[-1].effect.value == pytest.approx(0.9, rel=0.02)
    assert 0 < screening[-1].smallest < 0.05
    assert forecasts[-1].testing in (["a=on", "b=on"], [])
    assert (search.forecast().phase, search.forecast().trials_left) == (None, 0)


def test_half_of_the_knobs_are_set_in_a_trial_and_the_others_in_the_next():
    names = [f"k{i}" for i in range(10)]
    trials = Simulation(factors()).run(Search(make_plan(*map(knob, names))))
    pairs = {}
    for trial in trials:
        if trial.phase == "screening":
            pairs.setdefault((trial.round, trial.block), []).append(set(trial.setting))
    assert len(pairs) >= 6
    for first, second in pairs.values():
        assert first | second == set(names)
        assert not first & second


def test_what_is_dear_to_change_is_changed_seldom():
    dear = [knob("mtu", ["9000"], toggle_s=20.0), knob("rings", ["512"], toggle_s=20.0)]
    search = Search(make_plan(*dear, *THREE, budget_s=5000.0))
    trials = Simulation(factors(mtu=0.9)).run(search)
    assert search.tuning("run", "complete").kept == {"mtu": "9000"}
    for name in ("mtu", "rings"):
        values = [trial.setting.get(name) for trial in trials if trial.phase != "confirmation"]
        assert 4 <= sum(map(bool, values)) <= 40
        assert sum(one != other for one, other in itertools.pairwise(values)) <= len(values) / 4
    alone = [trial.setting for trial in trials if "rings" in trial.setting]
    assert all(len(setting) <= 2 for setting in alone)


def test_a_change_that_takes_longer_than_assumed_is_made_seldom():
    class Slow(Simulation):
        def trial(self, request, index):
            made = super().trial(request, index)
            before, self.before = getattr(self, "before", {}), request.setting
            change_s = 30.0 if ("a" in before) != ("a" in request.setting) else 0.5
            return msgspec.structs.replace(made, duration_s=2.0 + change_s, change_s=change_s)

    search = Search(make_plan(*THREE, knob("d"), knob("e"), budget_s=3000.0))
    trials = Slow(factors(b=0.9), spread=0.03).run(search)
    late = [trial.setting for trial in trials if trial.phase == "screening"][-8:]
    assert not any("a" in setting for setting in late)
    assert search.tuning("run", "complete").kept == {"b": "on"}


def test_a_reference_makes_small_effects_visible():
    class Noisy(Simulation):
        def trial(self, request, index):
            made = super().trial(request, index)
            return msgspec.structs.replace(
                made, reference=math.exp(self.noise[index]) if self.known else None
            )

    kept = []
    for known in (True, False):
        search = Search(make_plan(*THREE, budget_s=200.0))
        simulation = Noisy(factors(a=0.96), spread=0.1)
        simulation.known = known
        simulation.run(search)
        kept.append(search.tuning("run", "complete").kept)
    assert kept == [{"a": "on"}, {}]


def test_a_knob_that_moves_the_reference_is_judged_without_it():
    """A reference that a knob slows down would show what does nothing else as a gain."""

    class Moved(Simulation):
        def trial(self, request, index):
            made = super().trial(request, index)
            slow = 1.3 if "a" in request.setting else 1.0
            return msgspec.structs.replace(made, reference=slow * math.exp(self.noise[index]))

    for local in (True, False):
        search = Search(make_plan(knob("a", local=local), knob("b"), knob("c")))
        Moved(factors(), spread=0.05).run(search)
        assert search.tuning("run", "complete").kept == {}
