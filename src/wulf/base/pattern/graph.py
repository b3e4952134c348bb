"""Who sends to whom: edges of graphs over the ranks of a program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from wulf.base.pattern.language import Step
from wulf.base.text import count

Edge = tuple[int, int]
Fail = Callable[[str, str], NoReturn]
#: Children of a rank in a tree that does not say how many.
FAN_OUT = 2


def rounds(step: Step, ranks: int, fail: Fail) -> list[list[Edge]]:
    """Return the edges of an exchange: those of one list at the same time, the lists one after the other.

    Parameters
    ----------
    fail
        Takes the key of the step and what is wrong with it for so many ranks.
    """
    match step.exchange:
        case "ring":
            return [[(rank, (rank + 1) % ranks) for rank in range(ranks) if ranks > 1]]
        case "halo-1d" | "halo-2d" | "halo-3d":
            dims = dimensions(step, ranks, fail)
            return [list(_halo(dims, periodic=bool(step.periodic)))]
        case "hypercube":
            if ranks & (ranks - 1):
                fail("exchange", f"a hypercube has 2, 4, 8, … ranks, not {ranks}")
            return [[(rank, rank ^ bit) for rank in range(ranks)] for bit in _bits(ranks)]
        case "all-to-all":
            shifts = itertools.product(range(1, ranks), range(ranks))
            return [[(rank, (rank + shift) % ranks) for shift, rank in shifts]]
        case _:
            return [[(one, other) for one, other, _ in weighted(step, ranks, fail)]]


def _bits(ranks: int) -> Iterable[int]:
    return (1 << place for place in range(ranks.bit_length() - 1))


def weighted(step: Step, ranks: int, fail: Fail) -> list[tuple[int, int, float]]:
    """Return the edges that a step lists, with how many messages each has in an iteration."""
    found = []
    for number, edge in enumerate(step.edges or []):
        key = f"edges[{number}]"
        if len(edge) not in (2, 3):
            fail(key, f"{edge}: [from, to], or [from, to, messages in each iteration]")
        one, other, messages = (*edge, 1)[:3]
        for end in (one, other):
            if end != int(end) or not 0 <= end < ranks:
                fail(key, f"{end} is not a rank of a program of {ranks}: they are counted from 0")
        if one == other:
            fail(key, f"from {one} to itself")
        if not 0 < messages < math.inf:
            fail(key, f"{messages} for the number of messages: above 0")
        found.append((int(one), int(other), float(messages)))
    return found


def dimensions(step: Step, ranks: int, fail: Fail) -> tuple[int, ...]:
    """Return the ranks in each direction of a mesh; near to a cube where the step does not say."""
    numbers = int(str(step.exchange)[len("halo-")])
    if step.dims is None:
        return balanced(ranks, numbers)
    if len(step.dims) != numbers:
        fail("dims", f"{step.dims}: {count(numbers, 'number')}, one for each direction")
    if any(one < 1 for one in step.dims) or math.prod(step.dims) != ranks:
        fail("dims", f"{' × '.join(map(str, step.dims))} is not {ranks}, which are the program's ranks")
    return tuple(step.dims)


def balanced(ranks: int, count: int) -> tuple[int, ...]:
    """Return so many factors of a number of ranks, as near to each other as can be, the largest first.

    >>> balanced(12, 2)
    (4, 3)
    """
    if count == 1:
        return (ranks,)
    best: tuple[int, ...] = (ranks, *[1] * (count - 1))
    for first in range(1, ranks + 1):
        if ranks % first == 0:
            rest = balanced(ranks // first, count - 1)
            if first >= rest[0] and sum((first, *rest)) < sum(best):
                best = (first, *rest)
    return best


def _halo(dims: Sequence[int], *, periodic: bool) -> Iterable[Edge]:
    """Yield the edges direction by direction, so that one direction is a shift of all ranks."""
    places = list(itertools.product(*map(range, dims)))
    number = {place: rank for rank, place in enumerate(places)}
    for axis, length in enumerate(dims):
        for way in (1, -1):
            for place in places:
                moved = place[axis] + way
                if periodic:
                    moved %= length
                if not 0 <= moved < length or moved == place[axis]:
                    continue
                yield number[place], number[(*place[:axis], moved, *place[axis + 1 :])]


def in_turns(edges: Sequence[Edge]) -> list[list[int]]:
    """Return the numbers of the edges in turns: within one no rank sends twice or receives twice.

    Ranks that go through the turns in order, each with one MPI_Sendrecv a turn, never wait for each other in a circle.
    """
    sends: dict[int, int] = {}
    receives: dict[int, int] = {}
    turns: list[list[int]] = []
    for number, (one, other) in enumerate(edges):
        turn = max(sends.get(one, 0), receives.get(other, 0))
        sends[one] = receives[other] = turn + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(number)
    return turns


def tree(rank: int, ranks: int, fan_out: int) -> tuple[int | None, list[int]]:
    """Return the parent, which the root has none of, and the children."""
    children = range(rank * fan_out + 1, min(rank * fan_out + fan_out, ranks - 1) + 1)
    return ((rank - 1) // fan_out if rank else None), list(children)
