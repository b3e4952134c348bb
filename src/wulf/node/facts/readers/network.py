"""Addresses, routes and names: which way the cluster's traffic goes. Pure."""

from __future__ import annotations

import functools
import ipaddress
import itertools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from wulf.base.output_values import Absent, Unknown, is_count, number, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers.nic import interface_address, interface_addresses

#: Interfaces that container engines and virtual machine managers make, each with a network of its own.
_FOREIGN = re.compile(
    r"docker\d|br-[0-9a-f]{12}|virbr\d|cni\d|podman\d|lxcbr\d|lxdbr\d|flannel|cali|vboxnet\d"
)
_SYSCTL = "/proc/sys/"
#: After so long the script gives a look-up up.
_RESOLVE_LIMIT_S = 3.0
#: Sysctls that count or are drawn at random: they say nothing of how a node is set.
_CHANGING = re.compile(
    r"net\.netfilter\.nf_conntrack_count|kernel\.random|net\.ipv4\.tcp_fastopen_key|.*_bytes_now|vm\.stat_refresh"
    r"|net\.core\.netdev_rss_key|net\.ipv4\.tcp_.*_hmac.*|vm\.(compact_memory|drop_caches)"
)


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect addresses, routes, name resolution and sysctls."""
    for name, read in _FACTS.items():
        facts.read(name, lambda read=read: read(capture))  # type: ignore[misc]
    for path, text in capture.tree.files(_SYSCTL):
        fact = _sysctl(path)
        if fact is not None:
            facts.put(fact, " ".join(text.split()))


@functools.lru_cache(maxsize=4096)
def _sysctl(path: str) -> str | None:
    """Return the fact's name; None for what says nothing of how a node is set."""
    name = path[len(_SYSCTL) :].replace("/", ".")
    return None if _CHANGING.fullmatch(name) else f"sysctl.{name}"


def _all_addresses(capture: NodeCapture) -> FactValue:
    found = interface_addresses(capture)
    words = [f"{nic}={address}" for nic, addresses in found.items() for address in addresses]
    if not words:
        raise Unknown("ip shows no address but loopback's and link-local ones")
    return " ".join(words)


def _networks(capture: NodeCapture) -> dict[str, list[ipaddress.IPv4Network | ipaddress.IPv6Network]]:
    networks: dict[str, list[ipaddress.IPv4Network | ipaddress.IPv6Network]] = {}
    for nic, addresses in interface_addresses(capture).items():
        known = [interface_address(address) for address in addresses]
        networks[nic] = [address.network for address in known if address is not None]
    return networks


def _shared_subnets(capture: NodeCapture) -> FactValue:
    """Return the subnets in which more than one interface has an address."""
    owners: dict[str, list[str]] = {}
    for nic, networks in _networks(capture).items():
        for network in dict.fromkeys(networks):
            if network.num_addresses > 1:
                owners.setdefault(str(network), []).append(nic)
    said = [f"{network}: {', '.join(nics)}" for network, nics in owners.items() if len(nics) > 1]
    return "; ".join(said) or "none"


def _foreign(capture: NodeCapture) -> FactValue:
    """Return the interfaces of container engines and the like that have an address."""
    return " ".join(nic for nic in interface_addresses(capture) if _FOREIGN.match(nic)) or "none"


def _other_networks(capture: NodeCapture) -> FactValue:
    """Return the interfaces with an address beside the cluster's and those of container engines."""
    nic = capture.nic()
    return " ".join(n for n in interface_addresses(capture) if n != nic and not _FOREIGN.match(n)) or "none"


def _default_interface(capture: NodeCapture) -> FactValue:
    for line in capture.tree.lines("routes"):
        found = re.match(r"default\b.*\bdev (\S+)", line)
        if found:
            return found[1]
    raise Absent("there is no default route")


def _faces_outside(capture: NodeCapture) -> FactValue:
    """Return whether the cluster's interface has the default route or a public address."""
    nic = capture.nic()
    try:
        if _default_interface(capture) == nic:
            return True
    except Absent:
        pass
    benchmark = ipaddress.ip_network("198.18.0.0/15")
    for address in interface_addresses(capture).get(nic, []):
        known = interface_address(address)
        if known is not None and known.ip.is_global and known.ip not in benchmark:
            return True
    return False


def _routes(capture: NodeCapture) -> FactValue:
    """Return where packets leave the node: ``10.0.0.0/24 dev eth0, 10.0.0.7 via 10.1.0.2 dev eth1``."""
    found = []
    for line in capture.tree.lines("routes"):
        destination, *words = line.split() or [""]
        at = dict(itertools.pairwise(words))
        if "dev" in at:
            gateway = f"via {at['via']} " if "via" in at else ""
            found.append(f"{destination} {gateway}dev {at['dev']}")
    return shown(", ".join(found) or "none", 4000)


def rto_min(capture: NodeCapture) -> FactValue:
    """Return the shortest retransmission time-out that a route over the cluster's interface asks for."""
    nic = capture.nic()
    for line in capture.tree.lines("routes"):
        found = re.search(rf"\bdev {re.escape(nic)}\b.*\brto_min (?:lock )?(\S+)", line)
        if found:
            return found[1]
    try:
        return f"{whole(capture.tree.text('/proc/sys/net/ipv4/tcp_rto_min_us'), 'the time-out') / 1000:g}ms"
    except Unknown:
        raise Absent("no route sets it: the kernel's 200 ms hold") from None


def _resolve(capture: NodeCapture, look: str = "resolve") -> list[str]:
    lines = capture.tree.lines(look)
    if len(lines) < 2 or not (is_count(lines[0]) and is_count(lines[-1])):
        raise Unknown("the node's getent or date does not say")
    return lines


def _resolve_time(capture: NodeCapture) -> FactValue:
    """Return how long the node needs to look its own name up [s]: what is slow is slow each time."""
    try:
        taken = [_time_taken(_resolve(capture))]
    except Unknown as reason:
        if "in time" in str(reason):
            return _RESOLVE_LIMIT_S
        raise
    with suppress(Unknown):
        taken.append(_time_taken(_resolve(capture, "resolve.again")))
    return min(taken)


def _time_taken(lines: Sequence[str]) -> float:
    taken_ns = whole(lines[-1], "the time") - whole(lines[0], "the time")
    if taken_ns < 0:
        raise Unknown("the node's clock was set back meanwhile")
    return taken_ns / 1e9


def _resolve_own(capture: NodeCapture) -> FactValue:
    """Return what the node's own name means to itself."""
    addresses = [line.split()[0] for line in _resolve(capture)[1:-1]]
    if not addresses:
        raise Absent("the node's own name has no address")
    return shown(addresses[0], 60)


def _squeezed(column: int) -> Callable[[NodeCapture], FactValue]:
    """Return the reader of a column of softnet_stat, summed over CPUs: how much it grew during the look."""

    def read(capture: NodeCapture) -> FactValue:
        sums = []
        for n in (1, 2):
            words = [line.split() for line in capture.tree.lines(f"softnet.{n}")]
            try:
                sums.append(sum(int(row[column], 16) for row in words))
            except (ValueError, IndexError):
                raise Unknown("/proc/net/softnet_stat does not say") from None
        return max(0, sums[1] - sums[0])

    return read


def _retransmitted(capture: NodeCapture) -> FactValue:
    """Return the share of TCP segments sent again since the boot (0–1)."""
    lines = [line.partition(":")[2] for line in capture.tree.lines("protocols.2")]
    rows = [line.split() for line in lines if line.startswith("Tcp:")]
    if len(rows) < 2 or len(rows[0]) != len(rows[1]):
        raise Unknown("/proc/net/snmp does not say")
    values = dict(zip(rows[0], rows[1], strict=True))
    sent = number(values.get("OutSegs", ""), "OutSegs")
    if sent == 0:
        raise Unknown("nothing was sent yet")
    return number(values.get("RetransSegs", ""), "RetransSegs") / sent


def _name_servers(capture: NodeCapture) -> FactValue:
    found = [
        line.split()[1] for line in capture.tree.lines("/etc/resolv.conf") if line.startswith("nameserver ")
    ]
    return " ".join(found) or "none"


def _conntrack_entries(capture: NodeCapture) -> FactValue:
    return whole(capture.tree.text(f"{_SYSCTL}net/netfilter/nf_conntrack_count"), "the count")


_FACTS: dict[str, Callable[[NodeCapture], FactValue]] = {
    "network.addresses": _all_addresses,
    "network.shared_subnets": _shared_subnets,
    "network.foreign_interfaces": _foreign,
    "network.other_interfaces": _other_networks,
    "network.routes": _routes,
    "network.default_interface": _default_interface,
    "network.faces_outside": _faces_outside,
    "network.name_servers": _name_servers,
    "network.resolve_s": _resolve_time,
    "network.own_name": _resolve_own,
    "network.backlog_drops": _squeezed(1),
    "network.budget_squeezes": _squeezed(2),
    "network.retransmitted_ratio": _retransmitted,
    "firewall.tracked_connections": _conntrack_entries,
}
