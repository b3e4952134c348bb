"""From the times between all pairs to what is slow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.tiers import mostly_thorough, thorough
from wulf.stats.estimate.pairs import PLAIN, Structure, scores, suspects, visible


def matrix(rng, nodes, *, node=0.01, link=0.02):
    """Logarithms of times between nodes that are all well."""
    own = node * rng.standard_normal(nodes)
    rest = np.triu(link * rng.standard_normal((nodes, nodes)), 1)
    logs = np.log(20e-6) + own[:, None] + own[None, :] + rest + rest.T
    np.fill_diagonal(logs, np.nan)
    return logs


def slowed(logs, places, share, *, uplink=False):
    """Slow down nodes with everybody, or only with those that are none of them."""
    inside = np.zeros(len(logs), dtype=bool)
    inside[places] = True
    count = inside[:, None].astype(int) + inside[None, :]
    return logs + np.log1p(share) * ((count == 1) if uplink else count)


def names(count):
    return [f"n{place}" for place in range(count)]


def found(logs):
    return [(one.kind, one.nodes) for one in suspects(logs, names(len(logs)))]


def test_a_slow_node_is_named_and_nobody_else():
    rng = np.random.default_rng(1)
    right = sum(found(slowed(matrix(rng, 8), [3], 0.2)) == [("node", ["n3"])] for _ in range(200))
    assert right >= 190


@pytest.mark.parametrize("nodes", mostly_thorough([4, 8, 16, 60], 4, 8))
def test_where_all_are_alike_nothing_is_suspected(nodes):
    rng = np.random.default_rng(nodes)
    assert sum(bool(found(matrix(rng, nodes))) for _ in range(100)) <= 1


def test_a_slow_link_is_no_slow_node():
    logs = matrix(np.random.default_rng(2), 8)
    logs[2, 5] += 0.5
    logs[5, 2] += 0.5
    assert found(logs) == [("link", ["n2", "n5"])]


def test_nodes_that_are_quick_among_themselves_are_behind_something():
    logs = slowed(matrix(np.random.default_rng(3), 24), range(4, 9), 0.5, uplink=True)
    assert found(logs) == [("group", ["n4", "n5", "n6", "n7", "n8"])]


def test_two_slow_nodes_are_no_group():
    logs = slowed(matrix(np.random.default_rng(4), 24), [4, 5], 0.5)
    assert sorted(found(logs)) == [("node", ["n4"]), ("node", ["n5"])]


def test_a_node_that_is_slow_in_one_direction():
    logs = matrix(np.random.default_rng(5), 12)
    logs[:, 7] += 0.7  # what it receives
    kinds = dict(found(logs))
    assert kinds["receiving"] == ["n7"]
    assert "sending" not in kinds


@pytest.mark.thorough
def test_a_thousand_nodes_with_two_bad_ones_and_a_bad_uplink():
    rng = np.random.default_rng(6)
    logs = slowed(matrix(rng, 1000), [17], 0.3)
    logs = slowed(logs, [801], 1.0)
    logs = slowed(logs, range(320, 352), 0.5, uplink=True)
    said = found(logs)
    assert [kind for kind, _ in said].count("link") == 0
    assert sorted(said)[1:] == [("node", ["n17"]), ("node", ["n801"])]
    assert sorted(said)[0] == ("group", names(1000)[320:352])


def test_pairs_that_were_not_measured_are_none():
    logs = slowed(matrix(np.random.default_rng(7), 10), [0], 1.0)
    logs[4, 5] = logs[5, 4] = np.nan
    assert found(logs) == [("node", ["n0"])]


@pytest.mark.parametrize("nodes", mostly_thorough([4, 5, 6, 8, 16], 4, 5, 6, 8))
@pytest.mark.parametrize("scatter", [0.01, 0.08])
def test_few_nodes_that_scatter_raise_no_alarm(nodes, scatter):
    alarms = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        added = scatter * draw.standard_normal(nodes)
        rest = np.triu(scatter * draw.standard_normal((nodes, nodes)), 1)
        logs = added[:, None] + added[None, :] + rest + rest.T
        np.fill_diagonal(logs, np.nan)
        alarms += bool(suspects(logs, [str(number) for number in range(nodes)]))
    assert alarms <= 4


def test_a_node_that_is_slow_with_half_of_the_others_is_not_made_worse_than_it_is():
    draw = np.random.default_rng(1)
    count = 17
    rest = np.triu(0.01 * draw.standard_normal((count, count)), 1)
    logs = -5.5 * np.ones((count, count)) + rest + rest.T
    for partner in range(1, 9):
        logs[0, partner] += 1.0
        logs[partner, 0] += 1.0
    np.fill_diagonal(logs, np.nan)
    assert all(one.slower < 3 for one in suspects(logs, [str(number) for number in range(count)]))


@pytest.mark.parametrize("nodes", [4, 6, 16, 17])
def test_the_interval_of_what_a_node_adds_holds_the_truth(nodes):
    held = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        added = 0.03 * draw.standard_normal(nodes)
        rest = np.triu(0.01 * draw.standard_normal((nodes, nodes)), 1)
        logs = added[:, None] + added[None, :] + rest + rest.T
        np.fill_diagonal(logs, np.nan)
        found, half = scores(logs, 0.95)
        held += int(np.sum(np.abs(found - (added - np.median(added))) <= half))
    assert 0.92 <= held / (60 * nodes) <= 0.99


def racks(rng, nodes=16, each=4, further=0.4):
    rack = np.arange(nodes) // each
    noise = np.triu(0.02 * rng.standard_normal((nodes, nodes)), 1)
    logs = math.log1p(further) * (rack[:, None] != rack[None, :]) + noise + noise.T
    np.fill_diagonal(logs, np.nan)
    return logs, Structure(groups=rack.tolist())


def test_a_slow_link_is_named_in_two_tiers_and_nothing_without_one():
    quiet, named = 0, 0
    for seed in range(20):
        logs, structure = racks(np.random.default_rng(seed))
        quiet += not suspects(logs, names(16), structure=structure)
        logs[1, 9] += math.log(1.3)
        logs[9, 1] += math.log(1.3)
        named += [one.nodes for one in suspects(logs, names(16), structure=structure)] == [["n1", "n9"]]
    assert quiet >= 19
    assert named >= 19


def test_racks_that_differ_in_size_are_no_fault_and_hide_no_slow_node():
    quiet, named, rack = 0, 0, [0] * 5 + [1] * 5 + [2] * 2
    for seed in range(20):
        rng = np.random.default_rng(seed)
        logs = matrix(rng, 12, link=0.02) + math.log(1.4) * (np.subtract.outer(rack, rack) != 0)
        quiet += not suspects(logs, names(12), structure=Structure(groups=rack))
        slow = slowed(logs, [7], 0.2)
        named += [one.nodes for one in suspects(slow, names(12), structure=Structure(groups=rack))] == [
            ["n7"]
        ]
    assert quiet >= 19
    assert named >= 19


@pytest.mark.parametrize("sizes", mostly_thorough([(12, 4), (6, 6, 4), (6, 6, 6, 6, 4)], (6, 6, 4)))
def test_a_rack_behind_a_slow_uplink_is_named_as_a_whole(sizes):
    rack = np.repeat(np.arange(len(sizes)), sizes)
    last, named = rack == len(sizes) - 1, 0
    for seed in range(20):
        logs = matrix(np.random.default_rng(seed), len(rack), link=0.02)
        logs = logs + math.log(1.05) * (rack[:, None] != rack[None, :])
        logs = logs + math.log(1.5) * (last[:, None] ^ last[None, :])
        found = suspects(logs, names(len(rack)), structure=Structure(groups=rack.tolist()))
        named += [(one.kind, one.nodes) for one in found] == [("group", names(len(rack))[-4:])]
    assert named >= 19


def test_nodes_are_judged_among_those_of_their_kind():
    rng = np.random.default_rng(3)
    slower = np.arange(12) < 5
    each = math.log(1.15) * slower + 0.01 * rng.standard_normal(12)
    logs = each[:, None] + each[None, :]
    np.fill_diagonal(logs, np.nan)
    structure = Structure(kinds=["old" if one else "new" for one in slower])
    assert suspects(logs, names(12), structure=structure) == []
    logs[7, :] += math.log(1.2)
    logs[:, 7] += math.log(1.2)
    assert [one.nodes for one in suspects(logs, names(12), structure=structure)] == [["n7"]]


@pytest.mark.parametrize(("nodes", "noise"), [(4, 0.02), (8, 0.05), thorough(16, 0.2), (8, 0.4)])
def test_what_is_said_to_be_visible_is_named(nodes, noise):
    seen, told = 0, []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        told.append(visible(matrix(rng, nodes, node=noise / 2, link=noise), PLAIN))
    share = float(np.median(told))
    for seed in range(100):
        rng = np.random.default_rng(1000 + seed)
        logs = slowed(matrix(rng, nodes, node=noise / 2, link=noise), [1], share)
        seen += ("node", ["n1"]) in found(logs)
    assert seen >= 75


def test_more_noise_hides_more():
    rng = np.random.default_rng(1)
    assert visible(matrix(rng, 8), PLAIN) < 0.25
    assert visible(matrix(rng, 8, node=0.5, link=1.0), PLAIN) > 0.5
