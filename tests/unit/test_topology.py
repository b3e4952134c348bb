"""Shapes, their placements on direct links, and the routes over these."""

from __future__ import annotations

import itertools
import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wulf.base.errors import AnalysisError, UsageError
from wulf.base.topology import embed, routes, shapes
from wulf.base.topology.shapes import Shape

# --- shapes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ranks", "edges"),
    [
        ("ring:5", 5, 5),
        ("mesh:4x3", 12, 17),
        ("mesh:2x3x4", 24, 46),
        ("torus:4x3", 12, 24),
        ("torus:4x2", 8, 12),
        ("torus:2x2", 4, 4),
        ("torus:3x3x3", 27, 81),
        ("hypercube:1", 2, 1),
        ("hypercube:4", 16, 32),
    ],
)
def test_how_many_ranks_and_edges(text, ranks, edges):
    shape = shapes.parse(text)
    found = shape.edges()
    assert (str(shape), shape.ranks, len(found)) == (text, ranks, edges)
    assert len({frozenset(edge) for edge in found}) == edges
    assert all(0 <= one < other < ranks for one, other in found)


def test_ranks_are_those_of_mpi_cart_create():
    # The last dimension first: rank 4 of 2x3 is at (1, 1).
    assert set(shapes.parse("mesh:2x3").edges()) == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert set(shapes.parse("torus:2x3").edges()) - set(shapes.parse("mesh:2x3").edges()) == {(0, 2), (3, 5)}
    assert all((one ^ other).bit_count() == 1 for one, other in shapes.parse("hypercube:5").edges())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ring:2", "write ring:N with N from 3"),
        ("ring:3x3", "is no ring"),
        ("mesh:4", "is no mesh"),
        ("mesh:4x1", "sizes from 2"),
        ("torus:", "is no torus"),
        ("torus:4x4x4x4", "is no torus"),
        ("hypercube:0", "D from 1"),
        ("hypercube:99999", "more than 100000 ranks"),
        ("mesh:99999x99999", "more than 100000 ranks"),
        ("thorus:4x4", "did you mean 'torus'?"),
        ("4x4", "is not a shape"),
    ],
)
def test_what_is_no_shape(text, said):
    with pytest.raises(UsageError, match=said):
        shapes.parse(text)


def test_the_shapes_of_a_kind_come_by_size_and_those_of_the_shortest_sides_first():
    meshes = [[str(shape) for shape in together] for together in shapes.of_kind("mesh", 12)]
    assert meshes[0] == ["mesh:3x2x2", "mesh:4x3", "mesh:6x2"]
    assert meshes[-1] == ["mesh:2x2"]
    assert ["torus:4x2"] in [[str(shape) for shape in one] for one in shapes.of_kind("torus", 8)]
    assert [[str(one) for one in some] for some in shapes.of_kind("hypercube", 9)] == [
        ["hypercube:3"],
        ["hypercube:2"],
        ["hypercube:1"],
    ]


# --- placements ----------------------------------------------------------------------------------------------


def links_of(text: str, seed: int = 0) -> list[tuple[str, str]]:
    """A cluster whose links are a shape, with the names and the order of cables mixed up."""
    shape = shapes.parse(text)
    names = [f"n{number:03d}" for number in range(shape.ranks)]
    chance = random.Random(seed)
    chance.shuffle(names)
    links = [(names[one], names[other]) for one, other in shape.edges()]
    chance.shuffle(links)
    return links


def look(text: str, links, limit_s: float = 30.0):
    end = time.monotonic() + limit_s
    return embed.place(shapes.parse(text), links, lambda: time.monotonic() > end)


def assert_placed(text: str, placement, links) -> None:
    """Without the code under test: all ranks elsewhere, and every pair of neighbours with a link."""
    shape = shapes.parse(text)
    there = {frozenset(link) for link in links}
    assert len(set(placement)) == len(placement) == math.prod(shape.extents)
    periodic = shape.kind in ("ring", "torus")
    for at in itertools.product(*map(range, shape.extents)):
        for axis, extent in enumerate(shape.extents):
            if at[axis] + 1 == extent and (not periodic or extent == 2):
                continue
            to = (*at[:axis], (at[axis] + 1) % extent, *at[axis + 1 :])
            ranks = [_rank(place, shape.extents) for place in (at, to)]
            assert frozenset(placement[rank] for rank in ranks) in there


def _rank(at, extents) -> int:
    rank = 0
    for place, extent in zip(at, extents, strict=True):
        rank = rank * extent + place
    return rank


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("cables", "text"),
    [
        ("torus:4x2", "ring:8"),
        ("torus:4x2", "hypercube:3"),
        ("torus:4x4", "hypercube:4"),
        ("torus:4x4", "mesh:4x4"),
        ("torus:5x5", "ring:25"),
        ("torus:8x8", "ring:64"),
        ("torus:8x8", "torus:8x8"),
        ("hypercube:6", "torus:16x4"),
        ("hypercube:6", "torus:4x4x4"),
        ("torus:4x4x4", "torus:8x8"),
        ("mesh:6x6", "ring:36"),
        ("torus:3x3x3", "mesh:9x3"),
    ],
)
def test_what_is_there_is_found(cables, text, seed):
    links = links_of(cables, seed)
    found = look(text, links)
    assert (found.shape, found.state, found.reason) == (text, "found", "")
    assert_placed(text, found.placement, links)


@pytest.mark.parametrize(
    ("cables", "text", "why"),
    [
        ("ring:8", "ring:9", "it has 9 ranks, and direct links join 8 nodes"),
        ("ring:8", "mesh:4x2", "it takes 10 links, and there are 8"),
        ("mesh:8x2", "mesh:3x3", "1 rank has 4 neighbours, and 0 nodes have as many links"),
        ("mesh:4x4", "ring:15", "rings of an odd length, and all rings of the links have an even one"),
        ("torus:8x8", "mesh:2x2x2", "no choice of nodes has all the links that it takes"),
        ("torus:5x5", "mesh:6x4", "no choice of nodes"),
        ("torus:3x3", "hypercube:3", "no choice of nodes"),
    ],
)
def test_what_is_not_there_is_none_and_says_why(cables, text, why):
    found = look(text, links_of(cables))
    assert (found.state, found.placement) == ("none", [])
    assert why in found.reason


def test_a_search_that_is_ended_does_not_say_none():
    found = embed.place(shapes.parse("torus:8x8"), links_of("torus:8x8"), lambda: True)
    assert (found.state, found.placement) == ("not found", [])


def test_a_search_is_ended_in_its_midst():
    # Six times eight ranks in the second dimension: a long search, and in the end nothing.
    links = links_of("torus:16x16")
    begin = time.monotonic()
    found = look("mesh:32x8", links, limit_s=0.3)
    assert found.state == "not found"
    assert time.monotonic() - begin < 30


def test_the_same_links_give_the_same_placement():
    links = links_of("torus:6x6")
    assert look("ring:36", links) == look("ring:36", links)


def test_a_placement_that_is_none_is_not_passed_on(monkeypatch):
    monkeypatch.setattr(embed, "_search", lambda *_: ["a", "b", "c", "d"])
    with pytest.raises(AnalysisError, match="placed ring:4 where it is not"):
        embed.place(shapes.parse("ring:4"), links_of("ring:4"), lambda: False)


@st.composite
def graphs(draw):
    count = draw(st.integers(2, 8))
    pairs = list(itertools.combinations([f"n{number}" for number in range(count)], 2))
    return draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=20))


SMALL = [
    *(Shape("ring", (number,)) for number in range(3, 8)),
    *(Shape("mesh", sizes) for sizes in ((2, 2), (3, 2), (2, 2, 2))),
    *(Shape("torus", sizes) for sizes in ((3, 2), (2, 2))),
    *(Shape("hypercube", (number,)) for number in (1, 2)),
]


@settings(max_examples=150)
@given(graphs(), st.sampled_from(SMALL))
def test_found_or_none_is_what_trying_all_choices_says(links, shape):
    there = {frozenset(link) for link in links}
    nodes = sorted({node for link in links for node in link})
    edges = shape.edges()

    def extend(chosen):
        rank = len(chosen)
        if rank == shape.ranks:
            return True
        before = [one for one, other in edges if other == rank]
        return any(
            node not in chosen
            and all(frozenset((chosen[one], node)) in there for one in before)
            and extend([*chosen, node])
            for node in nodes
        )

    found = embed.place(shape, links, lambda: False)
    assert (found.state == "found") == extend([])
    if found.state == "found":
        assert_placed(str(shape), found.placement, links)


# --- routes --------------------------------------------------------------------------------------------------


def distances(links) -> dict[tuple[str, str], int]:
    """Links between all nodes, by Floyd and Warshall."""
    nodes = sorted({node for link in links for node in link})
    found = {(one, other): 0 if one == other else math.inf for one in nodes for other in nodes}
    for one, other in links:
        found[one, other] = found[other, one] = 1
    for via, one, other in itertools.product(nodes, repeat=3):
        found[one, other] = min(found[one, other], found[one, via] + found[via, other])
    return found


def walk(table, node: str, target: str) -> list[str]:
    """Where a packet goes: each node looks up the target in its own routes."""
    way = [node]
    while way[-1] != target:
        way.append(table[way[-1], target].neighbour)
        assert len(way) <= len(table) + 1, f"it never arrives: {way}"
    return way


def assert_routes(links, hops: int) -> None:
    planned = routes.plan(links, hops)
    table = {(one.node, one.target): one for one in planned}
    assert len(table) == len(planned)
    apart = distances(links)
    assert set(table) == {pair for pair, length in apart.items() if 0 < length <= hops}
    passing = routes.forwarded(planned)
    seen: dict[str, set[int]] = {}
    for (node, target), one in table.items():
        assert set(links[one.link]) == {node, one.neighbour}
        way = walk(table, node, target)
        assert len(way) - 1 == one.hops == apart[node, target]  # it arrives, on a shortest path
        assert walk(table, target, node) == way[::-1]  # and answers come back on it
        for before, at in itertools.pairwise(way[:-1]):
            # What comes in is sent on; the way to who sent it leads out there again, as rp_filter wants it.
            link = table[at, node].link
            assert table[at, node].neighbour == before
            seen.setdefault(at, set()).add(link)
    assert passing == seen


@pytest.mark.parametrize("hops", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "cables", ["ring:7", "mesh:4x3", "torus:4x4", "torus:5x3", "hypercube:4", "torus:3x3x3"]
)
def test_packets_arrive_by_shortest_paths_and_come_back_the_same_way(cables, hops):
    assert_routes(links_of(cables), hops)


@settings(max_examples=100)
@given(graphs(), st.integers(1, 5))
def test_so_they_do_on_any_links_also_where_two_nodes_have_several(links, hops):
    assert_routes(links, hops)


def test_one_link_between_two_nodes_is_used_the_first_of_the_file():
    found = routes.plan([("a", "b"), ("b", "a")], 3)
    assert [(one.node, one.target, one.link, one.hops) for one in found] == [
        ("a", "b", 0, 1),
        ("b", "a", 0, 1),
    ]


def test_neighbours_alone_forward_nothing():
    assert routes.forwarded(routes.plan(links_of("torus:4x4"), 1)) == {}


@given(
    text=st.sampled_from(
        ["ring:3", "ring:6", "mesh:3x4", "torus:4x2", "torus:5x4", "torus:3x3x3", "hypercube:3"]
    ),
    data=st.data(),
)
@settings(deadline=None)
def test_dimension_order_arrives_by_shortest_ways_and_one_dimension_after_the_other(text, data):
    shape = shapes.parse(text)
    names = [f"n{rank}" for rank in range(shape.ranks)]
    links = [(names[one], names[other]) for one, other in shape.edges()]
    data.draw(st.randoms()).shuffle(links)
    planned = {(one.node, one.target): one for one in routes.by_dimension(shape, names, links)}
    assert len(planned) == shape.ranks * (shape.ranks - 1)
    position = dict(zip(names, itertools.product(*map(range, shape.extents)), strict=True))
    shortest = {(one.node, one.target): one.hops for one in routes.plan(links, shape.ranks)}
    for (node, target), first in planned.items():
        way = [node]
        while way[-1] != target:
            step = planned[way[-1], target]
            assert {step.node, step.neighbour} == set(links[step.link])
            way.append(step.neighbour)
        assert len(way) - 1 == first.hops == shortest[node, target]
        changed = [
            next(
                place
                for place, pair in enumerate(zip(position[a], position[b], strict=True))
                if pair[0] != pair[1]
            )
            for a, b in itertools.pairwise(way)
        ]
        assert changed == sorted(changed), "a dimension is right before the next one"
