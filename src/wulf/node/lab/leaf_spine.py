"""A routed fabric of leaf and spine switches for the virtual cluster: namespaces that forward packets.

Each leaf has the nodes of its own subnet; from leaf to leaf there is a route by way of every spine, and a flow takes
one of them by its addresses and ports (``fib_multipath_hash_policy``), as in a real network with ECMP.
"""

from __future__ import annotations

import itertools
import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wulf.base.errors import LabError
from wulf.node.lab import fabric_faults, system
from wulf.node.lab.fabric_faults import Fault
from wulf.node.lab.topology import SWITCH, Fabric, Topology, bridge_of, link_address, switch_address

#: What every switch is set to: it forwards, spreads flows by ports, and answers each packet whose time to live is over.
_SWITCH = {
    "net.ipv4.ip_forward": 1,
    # Its own hash of addresses, protocol and ports: by policy 1 it would take the random one of the sender's socket,
    # which in one kernel comes with the packet.
    "net.ipv4.fib_multipath_hash_fields": 0x37,
    "net.ipv4.fib_multipath_hash_policy": 3,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
}
#: The table of the packet filter that has the faults.
_TABLE = "wulf_fault"
_TAP_WITHIN_S = 5.0


def namespace_of(namespace: str, switch: str) -> str:
    """Return the name of a switch's namespace."""
    return f"{namespace}-{switch}"


def make(namespace: str, layout: Topology) -> None:
    """Make the switches, their links and their routes, and a bridge for the nodes of each leaf."""
    fabric = layout.fabric
    if fabric is None:
        return
    for switch in fabric.switches():
        system.run(["ip", "netns", "add", namespace_of(namespace, switch)])
        words = [f"{name}={value}" for name, value in _SWITCH.items()]
        _inside(namespace, switch, ["sysctl", "-q", "-w", *words])
        _inside(namespace, switch, ["ip", "link", "set", "lo", "up"])
        _inside(namespace, switch, ["ip", "address", "add", f"{switch_address(switch)}/32", "dev", "lo"])
    for leaf in range(1, fabric.leaves + 1):
        _make_leaf(namespace, leaf)
    for leaf, spine in itertools.product(range(1, fabric.leaves + 1), range(1, fabric.spines + 1)):
        _connect(namespace, leaf, spine, layout.nodes[0].link.mtu)
    for leaf in range(1, fabric.leaves + 1):
        _spread(namespace, leaf, fabric)


def _make_leaf(namespace: str, leaf: int) -> None:
    """Make the bridge that a leaf's nodes are plugged into, and plug in the leaf."""
    bridge, outer = bridge_of(leaf), f"to-leaf{leaf}"
    system.make_bridge(namespace, bridge)
    subnet = SWITCH.network_address + 256 * leaf
    system.run(["ip", "-n", namespace, "address", "add", f"{subnet + 1}/24", "dev", bridge])
    inner = ["peer", "name", "nodes", "netns", namespace_of(namespace, f"leaf{leaf}")]
    system.run(["ip", "-n", namespace, "link", "add", outer, "type", "veth", *inner])
    system.run(["ip", "-n", namespace, "link", "set", outer, "master", bridge, "up"])
    _inside(namespace, f"leaf{leaf}", ["ip", "address", "add", f"{subnet + 254}/24", "dev", "nodes"])
    _inside(namespace, f"leaf{leaf}", ["ip", "link", "set", "nodes", "up"])
    own = ["src", str(switch_address(f"leaf{leaf}"))]
    _inside(namespace, f"leaf{leaf}", ["ip", "route", "replace", f"{subnet}/24", "dev", "nodes", *own])


def _connect(namespace: str, leaf: int, spine: int, mtu: int | None) -> None:
    """Make the link between a leaf and a spine; each end is called after the switch at the other."""
    names = f"leaf{leaf}", f"spine{spine}"
    places = [namespace_of(namespace, name) for name in names]
    peer = ["peer", "name", names[0], "netns", places[1]]
    system.run(["ip", "-n", places[0], "link", "add", names[1], "type", "veth", *peer])
    for own, other in (names, names[::-1]):
        size = ["mtu", str(mtu)] if mtu else []
        _inside(
            namespace,
            own,
            ["ip", "address", "add", f"{link_address(leaf, spine, own)}/31", "dev", other],
        )
        _inside(namespace, own, ["ip", "link", "set", other, *size, "up"])
    _inside(namespace, names[1], _route_to(leaf, spine))


def _route_to(leaf: int, spine: int, device: str = "") -> list[str]:
    """Return the command that sets a spine's route to the nodes of a leaf."""
    subnet = f"{SWITCH.network_address + 256 * leaf}/24"
    via = str(link_address(leaf, spine, f"leaf{leaf}"))
    own = str(switch_address(f"spine{spine}"))
    return ["ip", "route", "replace", subnet, "via", via, "dev", device or f"leaf{leaf}", "src", own]


def _spread(namespace: str, leaf: int, fabric: Fabric) -> None:
    """Give a leaf a route to every other one by way of every spine."""
    own = str(switch_address(f"leaf{leaf}"))
    for other in range(1, fabric.leaves + 1):
        if other == leaf:
            continue
        hops = [
            ["nexthop", "via", str(link_address(leaf, spine, f"spine{spine}")), "dev", f"spine{spine}"]
            for spine in range(1, fabric.spines + 1)
        ]
        subnet = f"{SWITCH.network_address + 256 * other}/24"
        _inside(namespace, f"leaf{leaf}", ["ip", "route", "add", subnet, "src", own, *itertools.chain(*hops)])


def _inside(namespace: str, switch: str, argv: Sequence[str]) -> str:
    return system.run(["ip", "netns", "exec", namespace_of(namespace, switch), *argv])


def remove(namespace: str, layout: Topology) -> None:
    """Take the switches away, with the programs that delay frames in them."""
    for switch in layout.fabric.switches() if layout.fabric is not None else ():
        place = namespace_of(namespace, switch)
        if system.namespace_exists(place):
            system.end_processes(lambda place=place: _programs(place), switch)  # type: ignore[misc]
            system.run(["ip", "netns", "delete", place])


def _programs(place: str) -> list[int]:
    return [int(word) for word in system.run(["ip", "netns", "pids", place]).split()]


def plant(namespace: str, fault: Fault, log: Path, program: Callable[[str], str]) -> None:
    """Make one fault; what a switch had before is taken away first.

    Parameters
    ----------
    log
        File for what a program that delays frames says.
    program
        As of `wulf.node.lab.cluster.up`.

    Raises
    ------
    LabError
        The machine cannot.
    """
    for switch, towards in fault.exits:
        _heal(namespace, switch, towards)
        if fault.kind == "loss":
            _lose(namespace, switch, towards, fault.per_mille)
        elif fault.kind == "rate":
            shaping = ["tbf", "rate", fault.rate, "burst", "128kb", "latency", "20ms"]
            _inside(namespace, switch, ["tc", "qdisc", "replace", "dev", towards, "root", *shaping])
        elif fault.kind == "delay":
            _delay(namespace, switch, towards, fault.delay_ns, log, program("wulf-delay"))


def _lose(namespace: str, switch: str, towards: str, per_mille: int) -> None:
    rule = f"oifname {towards} numgen random mod 1000 < {per_mille} drop"
    for command in (
        f"add table inet {_TABLE}",
        f"add chain inet {_TABLE} {towards} {{ type filter hook forward priority 0; policy accept; }}",
        f"add rule inet {_TABLE} {towards} {rule}",
    ):
        _inside(namespace, switch, ["nft", command])


def _heal(namespace: str, switch: str, towards: str) -> None:
    """Take away whatever fault a switch's exit has."""
    place = namespace_of(namespace, switch)
    if _delaying(place, towards):
        system.end_processes(lambda: _delaying(place, towards), f"the delay of {switch}")
        run = ["ip", "netns", "exec", place]
        held = json.loads(system.run([*run, "ip", "-json", "link", "show", towards]))[0]["address"]
        system.run([*run, "ip", "link", "set", towards, "address", _swapped(held)])
    for argv in _healing(switch, towards):
        system.attempt(["ip", "netns", "exec", place, *argv])


def _healing(switch: str, towards: str) -> Iterator[list[str]]:
    yield ["nft", f"delete chain inet {_TABLE} {towards}"]
    yield ["tc", "qdisc", "delete", "dev", towards, "root"]
    yield from _plugging(switch, towards, towards)


def _plugging(switch: str, towards: str, device: str) -> Iterator[list[str]]:
    """Yield the commands that give a device the address and the routes of a switch's exit."""
    leaf, spine = fabric_faults.numbers(switch, towards)
    yield ["ip", "address", "replace", f"{link_address(leaf, spine, switch)}/31", "dev", device]
    yield ["ip", "link", "set", device, "arp", "on", "up"]
    if switch.startswith("spine"):
        yield _route_to(leaf, spine, device)


def _delaying(place: str, towards: str) -> list[int]:
    """Return the programs that delay what leaves a switch by one exit."""
    found = []
    for pid in _programs(place):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if len(words) > 2 and words[1] == towards.encode():
            found.append(pid)
    return found


def _delay(namespace: str, switch: str, towards: str, delay_ns: int, log: Path, program: str) -> None:
    """Put a program between a switch and its exit, which then has the exit's address."""
    if not switch.startswith("spine"):
        raise LabError(
            f"{switch}>{towards}: a delay is planted where a spine sends, as spine1>leaf1:delay=50us"
        )
    if not program or not system.TUN.exists():
        raise LabError(
            f"a delay needs {system.TUN} for the program that holds frames back: this machine has none"
        )
    place, tap = namespace_of(namespace, switch), f"tap-{towards}"
    run = ["ip", "netns", "exec", place]
    own = json.loads(system.run([*run, "ip", "-json", "link", "show", towards]))[0]["address"]
    system.run([*run, "ip", "address", "flush", "dev", towards])
    # What comes for the exit's own hardware address is the program's alone: the kernel would forward it, too.
    system.run([*run, "ip", "link", "set", towards, "arp", "off", "address", _swapped(own)])
    system.spawn([*run, program, towards, tap, str(delay_ns), "0"], log, [])
    deadline = time.monotonic() + _TAP_WITHIN_S
    while not system.attempt([*run, "ip", "link", "show", tap]):
        if time.monotonic() > deadline:
            raise LabError(f"{shlex.quote(program)} did not start; {log} may say why")
        time.sleep(0.05)
    system.run([*run, "ip", "link", "set", tap, "address", own])
    for argv in _plugging(switch, towards, tap):
        system.run([*run, *argv])


def _swapped(address: str) -> str:
    """Return the other one of two hardware addresses that belong together."""
    head, _, last = address.rpartition(":")
    return f"{head}:{int(last, 16) ^ 1:02x}"
