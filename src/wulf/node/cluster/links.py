"""Direct links, as the cluster file has them: ``["node01:eth1=10.1.0.0/31", "node02:eth2=10.1.0.1/31"]``."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Mapping, Sequence

from wulf.base.errors import ConfigError
from wulf.base.interfaces import Interface, interface_of
from wulf.base.records import DirectLink, LinkEnd
from wulf.base.text import is_interface, nearest, printable

_END = re.compile(r"(?P<node>[^:=]+)(?::(?P<interface>[^=]*))?(?:=(?P<address>.*))?")
_FORM = "write NODE:INTERFACE=ADDRESS/PREFIX, such as node01:eth1=10.1.0.1/31"


def read(
    lists: Sequence[Sequence[str]],
    members: frozenset[str],
    addresses: Mapping[str, str],
    interface: Interface,
) -> tuple[DirectLink, ...]:
    """Return the links of ``[cluster] links``.

    Parameters
    ----------
    members
        Nodes of the cluster.
    addresses
        Node → address at which the others reach it through the switch.
    interface
        That of the switch.

    Raises
    ------
    ConfigError
        Names the link, what is wrong, and what to do.
    """
    #: Address, or interface of a node → where that is said.
    taken: dict[str, str] = {}
    networks: list[tuple[ipaddress.IPv4Network, str]] = []
    found = []
    for number, words in enumerate(lists, start=1):
        where = f"[cluster] links, link {number}"
        link = _link(words, members, where)
        for end in link.ends:
            if end.interface is not None and end.interface == interface_of(interface, end.node):
                raise ConfigError(
                    f"{where}: {end.interface} leads to the switch, as [cluster] interface says"
                )
            _claim(end, taken, where)
        networks += [(network, where) for network in _network(link, where)]
        found.append(link)
    _require_apart(networks, addresses)
    return tuple(found)


def write(link: DirectLink) -> list[str]:
    """Return a link as the cluster file has it."""
    return [
        f"{end.node}{f':{end.interface}' if end.interface else ''}{f'={end.address}' if end.address else ''}"
        for end in link.ends
    ]


def _link(words: Sequence[str], members: frozenset[str], where: str) -> DirectLink:
    if len(words) != 2:
        raise ConfigError(f"{where}: has {len(words)} ends instead of two: {_FORM}, for each")
    first, second = (_end(word, members, where) for word in words)
    if first.node == second.node:
        raise ConfigError(f"{where}: both ends are on {first.node}: a link is between two nodes")
    return DirectLink(ends=(first, second))


def _end(word: str, members: frozenset[str], where: str) -> LinkEnd:
    match = _END.fullmatch(word)
    if match is None:
        raise ConfigError(f"{where}: '{printable(word, 80)}' is not an end of a link: {_FORM}")
    node, interface, address = match["node"], match["interface"], match["address"]
    if node not in members:
        raise ConfigError(
            f"{where}: {printable(node, 80)} is not a node of this cluster{nearest(node, members)}"
        )
    if interface is not None and not is_interface(interface):
        raise ConfigError(
            f"{where}: '{printable(interface, 40)}' is not an interface; see `ip -br link` on {node}"
        )
    return LinkEnd(
        node=node, interface=interface, address=None if address is None else _address(address, where)
    )


def _address(text: str, where: str) -> str:
    shown = printable(text, 60)
    try:
        address = ipaddress.IPv4Interface(text)
    except ValueError as error:
        raise ConfigError(f"{where}: '{shown}' is not an IPv4 address with a prefix: {_FORM}") from error
    network = address.network
    if "/" not in text or network.prefixlen == 32:
        raise ConfigError(f"{where}: '{shown}' does not define a network for both ends: {_FORM}")
    if network.prefixlen < 31 and address.ip in (network.network_address, network.broadcast_address):
        raise ConfigError(f"{where}: {shown} is a network or broadcast address, not that of a node")
    return str(address)


def _claim(end: LinkEnd, taken: dict[str, str], where: str) -> None:
    """Take an end's address and its interface, which no other end may have."""
    names = {}
    if end.address is not None:
        names[end.address.partition("/")[0]] = end.address.partition("/")[0]
    if end.interface is not None:
        names[f"{end.node}:{end.interface}"] = f"{end.interface} of {end.node}"
    for key, what in names.items():
        if key in taken:
            other = taken[key].removeprefix("[cluster] links, ")
            raise ConfigError(
                f"{where}: {what} is that of {other}, too: each end needs its own interface and address"
            )
        taken[key] = where


def _network(link: DirectLink, where: str) -> list[ipaddress.IPv4Network]:
    """Return the network of a link; none where no address is said."""
    known = [ipaddress.IPv4Interface(end.address).network for end in link.ends if end.address is not None]
    if len(known) == 2 and known[0] != known[1]:
        shown = " and ".join(end.address or "" for end in link.ends)
        raise ConfigError(
            f"{where}: {shown} are not in one network: give both ends addresses of the same, such as "
            "10.1.0.0/31 and 10.1.0.1/31"
        )
    return known[:1]


def _require_apart(
    networks: Sequence[tuple[ipaddress.IPv4Network, str]], addresses: Mapping[str, str]
) -> None:
    """Refuse networks of two links that overlap, and those that have an address of the switch's network in them."""
    if not networks:
        return
    behind_switch = {
        ipaddress.IPv4Network(address): f"[addresses] {node}"
        for node, address in addresses.items()
        if _is_ipv4(address)
    }
    ordered = sorted([*networks, *behind_switch.items()])
    for (before, owner), (network, where) in itertools.pairwise(ordered):
        if network.overlaps(before):
            raise ConfigError(
                f"{where}: {network} overlaps {before} of {owner}: give each link a network of its own, apart from "
                "the switch's, such as 10.1.0.0/31"
            )


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
