import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.stats.core import intervals, modality, quantiles, sequential, trend
from wulf.stats.core.step import step

TIMES = st.lists(st.floats(1e-9, 1e3, allow_nan=False), min_size=1, max_size=60)


@given(TIMES)
def test_median_lies_within_its_interval_and_the_data(values):
    found = intervals.median(values)
    assert found.value == pytest.approx(float(np.median(values)))
    if len(values) < 6:
        assert found.low is None
        assert found.high is None
    else:
        assert min(values) <= found.low <= found.value <= found.high <= max(values)


@given(TIMES, st.floats(1e-3, 1e3))
def test_interval_scales_with_the_unit(values, scale):
    first, second = intervals.median(values), intervals.median([value * scale for value in values])
    if first.low is not None:
        assert second.low == pytest.approx(first.low * scale, rel=1e-9)
        assert second.high == pytest.approx(first.high * scale, rel=1e-9)


def test_interpolated_ranks_of_published_example():
    # Hettmansperger & Sheather (1986): n = 10, 95 %: between the second and the third order statistic.
    k, weight = intervals.ranks(10, 0.95)
    outer, inner = 0.978515625, 0.890625
    share = (outer - 0.95) / (outer - inner)
    assert k == 2
    assert weight == pytest.approx(8 * share / (2 + 6 * share))


def test_more_confidence_is_wider():
    values = np.random.default_rng(1).normal(size=20)
    narrow, wide = intervals.median(values, 0.9), intervals.median(values, 0.99)
    assert wide.low < narrow.low <= narrow.high < wide.high


def test_bounds_are_not_rounded_to_outside_the_data():
    found = intervals.median([1.0] * 6 + [125.0] * 3)
    assert found.high == 125.0


def test_nothing_has_no_median():
    with pytest.raises(ValueError, match="nothing"):
        intervals.median([])


def test_later_looks_are_wider():
    assert sequential.interim_confidence(6, 6) == 0.95
    assert sequential.interim_confidence(7, 6) == pytest.approx(0.96)


@given(
    st.dictionaries(st.integers(1, 10**9), st.integers(1, 50), min_size=1, max_size=40),
    st.floats(0.0, 1.0),
)
def test_weighted_quantile_is_that_of_the_repeated_values(histogram, probability):
    values = sorted(histogram)
    counts = [histogram[value] for value in values]
    repeated = np.repeat(np.array(values, dtype=float), counts)
    expected = np.quantile(repeated, probability, method="averaged_inverted_cdf")
    found = quantiles.weighted_quantile(values, counts, probability)
    on_a_step = not math.isclose(
        probability * len(repeated), round(probability * len(repeated)), abs_tol=1e-6
    )
    if on_a_step:
        assert found == pytest.approx(expected)
    else:
        assert repeated[0] <= found <= repeated[-1]


def test_median_of_two_values_is_their_mean():
    assert quantiles.weighted_quantile([10, 20], [3, 3], 0.5) == 15
    assert quantiles.weighted_quantile([10, 20], [3, 4], 0.5) == 20


def test_far_out_values_are_counted():
    assert quantiles.count_outside([10, 11, 12, 13, 1000], [5, 20, 20, 5, 2]) == 2
    assert quantiles.count_outside([10, 11, 12, 13], [5, 20, 20, 5]) == 0


UNIMODAL = {
    "normal": lambda rng, n: 1 + 0.02 * rng.standard_normal(n),
    "log-normal": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
    "heavy tail": lambda rng, n: np.exp(0.02 * rng.standard_t(3, n)),
    "uniform": lambda rng, n: 1 + 0.1 * rng.random(n),
    # Launches are a base time plus delays: skewed to the right even on a logarithmic axis.
    "delays": lambda rng, n: np.exp(0.03 * np.exp(rng.standard_normal(n))),
    "exponential": lambda rng, n: np.exp(0.05 * rng.exponential(size=n)),
}


@pytest.mark.parametrize("name", UNIMODAL)
@pytest.mark.parametrize("n", [6, 10, 20, 40, 500])
def test_one_mode_is_called_one(name, n):
    rng = np.random.default_rng(5)
    several = sum(modality.count_modes(UNIMODAL[name](rng, n)) > 1 for _ in range(200))
    assert several <= 10


def test_two_modes_are_found():
    rng = np.random.default_rng(5)
    found = [
        modality.count_modes(np.where(rng.random(40) < 0.3, 1.15, 1.0) * (1 + 0.01 * rng.standard_normal(40)))
        for _ in range(100)
    ]
    assert sum(modes == 2 for modes in found) >= 90


def test_three_modes_in_a_histogram():
    rng = np.random.default_rng(5)
    values = np.sort(np.concatenate([rng.normal(middle, 50, 1000) for middle in (1e4, 1.5e4, 2.2e4)]).round())
    numbers, counts = np.unique(values, return_counts=True)
    assert modality.count_modes(numbers, counts) == 3
    found = modality.modes(numbers, counts)
    assert [mode.middle for mode in found] == pytest.approx([1e4, 1.5e4, 2.2e4], rel=0.01)
    assert [mode.share for mode in found] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_modes_of_few_values_or_none():
    assert modality.modes([3.0, 1.0, 2.0]) == [(2.0, 1.0)]
    assert modality.modes([0.0]) == []
    assert modality.count_modes([]) == 1


@given(TIMES)
def test_the_bounded_mean_lies_between_the_mean_and_what_bounds_it(values):
    ordered, counts = np.sort(values), np.ones(len(values), dtype=int)
    found = quantiles.bounded_mean(ordered, counts, 4.0)
    assert ordered[0] * (1 - 1e-9) <= found <= np.mean(values) * (1 + 1e-9)
    assert found <= 4 * np.median(values) * (1 + 1e-9)
    assert quantiles.bounded_mean(ordered, counts, 1e13) == pytest.approx(np.mean(values))


def test_trend_is_found_and_noise_is_none():
    rng = np.random.default_rng(2)
    rising = trend.trend(np.linspace(1.0, 1.2, 20) + 0.01 * rng.standard_normal(20))
    assert rising.p_value < 1e-4
    assert rising.change == pytest.approx(0.2 / 1.1, rel=0.2)
    false = sum(trend.trend(1 + 0.01 * rng.standard_normal(20)).p_value < 0.01 for _ in range(500))
    assert false <= 15
    assert trend.trend([1.0] * 20) is None
    assert trend.trend([1.0, 2.0]) is None


def test_inflation_is_what_the_variance_of_a_median_is():
    rng = np.random.default_rng(3)
    series = np.empty((4000, 200))
    series[:, 0] = rng.standard_normal(4000)
    for index in range(1, 200):
        series[:, index] = 0.6 * series[:, index - 1] + 0.8 * rng.standard_normal(4000)
    wanted = np.var(np.median(series, axis=1)) / np.var(np.median(rng.standard_normal((4000, 200)), axis=1))
    # It is cautious by a part of its standard error.
    assert wanted < np.median(trend.inflation(series)) < 1.5 * wanted


@pytest.mark.parametrize("count", [24, 40, 120])
def test_independent_values_rarely_seem_to_depend_on_each_other(count):
    found = trend.dependences(np.random.default_rng(11).standard_t(3, (3000, count)))
    assert 0.035 < np.mean(found < trend.DEPENDENT_P) < 0.06


def test_one_visit_of_another_state_is_found_where_neighbours_resemble_each_other_little(monkeypatch):
    values = np.random.default_rng(12).standard_normal((500, 60))
    values[:, 20:26] += 2.0

    def found():
        return np.mean(trend.dependences(values) < trend.DEPENDENT_P)

    with_stretches = found()
    monkeypatch.setattr(trend, "_stretches", lambda ranks: np.ones(len(ranks)))
    assert with_stretches > 0.6 > found() + 0.15


def test_few_or_independent_values_are_not_widened_much():
    rng = np.random.default_rng(3)
    assert np.all(trend.inflation(rng.standard_normal((100, trend.TESTABLE - 1))) == 1)
    assert np.median(trend.inflation(rng.standard_normal((1000, 40)))) < 1.05
    assert trend.inflation(np.ones(40)) == 1


def test_inflated_bounds_lie_further_out_and_go_on_beyond_the_data():
    values = np.arange(40.0)
    plain, wider, beyond = (intervals.median(values, inflation=factor) for factor in (1, 4, 400))
    assert wider.high - wider.value == pytest.approx(2 * (plain.high - plain.value), rel=1e-9)
    assert beyond.low < values.min()
    assert beyond.high > values.max()


def test_a_step_is_told_from_a_slope():
    rng = np.random.default_rng(8)
    noise = 0.1 * rng.standard_normal(60)
    slope = 0.05 * np.arange(60) + noise
    found = step(slope[:30], slope[30:])
    assert found.p_value > 0.05
    assert found.slope_p_value < 1e-6
    both = step(slope[:30], slope[30:] + 1)
    assert both.height == pytest.approx(1, abs=0.2)
    assert both.p_value < 1e-6
    turned = step(slope[30:] + 1, slope[:30], second_is_earlier=True)
    assert turned.height == pytest.approx(-both.height)
    assert step([1.0], [2.0, 3.0]) is None
