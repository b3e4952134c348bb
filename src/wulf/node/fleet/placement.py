"""Which node gets how many ranks: evenly, or by the speed of nodes; and the files that launchers take."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from wulf.base.errors import UsageError
from wulf.base.records import Place
from wulf.base.text import count

Form = Literal["openmpi", "mpich", "slurm"]
FORMS: tuple[Form, ...] = get_args(Form)


def ranks_of(
    speeds: Mapping[str, float], ranks: int, most: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return how many ranks each node gets, so that the one that is done last is done as early as can be.

    All ranks have the same work, so that a node of r ranks and speed s takes r / s. Each rank goes where that stays
    smallest; that is the best there is, as no exchange of a rank lowers the largest r / s.

    Parameters
    ----------
    speeds
        Node → how fast it is with all its processors, in any unit.
    ranks
        Of all nodes together.
    most
        Node → how many it may have at most; None for any number.

    Raises
    ------
    UsageError
        There are fewer places than ranks, or a speed is none.
    """
    if any(not 0 < speed < float("inf") for speed in speeds.values()):
        raise UsageError("a node's speed is a number above 0")
    room = sum(most[node] for node in speeds) if most is not None else ranks
    if not speeds or room < ranks:
        raise UsageError(
            f"{count(ranks, 'rank')}, and the nodes have {count(room if speeds else 0, 'processor')}"
        )
    given = dict.fromkeys(speeds, 0)
    waiting = [(1 / speed, place, node) for place, (node, speed) in enumerate(speeds.items())]
    heapq.heapify(waiting)
    for _ in range(ranks):
        _, place, node = heapq.heappop(waiting)
        given[node] += 1
        if most is None or given[node] < most[node]:
            heapq.heappush(waiting, ((given[node] + 1) / speeds[node], place, node))
    return given


def even(nodes: Sequence[str], ranks: int) -> dict[str, int]:
    """Return as many on each as on the others, or one more."""
    return {node: ranks // len(nodes) + (place < ranks % len(nodes)) for place, node in enumerate(nodes)}


def spread(nodes: Sequence[str], ranks: int) -> Place:
    """Return the node of every rank: as many on each as on the others, or one more, those of a node in a row."""
    return tuple(nodes[index] for index in sorted(rank % len(nodes) for rank in range(ranks)))


def gain(speeds: Mapping[str, float], given: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return the time with `given` ÷ that with `other`, were there nothing but computing."""
    return _longest(speeds, given) / _longest(speeds, other)


def _longest(speeds: Mapping[str, float], given: Mapping[str, int]) -> float:
    return max(ranks / speeds[node] for node, ranks in given.items())


def lines(given: Mapping[str, int], form: Form) -> Iterator[str]:
    """Yield the lines of the file that a launcher takes; a node without ranks is not in it."""
    for node, ranks in given.items():
        if form == "slurm":
            yield from [node] * ranks  # SLURM_HOSTFILE with --distribution=arbitrary: a line for each rank
        elif ranks:
            yield f"{node} slots={ranks}" if form == "openmpi" else f"{node}:{ranks}"
