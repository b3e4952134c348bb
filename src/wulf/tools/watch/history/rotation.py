"""Which pairs of nodes the next run measures, so that all are covered in time.

Pairs come in rounds in which every node takes part once. The same few rounds are in every run, so that each node has
the same partners; the others take turns: the sooner, the longer nobody has looked at one of their pairs, and the more
often its link or its nodes became slower before. A pair that looked strange comes again at once, with its whole round:
in other company it might be another figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

from wulf.base.disjoint_rounds import disjoint

Pair = tuple[str, str]
NO_TROUBLE: Mapping[Pair, float] = MappingProxyType({})

#: Rounds that every run has: with three partners a node can be told from one of them.
ALWAYS = 3
#: Rounds of a run, until it is known how long one takes.
AT_FIRST = 5
#: Of the other rounds of a run, the part that is for pairs that looked strange; one at least.
FOR_SUSPECTS = 1 / 3
#: How many times as long as it has a pair counts as waiting at most, as it was often bad; and what each time of a link,
#: and of a node, adds. So no pair waits more than so many times as long as by turns.
MOST, OF_A_LINK, OF_A_NODE = 3.0, 1.0, 0.5
#: Share of the budget that the rounds are to take: the nodes are looked at in the rest.
_SHARE = 0.8


def trouble_of(nodes: Sequence[str], slower: Iterable[Sequence[str]]) -> dict[Pair, float]:
    """Return how often each pair of nodes was bad.

    Parameters
    ----------
    slower
        The nodes of each alarm about something that became slower: two of a link, one, none of the cluster.
    """
    links: Counter[Pair] = Counter()
    alone: Counter[str] = Counter()
    for concerned in slower:
        if len(concerned) == 1:
            alone[concerned[0]] += 1
        elif len(concerned) > 1:
            links[concerned[0], concerned[1]] += 1
    weights = {
        (first, second): OF_A_LINK * (links[first, second] + links[second, first])
        + OF_A_NODE * (alone[first] + alone[second])
        for first, second in combinations(nodes, 2)
    }
    return {pair: weight for pair, weight in weights.items() if weight}


def choose(
    nodes: Sequence[str],
    idle: Collection[str],
    last_measured: Mapping[Pair, int],
    suspects: Sequence[Pair],
    rounds: int,
    trouble: Mapping[Pair, float] = NO_TROUBLE,
) -> list[Pair]:
    """Return the pairs of idle nodes to measure, those that matter most first.

    Parameters
    ----------
    nodes
        All nodes of the cluster: the rounds are made of these, so that they stay the same.
    last_measured
        Pair → number of the last run that has measured it.
    rounds
        How many there is time for.
    trouble
        Pair → how often it was bad, as of `trouble_of`.
    """
    pairs = list(combinations(nodes, 2))
    all_rounds = [[pairs[index] for index in one] for one in disjoint(pairs)]
    chosen = list(range(min(ALWAYS, len(all_rounds))))
    room = min(rounds, ALWAYS + max(int(FOR_SUSPECTS * (rounds - ALWAYS)), 1))
    for number in _of_suspects(all_rounds, suspects):
        if number not in chosen and len(chosen) < room:
            chosen.append(number)
    now = max(last_measured.values(), default=0) + 1

    def waits(pair: Pair) -> float:
        return (now - last_measured.get(pair, 0)) * min(1 + trouble.get(pair, 0.0), MOST)

    oldest = sorted(
        (number for number in range(len(all_rounds)) if number not in chosen),
        key=lambda number: -max(map(waits, all_rounds[number])),
    )
    chosen += oldest[: max(rounds - len(chosen), 0)]
    return [pair for number in chosen for pair in all_rounds[number] if set(pair) <= set(idle)]


def _of_suspects(rounds: Sequence[Sequence[Pair]], suspects: Sequence[Pair]) -> Iterator[int]:
    numbers = {pair: number for number, one in enumerate(rounds) for pair in one}
    for pair in suspects:
        if pair in numbers:
            yield numbers[pair]


def rounds_that_fit(budget_s: float, nodes: int, pairs: int, seconds: float) -> int:
    """Return how many rounds there is time for, as the last run went; `ALWAYS` at least.

    Parameters
    ----------
    pairs, seconds
        Of the last run; 0 where there was none.
    """
    if not pairs or seconds <= 0:
        return AT_FIRST
    of_a_round = seconds * (nodes // 2) / pairs
    return max(ALWAYS, min(int(_SHARE * budget_s / of_a_round), nodes))
