"""What the direct links of a cluster make: shapes with their placements, and routes that use them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from wulf.base.errors import UsageError
from wulf.base.records import Embedding, LinkTopology, Pair
from wulf.base.text import count
from wulf.base.topology import shapes
from wulf.base.topology.embed import place
from wulf.base.topology.shapes import Shape
from wulf.node.cluster.inventory import ClusterConfig

#: Shapes of one kind are looked for in all as long as so many of the longest searches take.
SEARCHES = 5


def survey(config: ClusterConfig, *, within_s: float) -> LinkTopology:
    """Return the links, and of every kind of shape the largest that embed in them.

    Parameters
    ----------
    within_s
        How long one shape is looked for; all of a kind take at most `SEARCHES` times as long [s].
    """
    links = pairs(config)
    return LinkTopology(
        nodes=list(config.nodes),
        links=list(config.links),
        embeddings=[found for kind in shapes.KINDS for found in _largest(kind, links, within_s)],
    )


def embed(config: ClusterConfig, shape: Shape, *, within_s: float) -> Embedding:
    """Look for a placement of a shape.

    Parameters
    ----------
    within_s
        The search is ended after so long [s].
    """
    return _place(shape, pairs(config), within_s)


def pairs(config: ClusterConfig) -> list[Pair]:
    """Return the two nodes of each direct link.

    Raises
    ------
    UsageError
        There are no links.
    """
    if not config.links:
        raise UsageError(
            f"{config.origin} has no direct links: [cluster] links names them, as in\n"
            '  links = [["node01:eth1=10.1.0.0/31", "node02:eth1=10.1.0.1/31"]]'
        )
    return [link.nodes for link in config.links]


def _place(shape: Shape, links: Sequence[Pair], within_s: float) -> Embedding:
    end = time.monotonic() + within_s
    found = place(shape, links, lambda: time.monotonic() > end)
    if found.state != "not found":
        return found
    return msgspec.structs.replace(
        found, reason=f"not found within {within_s:g} s; it may exist all the same"
    )


def _largest(kind: shapes.Kind, links: Sequence[Pair], within_s: float) -> Iterator[Embedding]:
    """Yield the shapes of the largest size that is there; before them larger ones that may be there, too."""
    end = time.monotonic() + SEARCHES * within_s
    cut = False
    linked = len({node for link in links for node in link})
    for together in shapes.of_kind(kind, linked):
        tried = [_place(shape, links, within_s) for shape in together]
        yield from (found for found in tried if found.state != "none")
        if any(found.state == "found" for found in tried):
            return
        cut = cut or any(found.state == "not found" for found in tried)
        if time.monotonic() > end:
            why = f"of fewer than {count(together[0].ranks, 'rank')} none was searched for: time ran out"
            yield Embedding(shape=kind, state="not found", reason=why)
            return
    if not cut:
        yield Embedding(shape=kind, state="none", reason="there is none of any size")
