import itertools
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from tests.unit.make_search import LATENCY, knob, make_plan
from wulf.base.records import Trial
from wulf.node.trials.experiment import choice, design, power, refine
from wulf.node.trials.experiment.clock import Clock
from wulf.node.trials.experiment.costs import Costs
from wulf.node.trials.experiment.evidence import Evidence
from wulf.node.trials.experiment.failures import Failing
from wulf.stats.core.paired import paired_shift, paired_verdict, pseudo_median

LOGS = st.lists(st.floats(-3, 3, allow_nan=False), min_size=1, max_size=25)


@given(LOGS)
def test_shift_lies_within_its_interval(differences):
    found = paired_shift(differences)
    assert found.ratio.value == pytest.approx(np.exp(pseudo_median(differences)))
    assert 0 < found.p_value <= 1
    if len(differences) < 6:
        assert found.ratio.low is None
    else:
        assert found.ratio.low <= found.ratio.value <= found.ratio.high


@given(LOGS)
def test_shift_turns_with_its_sign(differences):
    there, back = paired_shift(differences), paired_shift([-value for value in differences])
    assert there.p_value == pytest.approx(back.p_value)
    assert there.ratio.value == pytest.approx(1 / back.ratio.value)


@pytest.mark.parametrize("n", [5, 8, 12, 20])
def test_p_values_are_those_of_scipy(n):
    values = np.random.default_rng(n).normal(0.3, 1, n)
    assert paired_shift(values).p_value == pytest.approx(wilcoxon(values, method="exact").pvalue)


def test_published_example_of_walsh_averages():
    # Critical values of the signed-rank statistic, two-sided 5 %: 0 for n = 6, 8 for 10, 52 for 20 (Wilcoxon 1945).
    from wulf.stats.core.paired import critical_rank

    assert [critical_rank(n, 0.95) for n in (5, 6, 10, 20)] == [None, 1, 9, 53]


def test_pairs_without_a_difference_prove_nothing():
    assert paired_shift([0.0] * 10).p_value == 1.0
    assert paired_shift([0.0] * 4 + [0.1] * 8).p_value == pytest.approx(2 / 2**8)
    with pytest.raises(ValueError, match="nothing"):
        paired_shift([])


@pytest.mark.parametrize(
    ("differences", "comparisons", "said"),
    [
        ([-0.1, -0.11, -0.12, -0.1, -0.13, -0.11, -0.1, -0.12], 1, "better"),
        ([0.1, 0.11, 0.12, 0.1, 0.13, 0.11, 0.1, 0.12], 4, "worse"),
        # 2 / 2⁸ is not sure enough for one of ten.
        ([-0.1, -0.11, -0.12, -0.1, -0.13, -0.11, -0.1, -0.12], 10, "no decision"),
        ([-0.001, 0.002, 0.001, -0.002, 0.001, 0.002, -0.001, 0.001], 1, "no difference"),
        ([-0.5] * 4, 1, "no decision"),
    ],
)
def test_a_verdict_counts_what_else_was_compared(differences, comparisons, said):
    assert paired_verdict(paired_shift(differences), comparisons, 0.02) == said


# ---- which settings are tried


@pytest.mark.parametrize("knobs", [1, 2, 3, 5, 7, 11, 12, 19, 20, 23, 24, 40, 61])
def test_a_screening_design_is_balanced(knobs):
    levels = {f"k{i}": ["on"] for i in range(knobs)}
    folds = design.screening(levels, np.random.default_rng(1))
    rows = np.array([[1 if name in part else -1 for name in levels] for fold in folds for part in fold])
    # Every knob is on as often as off, with every other one: all columns are orthogonal, and to pairs of others.
    assert (rows.sum(axis=0) == 0).all()
    assert (rows.T @ rows == len(rows) * np.eye(knobs)).all()
    pairs = np.array([rows[:, a] * rows[:, b] for a, b in itertools.combinations(range(min(knobs, 12)), 2)])
    if len(pairs):
        assert not (pairs @ rows).any()
    assert len(folds) <= 2 * (knobs + 1)


def test_values_of_a_knob_take_turns():
    folds = design.screening({"a": ["1", "2", "3"], "b": ["on"]}, np.random.default_rng(2))
    seen = [part["a"] for fold in folds for part in fold if "a" in part]
    assert len(folds) == 4
    assert sorted(seen) == sorted((["1", "2", "3"] * 2)[: len(seen)]) or set(seen) == {"1", "2", "3"}


def test_a_factorial_has_every_combination_before_any_comes_again():
    endless = design.factorial({"a": ["on"], "b": ["on"], "c": ["on"]}, np.random.default_rng(3))
    first = list(itertools.islice(endless, 4))
    assert len({tuple(sorted(part)) for fold in first for part in fold}) == 8
    assert next(endless)


# ---- what a change costs


def trial(index, setting, **other):
    given = {
        "phase": "screening",
        "round": 0,
        "block": 0,
        "started_at": "2025-01-01T00:00:00Z",
        "duration_s": 2.0,
        "status": "ok",
        "values": {"latency": 1.0, "tail": 1.0},
    }
    return Trial(index=index, setting=setting, **{**given, **other})


def test_costs_of_changes_are_learnt():
    clock = Clock(make_plan(knob("a", toggle_s=0.3), knob("b", toggle_s=0.3)))
    assert clock.cost_s(frozenset(["a", "b"])) == pytest.approx(0.6)
    settings = [{}, {"a": "on"}, {"a": "on", "b": "on"}, {"b": "on"}, {}] * 4
    before: dict[str, str] = {}
    for index, setting in enumerate(settings):
        changed = {name for name, _ in set(before.items()) ^ set(setting.items())}
        change_s = (1.0 if changed else 0.0) + (15.0 if "b" in changed else 0.0)
        clock.take(trial(index, setting, duration_s=2.2 + change_s, change_s=change_s))
        before = setting
    assert clock.trial_s == pytest.approx(2.2)
    assert clock.cost_s(frozenset("b")) == pytest.approx(16.0, rel=0.1)
    assert clock.cost_s(frozenset("a")) < 2.0
    assert clock.cost_s(frozenset()) == 0.0
    assert clock.is_dear(knob("b"))
    assert not clock.is_dear(knob("a"))


# ---- what fails


def test_a_value_that_fails_now_and_then_is_found():
    failing = Failing()
    rng = np.random.default_rng(4)
    for _ in range(40):
        setting = {name: "on" for name in "abcd" if rng.random() < 0.5}
        failing.take(setting, not ("a" in setting and rng.random() < 0.6))
    assert failing.unreliable({name: "on" for name in "abcd"}) == ("a", "on")
    assert failing.unreliable({"b": "on", "c": "on"}) is None
    assert failing.suspects({"a": "on", "z": "on"}) == [("z", "on")]


# ---- what trials say


def evidence_of(rows, local=frozenset()):
    """Rows: (setting, log cost, log reference or None, contaminated)."""
    found = Evidence(Costs([LATENCY]), local)
    for index, (setting, cost, reference, contaminated) in enumerate(rows):
        found.take(
            trial(
                index,
                setting,
                values={"latency": math.exp(cost)},
                reference=None if reference is None else math.exp(reference),
                contamination=["load"] if contaminated else [],
            )
        )
    return found


def test_a_model_tells_effects_apart_and_sees_pairs():
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(60):
        setting = {name: "on" for name in "abc" if rng.random() < 0.5}
        cost = -0.2 * ("a" in setting) + 0.2 * ({"a", "b"} <= setting.keys()) + 0.01 * rng.standard_normal()
        rows.append((setting, cost, None, False))
    arms = [(name, "on") for name in "abc"]
    model = choice.with_joints(evidence_of(rows), arms, {name: ["on"] for name in "abc"})
    assert frozenset(arms[:2]) in model.columns
    assert model.effect({"a": "on"}) == pytest.approx(-0.2, abs=0.02)
    assert model.effect({"a": "on", "b": "on"}) == pytest.approx(0.0, abs=0.02)
    kept = choice.best(model, {name: ["on"] for name in "abc"}, 0.001, 0.01, lambda _: True)
    assert kept == {"a": "on"}


def test_contamination_is_a_covariate():
    rng = np.random.default_rng(6)
    rows = []
    for index in range(40):
        setting = {"a": "on"} if rng.random() < 0.5 else {}
        slow = index % 4 == 0
        rows.append((setting, -0.05 * len(setting) + 1.0 * slow + 0.01 * rng.standard_normal(), None, slow))
    found = evidence_of(rows).model([("a", "on")]).contrast({"a": "on"}, {})
    assert found.value == pytest.approx(-0.05, abs=0.02)
    assert found.error < 0.01


def test_a_random_walk_is_taken_out():
    rng = np.random.default_rng(7)
    walk = np.cumsum(0.02 * rng.standard_normal(80))
    rows = []
    for index in range(80):
        setting = {"a": "on"} if rng.random() < 0.5 else {}
        rows.append((setting, -0.05 * len(setting) + walk[index], None, False))
    found = evidence_of(rows).model([("a", "on")]).contrast({"a": "on"}, {})
    assert found.value == pytest.approx(-0.05, abs=0.02)
    assert found.error < 0.01


def test_what_can_be_seen_shrinks_with_the_trials_and_grows_with_the_values():
    few, many = (power.smallest_effect(0.1, n, n // 2, n // 2, 20, 0.01) for n in (20, 80))
    assert many < few / 1.8
    assert many < power.smallest_effect(0.1, 80, 40, 40, 60, 0.01)
    assert power.smallest_effect(0.001, 80, 40, 40, 20, 0.01) < 0.005
    # Who keeps something useless more rarely sees less.
    # (The confirmation is long enough here to be no hurdle.)
    strict, lax = (power.smallest_effect(0.1, 80, 40, 400, 20, error) for error in (0.001, 0.1))
    assert strict > 1.1 * lax


def test_the_scatter_of_pairs_is_that_of_a_trial():
    rng = np.random.default_rng(8)
    assert power.scatter(rng.normal(0, 0.1, (2000, 2)).tolist()) == pytest.approx(0.1, rel=0.05)
    assert math.isnan(power.scatter([[1.0]]))
    assert power.control([[1.0]], 0.1, 4) is None


def test_midpoints():
    assert refine.midpoint(8, 64, whole=True, geometric=True) == 23
    assert refine.midpoint(8, 16, whole=True, geometric=False) == 12
    assert refine.midpoint(8, 9, whole=True, geometric=False) is None
    assert refine.midpoint(0.1, 0.2, whole=False, geometric=False) == pytest.approx(0.15)


def test_a_flat_curve_is_not_refined():
    gains = {0.0: 0.0, 10.0: 0.1, 20.0: 0.09}
    assert refine.between(gains, 10.0, worth=0.002) == [5.0, 15.0]
    # A curve that has risen by 0.1 and falls by 0.01 has its maximum on the side where it falls less.
    assert refine.between(gains, 10.0, worth=0.02) == [15.0]
    assert refine.between(gains, 10.0, worth=0.06) == []
    assert refine.between({0.0: 0.0, 10.0: 0.1}, 10.0, worth=0.01) == [5.0]
    assert refine.between({4.0: 0.1}, 4.0, worth=0.01) == []
    assert refine.number("1500") == 1500.0
    assert refine.number("a (2×), b") is None
    assert [refine.text(value) for value in (1500.0, 0.25)] == ["1500", "0.25"]


def test_trials_without_an_objective_say_nothing():
    evidence = evidence_of([])
    assert evidence.model([]) is None
    assert not evidence.take(trial(0, {}, status="failed"))
    assert not evidence.take(msgspec.structs.replace(trial(0, {}), values={"latency": math.nan}))
    assert evidence.screen([("a", "on")]) == {}
