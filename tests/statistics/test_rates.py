"""Rates of events: intervals hold the truth, also where events come in clumps; evenness is told from chance."""

from __future__ import annotations

import numpy as np
import pytest

from wulf.stats.core import rates

RUNS = 400


def covered(draw, truth, launches):
    rng = np.random.default_rng(5)
    intervals = [rates.rate(draw(rng, launches), np.ones(launches)) for _ in range(RUNS)]
    return np.mean([one.low <= truth <= one.high for one in intervals])


@pytest.mark.parametrize("truth", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("launches", [6, 24])
def test_intervals_of_what_comes_at_random(truth, launches):
    assert covered(lambda rng, n: rng.poisson(truth, n), truth, launches) >= 0.93


@pytest.mark.parametrize("launches", [12, 24])
def test_intervals_of_what_comes_in_clumps(launches):
    # Five at a time: the variance is five times that of chance.
    assert covered(lambda rng, n: 5 * rng.poisson(2, n), 10, launches) >= 0.88
    assert covered(lambda rng, n: rng.poisson(10, n), 10, launches) >= 0.93


def test_what_never_came_may_come_yet():
    never = rates.rate([0] * 10, [0.5] * 10)
    assert (never.value, never.low) == (0, 0)
    assert never.high == pytest.approx(3.69 / 5, rel=0.01)


def test_few_replicates_have_no_bounds():
    few = rates.rate([3] * 5, [1] * 5)
    assert few.value == 3 and few.low is None and few.high is None
    assert rates.chance_of_evenness([3] * 5, [1] * 5) is None
    with pytest.raises(ValueError, match="nothing"):
        rates.rate([], [])
    with pytest.raises(ValueError, match="nothing"):
        rates.rate([1], [0])


def test_evenness_is_rare_by_chance():
    rng = np.random.default_rng(6)
    chances = [rates.chance_of_evenness(rng.poisson(12, 12), np.ones(12)) for _ in range(RUNS)]
    assert 0.02 < np.mean(np.array(chances) < 0.05) < 0.09
    assert rates.chance_of_evenness([12, 13, 12, 12, 13, 12, 12, 13], np.ones(8)) < 1e-4
    assert rates.chance_of_evenness([0] * 8, np.ones(8)) is None
