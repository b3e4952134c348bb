"""What ``wulf init`` makes of a first look at the nodes: interface and addresses to measure. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.errors import InventoryError
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.records import NodeRecord
from wulf.base.text import printable
from wulf.node.facts.parse import interfaces

_RESOLVE = 'for n; do set -- $(getent ahosts "$n"); echo "$n ${1:--}"; done'

#: Nodes named in a message; the rest is a count.
_NAMED = 5


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into the cluster file."""

    interface: str | None
    #: Node → address, for the nodes whose name does not already lead to it.
    addresses: dict[str, str]
    #: What the user should know: nodes that do not answer, interfaces that differ.
    notes: list[str]


def resolve_argv(nodes: Sequence[str]) -> list[str]:
    """Command that prints, on a node, what the names of the nodes resolve to there."""
    return ["sh", "-c", _RESOLVE, "sh", *nodes]


def read_resolved(text: str) -> dict[str, str]:
    """Node → address from the output of `resolve_argv`; names that do not resolve are absent."""
    result = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and _address(words[1]) is not None:
            result[words[0]] = words[1]
    return result


def choose(records: Sequence[NodeRecord], resolved: Mapping[str, str], interface: str | None) -> Choice:
    """Choose the interface and the addresses to measure.

    Parameters
    ----------
    records
        Facts of all nodes.
    resolved
        What the nodes' names mean to *another* node (a node's own name often means loopback to itself).
    interface
        The user's choice; None leaves it to this: the interface that has the addresses the names lead to,
        else the only one that has an IPv4 address everywhere.

    Raises
    ------
    InventoryError
        When no node answered, or the interface is not on every node that did.
    """
    up = [record for record in records if record.reachable and record.error is None]
    if not up:
        raise InventoryError(f"no node answered{_first_error(records)}")
    down = {record.node: record.error or "no reason is known" for record in records if record not in up}
    notes = [f"does not answer: {fold(nodes)}: {reason}" for nodes, reason in fold_reasons(down)]
    tables = {record.node: interfaces(record.facts) for record in up}
    chosen = interface or _by_name(tables, resolved) or _only_one(tables)
    if chosen is None:
        seen = sorted({name for table in tables.values() for name in table})
        notes.append(f"no interface stands out among {', '.join(seen) or 'none'}; set it with --interface")
        return Choice(interface=None, addresses={}, notes=notes)
    lacking = [node for node, table in tables.items() if not _ipv4(table, chosen)]
    if lacking:
        raise InventoryError(
            f"{printable(chosen, 40)} has no IPv4 address on {_some(lacking)}; it is there on "
            f"{len(tables) - len(lacking)} of {len(tables)} nodes{_named_otherwise(tables, chosen, lacking)}; "
            "choose another with --interface"
        )
    addresses = {node: _ipv4(table, chosen) for node, table in tables.items()}
    _require_different(addresses)
    differing = {node: address for node, address in addresses.items() if resolved.get(node) != address}
    if differing:
        notes.append(
            f"names do not lead to {chosen} on {_some(list(differing))}: their addresses are written down"
        )
    return Choice(interface=chosen, addresses=differing, notes=notes)


def _require_different(addresses: Mapping[str, str]) -> None:
    """Refuse two names of one machine: what is measured between them is loopback.

    Raises
    ------
    InventoryError
        Names the nodes that have the same address.
    """
    owners: dict[str, list[str]] = {}
    for node, address in addresses.items():
        owners.setdefault(address, []).append(node)
    for address, nodes in owners.items():
        if len(nodes) > 1:
            raise InventoryError(
                f"{_some(nodes)} have the same address {address}: they are names of one machine (give it once), or "
                "two machines with one address"
            )


def _named_otherwise(tables: Mapping[str, dict[str, list[str]]], chosen: str, lacking: Sequence[str]) -> str:
    """Return what the nodes without the interface call the one that they have in the same network."""
    networks = {
        ipaddress.ip_interface(address).network
        for table in tables.values()
        for address in table.get(chosen, [])
    }
    names = {
        name: node
        for node in lacking
        for name, found in tables[node].items()
        if any(ipaddress.ip_interface(address).network in networks for address in found)
    }
    said = ", ".join(f"{printable(name, 40)} on {node}" for name, node in list(names.items())[:_NAMED])
    return f" (in the same network are {said}: a .link file gives them one name)" if said else ""


def _by_name(tables: Mapping[str, dict[str, list[str]]], resolved: Mapping[str, str]) -> str | None:
    """Interface that most nodes have the address on which their name leads to."""
    votes = Counter(
        name
        for node, table in tables.items()
        for name, found in table.items()
        if resolved.get(node) in [address.partition("/")[0] for address in found]
    )
    return votes.most_common(1)[0][0] if votes else None


def _only_one(tables: Mapping[str, dict[str, list[str]]]) -> str | None:
    everywhere = set.intersection(
        *({name for name in table if _ipv4(table, name)} for table in tables.values())
    )
    return everywhere.pop() if len(everywhere) == 1 else None


def _ipv4(table: Mapping[str, list[str]], interface: str) -> str:
    """First IPv4 address of the interface, without prefix length; empty when it has none."""
    found = [address.partition("/")[0] for address in table.get(interface, []) if ":" not in address]
    return found[0] if found else ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _some(nodes: Sequence[str]) -> str:
    more = len(nodes) - _NAMED
    return ", ".join(nodes[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _first_error(records: Sequence[NodeRecord]) -> str:
    errors = [record.error for record in records if record.error]
    return f"; the first says: {errors[0]}" if errors else ""
