"""Suspects that are measured again with nothing else beside."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from wulf.base.records import Estimate
from wulf.base.records.diagnosed import Matrix, Score, Suspect
from wulf.tools.diagnose import confirmation

NODES = [f"n{number}" for number in range(8)]


def suspect(*nodes, kind="node", slower=0.5):
    return Suspect(kind=kind, nodes=list(nodes), slower=slower, scatter=0.02, p_value=1e-3)


def matrix(*suspects):
    ratios = {node: 1 + 0.01 * number for number, node in enumerate(NODES)}
    return Matrix(
        op="mpi_pingpong",
        size_bytes=64,
        typical_s=1e-5,
        scatter=0.02,
        pairs=28,
        missing=0,
        suspects=list(suspects),
        scores=[
            Score(
                node=node,
                ratio=Estimate(
                    value=value, low=None, high=None, confidence=0.95, unit="ratio", n=7, method="test"
                ),
            )
            for node, value in ratios.items()
        ],
    )


def times(pairs, slow=lambda pair: 1.0, scatter=0.05, seed=0):
    rng = np.random.default_rng(seed)
    return {pair: 1e-5 * slow(pair) * math.exp(scatter * rng.standard_normal()) for pair in pairs}


def test_a_suspect_is_measured_with_the_most_typical_nodes_and_these_among_themselves():
    found = confirmation.pairs([matrix(suspect("n0"))])
    well = ["n1", "n2", "n3", "n4"]
    assert found == [*itertools.combinations(well, 2), *(("n0", node) for node in well)]


def test_all_suspects_are_measured_again_and_no_pair_twice():
    several = [suspect(node, slower=number) for number, node in enumerate(NODES[:4], 1)]
    found = confirmation.pairs([matrix(*several), matrix(suspect("n3", slower=9.0))])
    assert {pair[0] for pair in found if pair[0] in NODES[:4]} == set(NODES[:4])
    assert len({frozenset(pair) for pair in found}) == len(found)
    link = confirmation.pairs([matrix(suspect("n6", "n7", kind="link"))])
    assert ("n6", "n7") in link


def test_a_link_that_was_one_slow_value_has_to_be_slow_by_half_of_it_again():
    one = suspect("n6", "n7", kind="link", slower=1.0)
    found = times(
        confirmation.pairs([matrix(one)]), lambda pair: 1.2 if set(pair) == {"n6", "n7"} else 1.0, 0.01
    )
    assert confirmation.is_slow(one, found, frozenset(one.nodes), 0.1) is False
    again = {pair: time * (1.4 if set(pair) == {"n6", "n7"} else 1.0) for pair, time in found.items()}
    assert confirmation.is_slow(one, again, frozenset(one.nodes), 0.1) is True


def test_a_node_behind_another_switch_is_not_slow_where_that_is_usual():
    one = suspect("n0")
    pairs = confirmation.pairs([matrix(one)])
    found = times(pairs, lambda pair: 1.3 if "n0" in pair else 1.0, 0.01)
    accused = frozenset(one.nodes)
    assert confirmation.is_slow(one, found, accused, 0.1) is True
    usual = lambda pair: math.log(1.3) if "n0" in pair else 0.0  # noqa: E731
    assert confirmation.is_slow(one, found, accused, 0.1, usual=usual) is False


@pytest.mark.parametrize("matrices", [[], [matrix()], [matrix(suspect(*NODES, kind="group"))]])
def test_where_nobody_is_suspected_or_well_nothing_is_measured(matrices):
    assert confirmation.pairs(matrices) == []


@pytest.mark.parametrize(
    ("one", "slow"),
    [
        (suspect("n0"), lambda pair: 1.2 if "n0" in pair else 1.0),
        (suspect("n5", "n6", "n7", kind="group"), lambda pair: 1.2 if {"n5", "n6"} & set(pair) else 1.0),
        (suspect("n6", "n7", kind="link"), lambda pair: 1.5 if set(pair) == {"n6", "n7"} else 1.0),
    ],
)
def test_who_is_slow_is_so_alone_too_and_who_is_not_is_cleared(one, slow):
    accused = frozenset(one.nodes)
    pairs = confirmation.pairs([matrix(one)])
    kept = [confirmation.is_slow(one, times(pairs, slow, seed=seed), accused, 0.1) for seed in range(100)]
    wrong = [confirmation.is_slow(one, times(pairs, seed=seed), accused, 0.1) for seed in range(100)]
    assert kept.count(True) >= 90
    assert wrong.count(True) <= 10


def test_too_few_pairs_clear_nobody():
    assert confirmation.is_slow(suspect("n0"), {}, frozenset({"n0"}), 0.1) is None
    only = times([("n0", "n1"), ("n0", "n2")])
    assert confirmation.is_slow(suspect("n0"), only, frozenset({"n0"}), 0.1) is None


@pytest.mark.parametrize("kind", ["sending", "receiving"])
def test_who_is_slow_in_one_direction_is_not_cleared_by_both_together(kind):
    one = suspect("n0", kind=kind)
    assert confirmation.is_slow(one, times(confirmation.pairs([matrix(one)])), frozenset({"n0"}), 0.1) is None
