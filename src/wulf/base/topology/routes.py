"""Routes over direct links: ``direct up to K hops, else the switch``.  Pure.

Every node within K hops has a route of its own at each node; all others stay behind the switch. Of several shortest
paths one is chosen so that packets come back on the way they went, as nodes that check the reverse path (``rp_filter``)
want it. For that link number i has the length 1 + 2^i ε. No two sets of links are then of equal length, so there is
one shortest path between two nodes, the same in both directions, and every part of it is the shortest path between its
own ends: each node on it sends the packet on along it, and none ever returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wulf.base.records import Pair
from wulf.base.topology.shapes import Shape

#: Where a rank is in a shape.
Position = tuple[int, ...]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One node's way to another over the links."""

    node: str
    target: str
    #: The next node on the way.
    neighbour: str
    #: Number of the link that leads there.
    link: int
    #: Links on the way.
    hops: int


class _Path(msgspec.Struct, frozen=True, order=True):
    """The best path so far; they are compared by `hops`, then by `detour`."""

    hops: int
    #: Sum of 2^i over the links of the path.
    detour: int
    neighbour: str
    link: int


def plan(links: Sequence[Pair], hops: int) -> list[Route]:
    """Return the routes between all nodes that are at most so many hops apart.

    Parameters
    ----------
    links
        The two nodes of each link; of several links between two nodes the first is used.
    hops
        K.
    """
    around: dict[str, dict[str, int]] = {}
    for number, (one, other) in enumerate(links):
        around.setdefault(one, {}).setdefault(other, number)
        around.setdefault(other, {}).setdefault(one, number)
    return [
        Route(node=node, target=target, neighbour=path.neighbour, link=path.link, hops=path.hops)
        for node in around
        for target, path in _paths(node, around, hops).items()
    ]


def by_dimension(shape: Shape, placement: Sequence[str], links: Sequence[Pair]) -> list[Route]:
    """Return the routes between all nodes of a shape, dimension by dimension: the first one until it is right.

    A torus goes the shorter way round, of two that are as long the ascending one. No node returns a packet, as each
    step shortens the way; but the way back is another one where two dimensions differ, so that a node which checks the
    reverse path strictly (``rp_filter`` 1) drops it.

    Parameters
    ----------
    placement
        Node of every rank; each edge of the shape is a link.
    links
        The two nodes of each link; of several links between two nodes the first is used.
    """
    numbers: dict[frozenset[str], int] = {}
    for number, pair in enumerate(links):
        numbers.setdefault(frozenset(pair), number)
    positions = list(itertools.product(*map(range, shape.extents)))
    at = dict(zip(positions, placement, strict=True))
    found = []
    for start, target in itertools.permutations(positions, 2):
        neighbour = at[_step(shape, start, target)]
        link = numbers[frozenset((at[start], neighbour))]
        hops = sum(abs(step) for step in _steps(shape, start, target))
        found.append(Route(node=at[start], target=at[target], neighbour=neighbour, link=link, hops=hops))
    return found


def _steps(shape: Shape, start: Position, target: Position) -> list[int]:
    """Return how many links to go in each dimension, downwards below zero."""
    found = []
    for extent, here, there in zip(shape.extents, start, target, strict=True):
        ahead = (there - here) % extent
        # Only what is periodic has a link from its end to its begin.
        goes_round = shape.kind in ("ring", "torus")
        found.append((ahead if 2 * ahead <= extent else ahead - extent) if goes_round else there - here)
    return found


def _step(shape: Shape, start: Position, target: Position) -> Position:
    """Return the next position on the way."""
    steps = _steps(shape, start, target)
    first = next(place for place, step in enumerate(steps) if step)
    moved = (start[first] + (1 if steps[first] > 0 else -1)) % shape.extents[first]
    return (*start[:first], moved, *start[first + 1 :])


def forwarded(routes: Iterable[Route]) -> dict[str, set[int]]:
    """Return node → the links over which packets come in that it sends on to another one."""
    found: dict[str, set[int]] = {}
    for route in routes:
        if route.hops > 1:
            found.setdefault(route.neighbour, set()).add(route.link)
    return found


def _paths(node: str, around: Mapping[str, Mapping[str, int]], hops: int) -> dict[str, _Path]:
    """Return target → the shortest path to it."""
    found: dict[str, _Path] = {}
    edge = {neighbour: _Path(1, 1 << number, neighbour, number) for neighbour, number in around[node].items()}
    while edge:
        found |= edge
        edge = _farther(node, edge, found, around) if next(iter(edge.values())).hops < hops else {}
    return found


def _farther(
    node: str, edge: Mapping[str, _Path], found: Mapping[str, _Path], around: Mapping[str, Mapping[str, int]]
) -> dict[str, _Path]:
    """Return the paths that are one link longer than those that end at the edge."""
    farther: dict[str, _Path] = {}
    for end, path in edge.items():
        for neighbour, number in around[end].items():
            if neighbour == node or neighbour in found:
                continue
            longer = msgspec.structs.replace(path, hops=path.hops + 1, detour=path.detour + (1 << number))
            farther[neighbour] = min(farther.get(neighbour, longer), longer)
    return farther
