"""Node sets as text, in the field's syntax."""

from __future__ import annotations

from collections.abc import Iterable

from ClusterShell.NodeSet import NodeSet
from ClusterShell.NodeUtils import GroupResolver, GroupSource


def fold(names: Iterable[str]) -> str:
    """Return the shortest node set text for `names`: ``node[01-17,19-32]``."""
    return str(NodeSet.fromlist(list(names), resolver=GroupResolver(GroupSource("wulf", {}))))
