"""Which pairs of nodes the next run measures, so that all are covered in time.

Pairs come in rounds in which every node takes part once. The same few rounds are in every run, so that each node has
the same partners; the others take turns. A pair that looked strange comes again at once, with its whole round: in other
company it might be another figure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from wulf.base.rounds import disjoint

Pair = tuple[str, str]

#: Rounds that every run has: with three partners a node can be told from one of them.
ALWAYS = 3
#: Rounds of a run, until it is known how long one takes.
AT_FIRST = 5
#: Of the other rounds of a run, the part that is for pairs that looked strange; one at least.
FOR_SUSPECTS = 1 / 3
#: Share of the budget that the rounds are to take: the nodes are looked at in the rest.
_SHARE = 0.8


def choose(
    nodes: Sequence[str],
    idle: Collection[str],
    last_measured: Mapping[Pair, int],
    suspects: Sequence[Pair],
    rounds: int,
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
    """
    pairs = list(combinations(nodes, 2))
    all_rounds = [[pairs[index] for index in one] for one in disjoint(pairs)]
    chosen = list(range(min(ALWAYS, len(all_rounds))))
    room = min(rounds, ALWAYS + max(int(FOR_SUSPECTS * (rounds - ALWAYS)), 1))
    for number in _of_suspects(all_rounds, suspects):
        if number not in chosen and len(chosen) < room:
            chosen.append(number)
    oldest = sorted(
        (number for number in range(len(all_rounds)) if number not in chosen),
        key=lambda number: min(last_measured.get(pair, 0) for pair in all_rounds[number]),
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
