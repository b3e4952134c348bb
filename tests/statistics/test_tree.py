"""Which nodes share a switch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tiers import mostly_thorough
from wulf.stats.estimate import tree


def times(nodes, further=(), scatter=0.02, own=0.03, seed=0):
    """Logarithms of times; `further`: (group of each node, what is between groups)."""
    rng = np.random.default_rng(seed)
    added = own * rng.standard_normal(nodes)
    noise = np.triu(scatter * rng.standard_normal((nodes, nodes)), 1)
    logs = added[:, None] + added[None, :] + noise + noise.T
    for groups, between in further:
        group = np.asarray(groups)
        logs += between * (group[:, None] != group[None, :])
    np.fill_diagonal(logs, np.nan)
    return logs


def groups_of(found):
    return {branch.nodes for branch in found}


@pytest.mark.parametrize("seed", range(20))
def test_two_switches_are_seen(seed):
    sides = [0, 1] * 4
    found = tree.branches(times(8, [(sides, 0.1)], seed=seed))
    assert groups_of(found) == {(0, 2, 4, 6), (1, 3, 5, 7)}
    assert found[0].further == pytest.approx(0.1, abs=0.05)


@pytest.mark.parametrize("seed", mostly_thorough(range(5), 0))
def test_a_tree_of_switches_is_seen_level_by_level(seed):
    rack = [node // 8 for node in range(32)]
    row = [node // 16 for node in range(32)]
    found = groups_of(tree.branches(times(32, [(rack, 0.08), (row, 0.3)], seed=seed)))
    for size in (16, 8):
        for first in range(0, 32, size):
            assert tuple(range(first, first + size)) in found


@pytest.mark.parametrize(
    "sizes", mostly_thorough([(24, 8), (16, 8, 8), (12, 4), (30, 6), (5, 3)], (12, 4), (5, 3))
)
@pytest.mark.parametrize("between", [0.2, 0.5])
def test_switches_need_not_have_as_many_nodes(sizes, between):
    sides = np.repeat(range(len(sizes)), sizes)
    for seed in range(3):
        found = tree.branches(times(len(sides), [(sides, between)], scatter=0.03, own=0.02, seed=seed))
        assert groups_of(found) == {tuple(np.flatnonzero(sides == side)) for side in range(len(sizes))}
        assert found[0].further == pytest.approx(np.expm1(between), rel=0.15)


def test_switches_of_two_nodes_are_told_by_how_the_other_pairs_scatter():
    pod = [0] * 4 + [1] * 8
    leaf = [0, 0, 1, 1] + [2] * 8
    exact = [
        groups_of(tree.branches(times(12, [(pod, 0.2), (leaf, 0.06)], scatter=0.01, own=0.02, seed=seed)))
        == {(0, 1, 2, 3), (0, 1), (2, 3), tuple(range(4, 12))}
        for seed in range(40)
    ]
    assert sum(exact) >= 36


def test_few_nodes_below_one_switch_are_not_divided():
    pod = [0] * 5 + [1] * 8
    exact = [
        groups_of(tree.branches(times(13, [(pod, 0.2)], scatter=0.01, own=0.02, seed=seed)))
        == {tuple(range(5)), tuple(range(5, 13))}
        for seed in range(40)
    ]
    assert sum(exact) >= 39


def test_a_slow_link_is_no_switch():
    logs = times(16, seed=4)
    logs[3, 9] = logs[9, 3] = logs[3, 9] + 1.0
    assert tree.branches(logs) == []


@pytest.mark.thorough
def test_where_all_share_a_switch_there_are_no_groups():
    rng = np.random.default_rng(5)
    sizes = rng.integers(4, 40, 200)
    alarms = [bool(tree.branches(times(int(n), scatter=0.05, seed=seed))) for seed, n in enumerate(sizes)]
    assert sum(alarms) <= 2


def test_a_slow_node_is_no_group():
    logs = times(12, seed=3)
    logs[4, :] += 1.0
    logs[:, 4] += 1.0
    assert tree.branches(logs) == []


def test_pairs_that_were_not_measured_leave_the_others_their_groups():
    logs = times(16, [([n // 8 for n in range(16)], 0.15)])
    rng = np.random.default_rng(1)
    for first, second in rng.integers(0, 16, (20, 2)):
        logs[first, second] = logs[second, first] = np.nan
    assert groups_of(tree.branches(logs)) == {tuple(range(8)), tuple(range(8, 16))}


def test_neighbours_in_the_order_share_a_switch():
    sides = np.array([0, 1, 2] * 6)
    found = tree.order(times(18, [(sides, 0.1)], seed=2))
    assert sorted(found) == list(range(18))
    assert np.count_nonzero(np.diff(sides[found])) == 2
