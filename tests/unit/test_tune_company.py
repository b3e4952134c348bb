import numpy as np
import pytest

from wulf.node.trials.experiment import concurrency


def test_pairs_are_told_to_disturb_each_other_or_not():
    assert concurrency.disturb([0.001, -0.002], 0.02) is None
    assert concurrency.disturb([0.001, -0.002, 0.001], 0.02) is False
    assert concurrency.disturb([0.30, 0.28, 0.31], 0.02) is True
    assert concurrency.disturb([-0.30, -0.28, -0.31], 0.02) is True
    # What stays open is not proven to be quiet.
    noisy = [0.1, -0.1, 0.12, -0.11, 0.09]
    assert concurrency.disturb(noisy, 0.02) is None
    assert concurrency.disturb([*noisy, -0.1], 0.02) is True


def test_disturbance_is_rarely_overlooked():
    rng = np.random.default_rng(1)
    overlooked = 0
    for _ in range(500):
        differences: list[float] = []
        while (found := concurrency.disturb(differences, 0.02)) is None:
            differences.append(rng.normal(0.03, 0.01))
        overlooked += not found
    assert overlooked <= 0.05 * 500


@pytest.mark.parametrize(
    ("places", "groups"),
    [
        ([("a", "b"), ("c", "d")], [[("a", "b"), ("c", "d")]]),
        ([("a", "b"), ("b", "c"), ("c", "d")], [[("a", "b"), ("c", "d")], [("b", "c")]]),
        ([("a", "b")], [[("a", "b")]]),
        ([], []),
    ],
)
def test_groups_have_no_node_in_common(places, groups):
    assert concurrency.groups(places) == groups
