"""Whether a shape is part of the graph of direct links, and where.  Pure.

That is subgraph monomorphism: every edge of the shape is a link, and other links may be there, too. It is NP-complete,
so a search may have to be ended; what was not found then may be there all the same.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import rustworkx

from wulf.base.errors import AnalysisError
from wulf.base.records import Embedding, Pair
from wulf.base.text import HAS, count
from wulf.base.topology.shapes import Shape

#: Steps of the first search; each further one has twice as many.
_FIRST_STEPS = 2_000


class _EndedError(Exception):
    """A search took too long."""


def place(shape: Shape, links: Sequence[Pair], ended: Callable[[], bool]) -> Embedding:
    """Look for a placement of a shape.

    Parameters
    ----------
    links
        The two nodes of each link. The first nodes get the first ranks where there is a choice.
    ended
        Asked at every step: whether the search is to end without an answer.

    Raises
    ------
    AnalysisError
        What the library found is no placement.
    """
    why = obstacle(shape, links)
    if why:
        return Embedding(shape=str(shape), state="none", reason=why)
    try:
        found = _search_anew(shape, links, ended)
    except _EndedError:
        return Embedding(shape=str(shape), state="not found")
    if found is None:
        return Embedding(
            shape=str(shape), state="none", reason="no choice of nodes has all the links that it takes"
        )
    lacking = missing(shape, found, links)
    if lacking or len(set(found)) != shape.ranks:
        raise AnalysisError(f"rustworkx placed {shape} where it is not: {', '.join(found)} lack {lacking}")
    return Embedding(shape=str(shape), state="found", placement=found)


def missing(shape: Shape, placement: Sequence[str], links: Iterable[Pair]) -> list[Pair]:
    """Return the pairs of nodes that would have to have a link between them and have none."""
    there = {frozenset(link) for link in links}
    pairs = [(placement[one], placement[other]) for one, other in shape.edges()]
    return [pair for pair in pairs if frozenset(pair) not in there]


def obstacle(shape: Shape, links: Iterable[Pair]) -> str:
    """Return why a shape cannot be there, as far as that shows without a search; empty where it does not."""
    there = {frozenset(link) for link in links}
    have = sorted(Counter(node for link in there for node in link).values(), reverse=True)
    if shape.ranks > len(have):
        return f"it has {count(shape.ranks, 'rank')}, and direct links join {count(len(have), 'node')}"
    edges = shape.edges()
    if len(edges) > len(there):
        return f"it takes {count(len(edges), 'link')}, and there are {len(there)}"
    need = sorted(Counter(rank for edge in edges for rank in edge).values(), reverse=True)
    lacking = next((many for many, most in zip(need, have, strict=False) if many > most), 0)
    if lacking:
        ranks, nodes = (sum(many >= lacking for many in counts) for counts in (need, have))
        wanted = count(ranks, "rank", verbs=HAS)
        return f"{wanted} {count(lacking, 'neighbour')}, and {count(nodes, 'node', verbs=HAS)} as many links"
    if shape.has_odd_rings and rustworkx.is_bipartite(_graph(there)):
        return "it has rings of an odd length, and all rings of the links have an even one"
    return ""


def _graph(links: Iterable[Iterable[str]]) -> rustworkx.PyGraph[str, None]:
    """Return the links as a graph."""
    graph: rustworkx.PyGraph[str, None] = rustworkx.PyGraph(multigraph=False)
    numbers: dict[str, int] = {}
    for one, other in links:
        for node in (one, other):
            if node not in numbers:
                numbers[node] = graph.add_node(node)
        graph.add_edge(numbers[one], numbers[other], None)
    return graph


def _search_anew(shape: Shape, links: Sequence[Pair], ended: Callable[[], bool]) -> list[str] | None:
    """Search with the links in one order after the other, each time for longer.

    How long a search takes depends on its first choices by orders of magnitude: most begun anew are short. Whichever
    comes to its end says whether there is a placement.
    """
    ordered = list(links)
    shuffle = random.Random(0).shuffle  # noqa: S311 - the same orders every time
    steps = _FIRST_STEPS
    while not ended():
        try:
            return _search(shape, ordered, steps, ended)
        except _EndedError:
            shuffle(ordered)
            steps *= 2
    raise _EndedError


def _search(shape: Shape, links: Sequence[Pair], steps: int, ended: Callable[[], bool]) -> list[str] | None:
    """Return the node of every rank; None where there is none. Raise _EndedError after so many steps."""
    graph = _graph(links)
    wanted: rustworkx.PyGraph[str, None] = rustworkx.PyGraph(multigraph=False)
    wanted.add_nodes_from([""] * shape.ranks)
    wanted.add_edges_from_no_data(shape.edges())
    taken = itertools.count(1)

    def may_be(_node: str, _rank: str) -> bool:
        # Any node may have any rank; but nowhere else can a search be left.
        if next(taken) > steps or ended():
            raise _EndedError
        return True

    mappings = rustworkx.vf2_mapping(
        graph, wanted, node_matcher=may_be, subgraph=True, induced=False, id_order=False
    )
    for mapping in mappings:
        node_of = {rank: graph[number] for number, rank in mapping.items()}
        return [node_of[rank] for rank in range(shape.ranks)]
    return None
