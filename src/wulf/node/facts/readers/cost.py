"""What a look itself took on a node, part by part. Pure."""

from __future__ import annotations

from itertools import pairwise

from wulf.base.output_values import Unknown, number
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.tree import Tree

_PREFIX = "section."


def add(facts: Facts, capture: NodeCapture) -> None:
    """Add the time of every part that finished; a look of an earlier version does not say."""
    starts = sections(capture.tree)
    for (name, begin), (_, end) in pairwise(starts):
        facts.put(f"look.{name}_s", round(max(end - begin, 0.0), 2))


def sections(tree: Tree) -> list[tuple[str, float]]:
    """Return the parts of a look and when they began [s since the node's start], in their order."""
    found = []
    for name in tree.outputs(_PREFIX):
        try:
            began = number((tree.text(f"{_PREFIX}{name}").split() or [""])[0], "the uptime")
        except Unknown:
            continue
        if name.isidentifier() and name.isascii() and len(name) < 40:
            found.append((name, began))
    return found
