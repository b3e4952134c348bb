"""Rounds in which everybody takes part at most once."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.disjoint_rounds import disjoint

NODES = [f"n{number}" for number in range(9)]


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 31, 32])
def test_all_pairs_take_as_few_rounds_as_can_be(count):
    pairs = list(combinations([f"n{number}" for number in range(count)], 2))
    rounds = disjoint(pairs[::-1])
    assert len(rounds) == count - 1 + count % 2
    assert {len(one) for one in rounds} == {count // 2}


@given(st.lists(st.sets(st.sampled_from(NODES), min_size=1, max_size=4).map(tuple), unique=True))
def test_nobody_is_in_a_round_twice_and_everybody_has_a_turn(places):
    rounds = disjoint(places)
    assert sorted(index for one in rounds for index in one) == list(range(len(places)))
    for one in rounds:
        nodes = [node for index in one for node in places[index]]
        assert len(nodes) == len(set(nodes))
    most = max((sum(node in place for place in places) for node in NODES), default=0)
    assert len(rounds) >= most


def test_a_ring_takes_two_or_three_rounds():
    ring = [(NODES[index], NODES[(index + 1) % 9]) for index in range(9)]
    assert len(disjoint(ring)) == 3
    assert len(disjoint(ring[:-1])) == 2
