"""Node sets as text, in the field's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wulf.base.text import printable

#: What a node set is made of.
_PLAIN = re.compile(r"[A-Za-z0-9_.:%-]+")
#: Addresses by which ssh names a node in its messages.
_ADDRESS = r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){3,7}\b"


def fold(names: Iterable[str]) -> str:
    """Return the shortest node set text for `names`: ``node[01-17,19-32]``.

    What is not a name of a node, as a damaged file may have, is shown as it is, cleaned.
    """
    # Imported when it is used: verbs that only say how they are used need none of it.
    from ClusterShell.NodeSet import NodeSet  # noqa: PLC0415
    from ClusterShell.NodeUtils import GroupResolver, GroupSource  # noqa: PLC0415

    there = list(names)
    plain = [name for name in there if _PLAIN.fullmatch(name)]
    others = dict.fromkeys(printable(name, 80) for name in there if not _PLAIN.fullmatch(name))
    folded = str(NodeSet.fromlist(plain, resolver=GroupResolver(GroupSource("wulf", {})))) if plain else ""
    return ",".join(filter(None, [folded, *others]))


def unfold(text: str) -> list[str]:
    """Return the names that `fold` made one text of; a text that is not a node set is a name."""
    from ClusterShell.NodeSet import NodeSet, NodeSetException  # noqa: PLC0415
    from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource  # noqa: PLC0415

    try:
        return list(NodeSet(text, resolver=GroupResolver(GroupSource("wulf", {}))))
    except (NodeSetException, GroupResolverError, ValueError, RecursionError):
        return [text]


def fold_reasons(reasons: Mapping[str, str]) -> list[tuple[list[str], str]]:
    """Return (nodes, reason): nodes whose reasons differ in nothing but the node itself share one.

    Parameters
    ----------
    reasons
        Node → why it does not answer, as `ssh` says it: with the node's name or address in it.
    """
    alike: dict[str, list[str]] = {}
    for node, reason in reasons.items():
        alike.setdefault(impersonal(reason, [node]), []).append(node)
    return [
        (nodes, reasons[nodes[0]].removeprefix(f"{nodes[0]}: ") if len(nodes) == 1 else reason)
        for reason, nodes in alike.items()
    ]


def impersonal(reason: str, nodes: Iterable[str]) -> str:
    """Return a reason without the names and addresses of `nodes`, by which alone it may differ from others."""
    for node in nodes:
        reason = re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w-])", "NODE", reason.removeprefix(f"{node}: "))
    return re.sub(_ADDRESS, "NODE", reason)


def reasons_text(reasons: Mapping[str, str]) -> str:
    """Return ``node[03,07]: no route to host; node09: …``."""
    return "; ".join(f"{fold(nodes)}: {reason}" for nodes, reason in fold_reasons(reasons))
