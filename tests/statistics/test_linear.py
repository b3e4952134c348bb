"""The robust linear model: its errors are what it says, and evidence may be looked at at any time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from wulf.stats.core.linear import SingularError, fit

NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "heavy tails": lambda rng, n: rng.standard_t(3, n),
    "outliers": lambda rng, n: rng.standard_normal(n) + 8 * (rng.random(n) < 0.05),
    "dependent": lambda rng, n: _chain(rng, n, 0.5),
}


def _chain(rng, n, resemblance):
    noise = rng.standard_normal(n)
    for index in range(1, n):
        noise[index] = resemblance * noise[index - 1] + np.sqrt(1 - resemblance**2) * noise[index]
    return noise


def rows(rng, n, causes):
    """A base, and causes that are present in a random half of the rows, each row followed by its opposite."""
    half = rng.random((n // 2, causes)) < 0.5
    pairs = np.stack([half, ~half], axis=1).reshape(n, causes)
    return np.column_stack([np.ones(n), pairs])


@pytest.mark.parametrize("name", NOISES)
def test_intervals_hold_and_false_alarms_are_rare(name):
    rng = np.random.default_rng(1)
    held, p_values = [], []
    for _ in range(400):
        causes = rows(rng, 48, 12)
        effects = np.zeros(13)
        effects[1] = -2.0
        found = fit(causes, causes @ effects + NOISES[name](rng, 48))
        first, second = (found.contrast(np.eye(13)[index]) for index in (1, 2))
        low, high = first.interval()
        held.append(low <= -2.0 <= high)
        p_values.append(second.p_value())
    assert 0.92 <= np.mean(held) <= 0.985
    assert np.mean(np.array(p_values) < 0.05) <= 0.07
    assert np.mean(np.array(p_values) < 0.005) <= 0.0125


def test_outliers_have_a_limited_say():
    rng = np.random.default_rng(2)
    causes = rows(rng, 40, 4)
    values = causes @ [0, 1, 0, 0, 0] + 0.1 * rng.standard_normal(40)
    values[7] += 100
    assert fit(causes, values).coefficients[1] == pytest.approx(1, abs=0.2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["normal", "heavy tails", "dependent"])
def test_evidence_exceeds_a_limit_rarely_however_often_it_is_looked_at(name):
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        causes, noise = rows(rng, 120, 1), NOISES[name](rng, 120)
        looks = (fit(causes[:n], noise[:n]).contrast([0, 1]).evidence(2.0) for n in range(8, 121, 4))
        alarms += any(look >= 20 for look in looks)
    assert alarms / 200 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_a_clear_effect_takes_few_rows():
    rng = np.random.default_rng(4)
    sure = []
    for _ in range(100):
        # Twenty of the base, then three with an effect of ten times the scatter.
        causes = np.column_stack([np.ones(23), np.arange(23) >= 20])
        found = fit(causes, 10 * causes[:, 1] + rng.standard_normal(23)).contrast([0, 1])
        sure.append(found.evidence(2.0) >= 1000)
    assert np.mean(sure) >= 0.99


def test_a_contrast_of_several_effects():
    rng = np.random.default_rng(5)
    causes = rows(rng, 60, 3)
    found = fit(causes, causes @ [0, 1.0, 2.0, 0] + 0.05 * rng.standard_normal(60)).contrast([0, 1, 1, 0])
    assert found.value == pytest.approx(3.0, abs=0.1)
    assert found.t == found.value / found.error
    assert found.p_value() == pytest.approx(2 * student.sf(abs(found.t), 56))


@pytest.mark.parametrize("causes", [np.ones((2, 2)), np.ones((9, 2)), np.eye(3)])
def test_what_cannot_be_told_apart_is_refused(causes):
    with pytest.raises(SingularError):
        fit(causes, np.zeros(len(causes)))
