"""Rounds in which everybody takes part at most once.  Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence


def disjoint(places: Sequence[Sequence[str]]) -> list[list[int]]:
    """Divide places into rounds so that no node is in two places of a round.

    All pairs of n nodes take n − 1 rounds (n where n is odd), as in a tournament: the circle method. Of others each
    goes into the first round in which all its nodes are free, which takes less than twice as many rounds as the node
    with most places has.

    Parameters
    ----------
    places
        Nodes of each; none twice.

    Returns
    -------
    list
        Rounds of indices into `places`. The nodes' order in the tournament is that in which they come first.
    """
    nodes = list(dict.fromkeys(node for place in places for node in place))
    if len(places) == math.comb(len(nodes), 2) and _are_all_pairs(places, nodes):
        return _tournament(places, nodes)
    return _first_fit(places)


def _are_all_pairs(places: Sequence[Sequence[str]], nodes: Sequence[str]) -> bool:
    """Whether as many places as there are pairs of nodes are all of these, each once."""
    if any(len(place) != 2 for place in places):
        return False
    number = {node: index for index, node in enumerate(nodes)}
    # As numbers: half a million sets are much work for the collector of garbage.
    pairs = {
        one * len(nodes) + other
        if (one := number[first]) < (other := number[second])
        else other * len(nodes) + one
        for first, second in places
    }
    return len(pairs) == len(places)


def _tournament(places: Sequence[Sequence[str]], nodes: Sequence[str]) -> list[list[int]]:
    number = {node: index for index, node in enumerate(nodes)}
    last = len(nodes) + len(nodes) % 2 - 1
    rounds: list[list[int]] = [[] for _ in range(last)]
    for index, (first, second) in enumerate(places):
        one, other = sorted((number[first], number[second]))
        # The last one stays, the others turn: who meets it in a round is who would meet himself.
        rounds[(2 * one if other == last else one + other) % last].append(index)
    return rounds


def _first_fit(places: Sequence[Sequence[str]]) -> list[list[int]]:
    rounds: list[list[int]] = []
    #: Node → rounds in which it is busy, as bits.
    busy: dict[str, int] = defaultdict(int)
    for index, place in enumerate(places):
        taken = 0
        for node in place:
            taken |= busy[node]
        free = ~taken & (taken + 1)
        for node in place:
            busy[node] |= free
        number = free.bit_length() - 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(index)
    return rounds
