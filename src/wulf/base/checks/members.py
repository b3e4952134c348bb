"""A node as each member of its cluster's interface sees it: checks of a network card are made of every one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from wulf.base.records import NodeRecord

#: Between the name of a fact and the member of the interface that it is of: ``nic.duplex@eno2``.
AT = "@"
#: What a member is, in words; only the view of a member has it without the member's name.
PART = "nic.part"


class Members(NamedTuple):
    """What the interface of a node is made of."""

    #: The node once for each member, with the member's facts in the place of the interface's.
    views: list[NodeRecord]
    #: Names of the facts that the members have.
    facts: frozenset[str]


def members(node: NodeRecord) -> Members | None:
    """Return what a node's interface is made of; None where it is a device."""
    names = [name.partition(AT)[2] for name in node.facts if name.startswith(f"{PART}{AT}")]
    if not names:
        return None
    ending = f"{AT}{names[0]}"
    facts = {
        name.removesuffix(ending)
        for place in _places(node).values()
        for name in place
        if name.endswith(ending)
    }
    return Members([_view(node, name, facts) for name in names], frozenset(facts))


def of_member(name: str) -> bool:
    """Whether a fact is that of a member of an interface, not of the interface."""
    return AT in name and not name.startswith("sysctl.")


def _places(node: NodeRecord) -> dict[str, Mapping[str, object]]:
    return {
        "facts": node.facts,
        "unknown": node.unknown,
        "absent": node.absent,
        "unsupported": node.unsupported,
    }


def _view(node: NodeRecord, member: str, facts: set[str]) -> NodeRecord:
    ending = f"{AT}{member}"
    return msgspec.structs.replace(
        node,
        **{
            key: {name: value for name, value in place.items() if name not in facts}
            | {name.removesuffix(ending): value for name, value in place.items() if name.endswith(ending)}
            for key, place in _places(node).items()
        },
    )
