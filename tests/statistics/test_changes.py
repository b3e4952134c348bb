"""Levels that have just changed, and noise in which nothing has."""

import numpy as np
import pytest

from wulf.stats.core import changes

ALPHA = 1e-5


def series(count, width, seed, dependence=0.0):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((count, width))
    for column in range(1, width):
        noise[:, column] = dependence * noise[:, column - 1] + np.sqrt(1 - dependence**2) * noise[:, column]
    return 0.02 * noise


def look(values, segments=None, fewest=14, **how):
    segments = np.zeros(values.shape, dtype=np.int64) if segments is None else segments
    return changes.changes(values, segments, np.full(len(values), fewest), ALPHA, **how)


@pytest.mark.parametrize("after", [2, 3, 6])
def test_a_step_is_found_and_located(after):
    values = series(40, 70, seed=1)
    values[5, -after:] += 0.15
    found = look(values)
    assert np.flatnonzero(found.evidence >= 1).tolist() == [5]
    assert found.since[5] == after
    # At two values the estimate is rough.
    assert found.change[5] == pytest.approx(0.15, abs=4 * found.error[5])


def test_a_single_value_is_no_change_however_far_it_stands_out():
    values = series(40, 70, seed=2)
    values[3, -1] += 3.0
    values[4, -2] += 3.0
    found = look(values)
    assert np.all(found.evidence < 1)
    assert found.latest[3] > 50 and abs(found.latest[4]) < 5


def test_two_values_among_three_are_one():
    values = series(40, 70, seed=2)
    values[3, [-1, -3]] += 3.0
    assert look(values).evidence[3] >= 1


@pytest.mark.thorough
@pytest.mark.parametrize("dependence", [0.0, 0.5])
def test_the_chance_of_a_look_is_about_what_was_asked_for(dependence):
    values = series(400, 150, seed=3, dependence=dependence)
    looks = [changes_at(values, end) for end in range(70, 150)]
    share = np.mean(np.array(looks) >= 1)
    # Looks at one series depend on each other, so the share is rough; it was asked for 1e-3.
    assert share < 3e-3


def changes_at(values, end):
    part = values[:, :end]
    fewest = np.full(len(part), 14)
    return changes.changes(part, np.zeros(part.shape, dtype=np.int64), fewest, 1e-3).evidence


def test_the_smallest_change_is_found_by_the_third_value_in_most_cases():
    values = series(400, 90, seed=4)
    quiet = look(values)
    values[:, -3:] += quiet.smallest[:, None]
    found = np.mean(look(values).evidence >= 1)
    assert 0.9 < found <= 1


def test_a_level_is_what_came_after_the_last_change():
    values = series(20, 70, seed=5)
    values[:, 50:] += 0.5
    segments = np.zeros(values.shape, dtype=np.int64)
    segments[:, :50] = 1
    assert np.all(look(values, segments).evidence < 1)
    values[0, -3:] += 0.2
    assert np.flatnonzero(look(values, segments).evidence >= 1).tolist() == [0]
    # Without knowing of it, the change is still the one of 20 values ago.
    forgotten = look(values)
    assert np.all(forgotten.evidence[1:] < 1) or np.all(forgotten.since[1:] > 3)


def test_of_too_few_values_nothing_is_said():
    values = series(20, 12, seed=6)
    values[:, -3:] += 5.0
    found = look(values)
    assert np.all(found.evidence == 0) and np.all(np.isinf(found.smallest))


def test_series_may_be_of_different_lengths():
    values = series(20, 70, seed=7)
    values[0, :50] = np.nan  # 20 values
    values[1, :] = np.nan
    values[0, -3:] += 0.3
    found = look(values)
    assert np.flatnonzero(found.evidence >= 1).tolist() == [0]
    assert found.evidence[1] == 0


def test_what_all_weekends_have_in_common_is_no_change():
    values = series(20, 70, seed=8)
    day = np.arange(70) % 7
    keys = np.broadcast_to(day >= 5, values.shape).astype(np.int64)
    weekly = values + 0.2 * keys
    segments = np.zeros(values.shape, dtype=np.int64)
    cleaned = changes.without_pattern(weekly, segments, keys)
    left = np.mean(cleaned[:, day >= 5]) - np.mean(cleaned[:, day < 5])
    assert abs(left) < 0.02
    assert np.all(look(cleaned).evidence < 1)


def test_a_slow_change_is_seen_against_the_beginning():
    values = series(20, 60, seed=9) / 2
    values[4] += 0.002 * np.arange(60)
    found = look(values, windows=(3, 5, 8), anchor=8, fewest=6)
    assert found.evidence[4] == np.max(found.evidence) >= 1
    assert np.sum(found.evidence >= 1) == 1


def test_one_noisy_series_does_not_make_the_others_deaf():
    values = series(30, 70, seed=10)
    values[0] *= 10
    values[7, -3:] += 0.15
    found = look(values)
    assert np.flatnonzero(found.evidence >= 1).tolist() == [7]


def test_equal_values_have_no_scale_and_say_nothing():
    found = look(np.zeros((5, 70)))
    assert np.all(found.evidence == 0)
