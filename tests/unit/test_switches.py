"""Switches that are inferred, and the files that follow."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import paths
from bench.infer import KINDS, Tree, lowest
from tests.unit.paths_fixture import fabric as simulated
from tests.unit.paths_fixture import inferred
from wulf.stats.estimate import switches
from wulf.tools.fabric.record import exit_code
from wulf.tools.fabric.work import concluded


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([kind for kind in KINDS if kind not in ("times", "one")]), st.integers(0, 2**32 - 1))
def test_what_is_said_of_switches_gives_their_groups(kind: str, seed: int) -> None:
    tree = Tree(kind, np.random.default_rng(seed))
    assert lowest(kind, tree, 1) == tree.groups()


def test_switches_that_bridge_are_told_by_times() -> None:
    for seed in range(3):
        tree = Tree("times", np.random.default_rng(seed))
        assert lowest("times", tree, seed) == tree.groups()


def test_pods_are_a_level_of_their_own() -> None:
    tree = next(
        tree for seed in range(100) if max((tree := Tree("ways", np.random.default_rng(seed))).pod) > 0
    )
    count = range(len(tree.nodes))
    ways = {(tree.nodes[a], tree.nodes[b]): [tree.hops(a, b)] for a in count for b in count if a != b}
    levels = switches.by_ways(tree.nodes, ways)
    assert [len(level.groups) for level in levels] == [len(tree.pod), max(tree.pod) + 1]
    assert all(level.confidence == 1 for level in levels)


def test_writes_what_slurm_reads_and_a_hostfile_in_that_order() -> None:
    world = simulated("")
    found = concluded(world.nodes, {}, paths.seen(world), {}, {})
    lines = [line for line in found.topology_conf.splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == [
        *(f"SwitchName=leaf{number}" for number in range(world.leaves)),
        "SwitchName=top",
    ]
    assert sorted(found.hostfile.split()) == world.nodes
    assert [world.leaf(node) for node in found.hostfile.split()] == sorted(map(world.leaf, world.nodes))


def test_what_ports_hear_comes_first_and_a_contradiction_is_said() -> None:
    world = simulated("")
    heard = dict.fromkeys(world.nodes, "sw1") | {world.nodes[0]: "sw2"}
    found = concluded(world.nodes, heard, paths.seen(world), {}, {})
    assert [one.name for one in found.levels[0].switches] == ["sw2", "sw1"]
    assert any("do not agree" in remark for remark in found.remarks)


def test_too_few_nodes_are_no_tree() -> None:
    found = inferred(told=False)
    assert found.levels == []
    assert found.topology_conf == found.hostfile == ""
    assert exit_code(found) == 3
