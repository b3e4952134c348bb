"""What ``wulf init`` makes of a first look at the nodes: interface and addresses to measure. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.errors import InventoryError
from wulf.base.interfaces import Interface, Interfaces, made
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.records import NodeRecord
from wulf.base.text import printable
from wulf.node.facts.parse import interfaces

_RESOLVE = 'for n; do set -- $(getent ahosts "$n"); echo "$n ${1:--}"; done'

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_LIBRARIES = {"mpi.openmpi": "Open MPI", "mpi.mpich": "MPICH"}
#: Nodes named in a message; the rest is a count.
_NAMED = 5


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into the cluster file."""

    interface: Interface
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
        else the only one that has an address everywhere, else the one in the only network that all nodes are in.
        A node without it is asked what it calls its interface in the same network.

    Raises
    ------
    InventoryError
        When no node answered, or one that did has no interface in the network.
    """
    up = [record for record in records if record.reachable and record.error is None]
    if not up:
        raise InventoryError(f"no node answered{_first_error(records)}")
    down = {record.node: record.error or "no reason is known" for record in records if record not in up}
    notes = [f"does not answer: {fold(nodes)}: {reason}" for nodes, reason in fold_reasons(down)]
    tables = {record.node: interfaces(record.facts) for record in up}
    usual = interface or _by_name(tables, resolved) or _only_one(tables) or _in_only_network(tables)
    if usual is None:
        seen = sorted({name for table in tables.values() for name in table})
        notes.append(f"cannot choose an interface among {', '.join(seen) or 'none'}; set it with --interface")
        return Choice(interface=None, addresses={}, notes=notes)
    names = _names(tables, usual)
    chosen = made(usual, names)
    if isinstance(chosen, Interfaces):
        notes.append(f"the interface is {chosen}: written down below [interfaces]")
    addresses = {node: _usable(table, names[node]) for node, table in tables.items()}
    _require_different(addresses)
    differing = {node: address for node, address in addresses.items() if resolved.get(node) != address}
    if differing:
        notes.append(
            f"names do not resolve to {usual} on {_some(list(differing))}: their addresses are written down"
        )
    return Choice(interface=chosen, addresses=differing, notes=notes)


def _names(tables: Mapping[str, dict[str, list[str]]], usual: str) -> dict[str, str]:
    """Return what each node calls the interface: what most call it, or the only one in the same network.

    Raises
    ------
    InventoryError
        Names the nodes that have neither.
    """
    networks = {network for table in tables.values() for network in _networks(table, usual)}
    found, lacking = {}, []
    for node, table in tables.items():
        there = [name for name in table if networks.intersection(_networks(table, name))]
        if _usable(table, usual):
            found[node] = usual
        elif len(there) == 1:
            found[node] = there[0]
        else:
            lacking.append(node)
    if lacking:
        raise InventoryError(
            f"{_some(lacking)} has no address on {printable(usual, 40)}, and no one other interface in its network: "
            "choose another with --interface"
        )
    return found


def _networks(table: Mapping[str, list[str]], name: str) -> set[_Network]:
    return {ipaddress.ip_interface(address).network for address in table.get(name, [])}


def _in_only_network(tables: Mapping[str, dict[str, list[str]]]) -> str | None:
    """Return what most nodes call their interface in the only network that all of them are in."""
    of_node = [{network for name in table for network in _networks(table, name)} for table in tables.values()]
    shared = set.intersection(*of_node)
    if len(shared) != 1:
        return None
    votes = Counter(
        name for table in tables.values() for name in table if shared.intersection(_networks(table, name))
    )
    return votes.most_common(1)[0][0]


def seen(records: Sequence[NodeRecord]) -> list[str]:
    """Return what stands in the way of jobs between nodes that have looked at each other, for people."""
    notes = []
    for fact, words in (
        ("path.ssh", "cannot ssh to"),
        ("path.ports", "cannot reach"),
        ("path.loopback_names", "means itself by"),
    ):
        reasons = {
            record.node: str(record.facts[fact])
            for record in records
            if record.facts.get(fact, "none") not in ("works", "none")
        }
        notes += [f"{fold(nodes)} {words} {reason}" for nodes, reason in fold_reasons(reasons)]
    return [*notes, *_libraries(records)]


def _libraries(records: Sequence[NodeRecord]) -> list[str]:
    """Return which nodes have another MPI library than the others, or none."""
    versions: dict[str, list[str]] = {}
    for record in records:
        if record.reachable and record.error is None:
            has = [f"{name} {record.facts[key]}" for key, name in _LIBRARIES.items() if key in record.facts]
            versions.setdefault(" and ".join(has) or "no MPI library in PATH", []).append(record.node)
    if len(versions) < 2:
        return []
    said = "; ".join(f"{words} on {fold(nodes)}" for words, nodes in versions.items())
    return [f"jobs between nodes with different MPI libraries fail: {said}"]


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
        *({name for name in table if _usable(table, name)} for table in tables.values())
    )
    return everywhere.pop() if len(everywhere) == 1 else None


def _usable(table: Mapping[str, list[str]], interface: str) -> str:
    """First IPv4 address of the interface, else its first IPv6 one, without prefix length; empty where it has none."""
    found = [address.partition("/")[0] for address in table.get(interface, [])]
    return next((address for address in found if ":" not in address), found[0] if found else "")


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
