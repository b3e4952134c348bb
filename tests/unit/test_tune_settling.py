"""How long a setting takes to have its effect, from the visits after it was made."""

import numpy as np
import pytest

from wulf.node.trials.experiment.settling import deviations, unsettled

SWEEPS = 12


def visits(rng, dwells=40, after=(), scatter=0.02):
    logs = scatter * rng.standard_normal((dwells, SWEEPS)) + 0.1 * rng.standard_normal((dwells, 1))
    logs[:, : len(after)] += after
    return 1000 * np.exp(logs.ravel())


@pytest.mark.parametrize("after", [(), (0.5,), (0.5, 0.2, 0.1), (-0.3, -0.3)])
def test_first_visits_that_differ_are_counted(after):
    rng = np.random.default_rng(3)
    found = deviations(visits(rng, after=after), SWEEPS)
    assert found.shape == (40, SWEEPS)
    assert unsettled(found, 0.01) == len(after)


def test_nothing_is_left_out_by_chance():
    rng = np.random.default_rng(4)
    found = [unsettled(deviations(visits(rng, scatter=0.2), SWEEPS), 0.01) for _ in range(300)]
    assert sum(map(bool, found)) <= 6


def test_it_is_half_a_dwell_at_most_and_nothing_where_too_little_is_known():
    rng = np.random.default_rng(5)
    slow = np.linspace(0.6, 0.1, SWEEPS // 2 + 2)
    assert unsettled(deviations(visits(rng, after=slow), SWEEPS), 0.01) == SWEEPS // 2
    assert unsettled(deviations(visits(rng, dwells=4, after=(0.5,)), SWEEPS), 0.01) == 0
