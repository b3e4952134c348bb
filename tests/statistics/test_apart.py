"""Which nodes differ: seldom said where all are alike, also where they differ a little; found where one does."""

from __future__ import annotations

import numpy as np
import pytest

from wulf.stats.estimate.outliers import FALSE_ALARM, differing

MARGIN = 0.05


def times(rng, nodes, slow=1.0, scatter=0.02, own=0.015, rounds=6):
    """Nodes of one kind, which differ a little from each other for ever, in rounds whose level wanders."""
    level = np.cumsum(rng.normal(0, 0.05, rounds))
    offsets = np.clip(rng.normal(0, own, nodes), -MARGIN / 2, MARGIN / 2)
    found = {
        f"n{node}": np.exp(level + offsets[node] + rng.normal(0, scatter, rounds)) for node in range(nodes)
    }
    found["n1"] = found["n1"] * slow
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [2, 3, 8, 40])
def test_nodes_that_are_alike_are_seldom_named(nodes):
    rng = np.random.default_rng(nodes)
    tries = 1000
    wrong = sum(bool(list(differing(times(rng, nodes), MARGIN))) for _ in range(tries))
    # Without a margin, and without offsets, the chance is as stated.
    bare = sum(bool(list(differing(times(rng, nodes, own=0.0), 0.0))) for _ in range(tries))
    most = FALSE_ALARM * tries + 3 * (FALSE_ALARM * tries) ** 0.5
    assert wrong <= most and bare <= most


@pytest.mark.parametrize("nodes", [3, 4, 16])
def test_a_slow_node_is_named_and_no_other(nodes):
    rng = np.random.default_rng(nodes)
    found = [list(differing(times(rng, nodes, slow=1.4), MARGIN)) for _ in range(200)]
    assert sum([node for node, _ in one] == ["n1"] for one in found) >= 190
    ratios = [one[0][1] for one in found if one]
    assert (
        np.mean([ratio.low <= 1.4 * np.exp(0.02) and ratio.high >= 1.4 * np.exp(-0.02) for ratio in ratios])
        > 0.95
    )


def test_of_two_both_are_named_each_against_the_other():
    found = dict(differing(times(np.random.default_rng(1), 2, slow=1.5), MARGIN))
    assert found["n1"].value == pytest.approx(1 / found["n0"].value)


def test_too_few_rounds_name_nobody():
    assert not list(differing({"a": [1.0, 1.0], "b": [9.0, 9.0]}, MARGIN))
    assert not list(differing({"a": [1.0, 1.0, 1.0]}, MARGIN))
