"""Interfaces that jobs are told to use, held against those that the nodes have."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.base.records import NodeRecord, Values
from wulf.base.text import printable
from wulf.node.facts.parse import interfaces

#: Its value is a list of names and networks.
_KNOB = "ompi.btl_tcp_if_include"


def require(setting: Values, records: Sequence[NodeRecord]) -> None:
    """Refuse a setting by which a node would have no interface left: its jobs fail, or use other ways.

    Raises
    ------
    UsageError
        No node has one of the interfaces, or a node has none of them; names the nodes and what they have.
    """
    if _KNOB not in setting:
        return
    text = f"{_KNOB}={setting[_KNOB]}"
    words = [word.strip() for word in setting[_KNOB].split(",")]
    # Of a node whose addresses are not known nothing is said.
    nodes = {
        record.node: interfaces(record.facts) for record in records if "network.addresses" in record.facts
    }
    had = {word: [node for node, there in nodes.items() if _has(there, word, text)] for word in words}
    nowhere = [word for word, where in had.items() if not where]
    if nodes and nowhere:
        raise UsageError(f"{text}: no node has {printable(nowhere[0], 60)}; {_there(nodes)}")
    without = [node for node in nodes if not any(node in where for where in had.values())]
    if without:
        raise UsageError(
            f"{text}: {fold(without)} would have no interface; a network (10.0.0.0/24) means the same on every node; "
            f"{_there({node: nodes[node] for node in without})}"
        )


def _has(there: Mapping[str, Sequence[str]], word: str, text: str) -> bool:
    if "/" not in word:
        return word in there or word == "lo"
    try:
        network = ipaddress.ip_network(word, strict=False)
    except ValueError as error:
        raise UsageError(f"{text}: {error}") from None
    # Every node has it, and its facts leave it out.
    return network.is_loopback or any(
        ipaddress.ip_interface(address).ip in network for found in there.values() for address in found
    )


def _there(nodes: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Return which interfaces there are, with their addresses on the first node that has them."""
    first: dict[str, str] = {}
    for there in nodes.values():
        for name, addresses in there.items():
            first.setdefault(name, addresses[0])
    words = [f"{printable(name, 40)} ({address} …)" for name, address in first.items()]
    return f"there are {', '.join(words) or 'none with an address'}"
