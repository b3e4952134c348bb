"""Which pairs a watch measures next."""

from itertools import combinations, pairwise

import pytest

from wulf.tools.watch.history import rotation

NODES = [f"node{number:02}" for number in range(1, 13)]


def runs(count, rounds=5, suspects=(), nodes=NODES, idle=None):
    last, made = {}, []
    for number in range(1, count + 1):
        pairs = rotation.choose(nodes, idle or nodes, last, suspects, rounds)
        last |= dict.fromkeys(pairs, number)
        made.append(pairs)
    return made


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 12, 13])
def test_all_links_are_covered_in_time(count):
    nodes = NODES[:count] if count <= len(NODES) else [*NODES, "node13"]
    made = runs(len(nodes), nodes=nodes)
    assert {pair for pairs in made for pair in pairs} == set(combinations(nodes, 2))


def test_no_link_waits_much_longer_than_another():
    made = runs(60)
    rotating = len(NODES) - 1 - rotation.ALWAYS
    longest = -(-rotating // (rotation.AT_FIRST - rotation.ALWAYS))
    for pair in combinations(NODES, 2):
        when = [number for number, pairs in enumerate(made) if pair in pairs]
        assert max(b - a for a, b in pairwise(when)) <= longest


def test_every_node_has_the_same_few_partners_in_every_run():
    made = runs(20)
    always = set.intersection(*map(set, made))
    for node in NODES:
        assert sum(node in pair for pair in always) == rotation.ALWAYS


def test_a_node_takes_part_once_in_a_round():
    (pairs,) = runs(1)
    assert len(pairs) == rotation.AT_FIRST * len(NODES) // 2
    for node in NODES:
        assert sum(node in pair for pair in pairs) == rotation.AT_FIRST


def test_suspects_come_at_once_and_leave_room_for_others():
    first = runs(1)[0]
    waiting = [pair for pair in combinations(NODES, 2) if pair not in first]
    pairs = rotation.choose(NODES, NODES, dict.fromkeys(first, 1), waiting, 5)
    assert waiting[0] in pairs
    assert len(pairs) == len(first)
    # One round is for suspects, the other for those whose turn it is.
    assert len(set(pairs) - set(first)) == 2 * len(NODES) // 2


def test_a_suspect_that_is_no_pair_of_these_nodes_is_none():
    assert rotation.choose(NODES, NODES, {}, [("gone", "node01")], 5) == runs(1)[0]


def test_busy_nodes_are_left_out_and_the_others_keep_their_partners():
    whole = runs(1)[0]
    without = rotation.choose(NODES, [node for node in NODES if node != "node04"], {}, [], 5)
    assert without == [pair for pair in whole if "node04" not in pair]


def test_rounds_follow_the_budget():
    assert rotation.rounds_that_fit(300, 32, 0, 0) == rotation.AT_FIRST
    # 80 pairs, which are 5 rounds of 16, took 100 s: 20 s each.
    assert rotation.rounds_that_fit(300, 32, 80, 100) == 12
    assert rotation.rounds_that_fit(10, 32, 80, 100) == rotation.ALWAYS
    assert rotation.rounds_that_fit(1e6, 32, 80, 100) == 32


def waiting(made, pair):
    when = [number for number, pairs in enumerate(made) if pair in pairs]
    return max((b - a for a, b in pairwise(when)), default=len(made))


def by_risk(count, bad):
    last, made = {}, []
    trouble = rotation.trouble_of(NODES, bad)
    for number in range(1, count + 1):
        pairs = rotation.choose(NODES, NODES, last, (), 5, trouble)
        last |= dict.fromkeys(pairs, number)
        made.append(pairs)
    return made


def test_what_was_often_bad_comes_more_often_and_nothing_waits_for_ever():
    plain = runs(120)
    always = set.intersection(*map(set, plain))
    bad = next(pair for pair in combinations(NODES, 2) if pair not in always)
    made = by_risk(120, [bad] * 5)
    assert sum(bad in pairs for pairs in made) > 1.5 * sum(bad in pairs for pairs in plain)
    longest = max(waiting(plain, pair) for pair in combinations(NODES, 2))
    assert all(waiting(made, pair) <= rotation.MOST * longest for pair in combinations(NODES, 2))


def test_without_trouble_it_goes_by_turns():
    assert by_risk(30, [[]]) == runs(30)


def test_a_node_that_was_bad_counts_for_all_its_pairs():
    found = rotation.trouble_of(NODES[:3], [["node01"], ["node02", "node01"], []])
    assert found == {("node01", "node02"): 1.5, ("node01", "node03"): 0.5}
