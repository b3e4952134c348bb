import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from tests.unit.make_search import knob, make_plan
from wulf.experiment import budget, power, refine
from wulf.stats.paired import paired_shift, paired_verdict, pseudo_median

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
    from wulf.stats.paired import critical_rank

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


def test_smallest_effect_is_that_of_a_simulation():
    rng = np.random.default_rng(3)
    effect = power.smallest(0.1, 12, 0.02)
    shown = [paired_shift(rng.normal(effect, 0.1, 12)).p_value <= 0.02 for _ in range(2000)]
    assert np.mean(shown) == pytest.approx(power.POWER, abs=0.05)


def test_a_random_walk_widens_what_counts_as_noise():
    rng = np.random.default_rng(3)
    steps = rng.normal(0, 0.01, 60)
    assert power.noise(steps, 13) == pytest.approx(0.014, rel=0.4)
    assert power.noise(np.cumsum(steps), 13) > 1.3 * power.noise(np.cumsum(steps), 2)


def test_blocks_are_those_that_can_pass_the_correction():
    plan = make_plan()
    for comparisons in (1, 5, 12, 40):
        blocks = power.fewest_blocks(plan, comparisons)
        assert 2.0 ** (1 - blocks) * comparisons <= plan.false_discovery
        assert blocks == plan.min_blocks or 2.0 ** (2 - blocks) * comparisons > plan.false_discovery


def test_more_noise_takes_more_blocks_and_less_time_fewer():
    plan = make_plan(*(knob(f"k{i}", effect=0.1) for i in range(8)))
    quiet, _ = budget.fit(plan, 0.001, 1000.0, 2.0)
    noisy, _ = budget.fit(plan, 0.1, 1000.0, 2.0)
    short, chosen = budget.fit(plan, 0.1, 250.0, 2.0)
    assert quiet.blocks < noisy.blocks == plan.max_blocks
    assert short.blocks < noisy.blocks
    assert quiet.target == pytest.approx(0.01, rel=0.02)
    assert 1 <= len(chosen) < 8


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
