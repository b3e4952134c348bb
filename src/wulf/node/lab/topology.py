"""What a virtual cluster looks like: names, addresses, CPUs, links, and the texts that follow.  Pure."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from wulf.base.errors import UsageError
from wulf.base.units import parse_duration
from wulf.node.lab.vm.machine import Vm

#: The benchmarking range of RFC 2544 and RFC 5735: never routed on the Internet.
NETWORK = ipaddress.ip_network("198.18.0.0/15")
#: One half is the switch's, the other the direct cables', two addresses each.
SWITCH, CABLES = NETWORK.subnets()
#: Interface of the measured network inside a node (systemd-nspawn's own name for it).
INTERFACE = "host0"
#: A directory of all nodes, as a cluster's homes are: what one writes there the others see. Machines have none.
SHARED = "/shared"
MAX_NODES = 64
_FABRIC = re.compile(r"leaf-spine:([0-9]{1,3})x([0-9]{1,3})")
#: Of a kind; a leaf's nodes have a network of their own, and from this third byte on addresses are those of the links.
MOST_SWITCHES, _LEAF_PREFIX, _LINKS = 16, 24, 128
#: Third byte of the switches' own addresses, and what those of spines have more than those of leaves.
_SWITCHES, _SPINES = 127, 100
_RATE = re.compile(r"[1-9][0-9]*(\.[0-9]+)?(k|m|g)bit")
_DELAY = re.compile(r"[0-9]+(\.[0-9]+)?(us|ms|s)")
_LINK = re.compile(r"(?P<node>[A-Za-z0-9]+):(?P<options>.+)")


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One node's cable."""

    mtu: int | None = None
    #: As `tc` writes it: ``1gbit``.
    rate: str | None = None
    #: One way, as `tc` writes it: ``50us``.
    delay: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One virtual node."""

    name: str
    address: str
    cpus: list[int]
    link: Link
    #: Number of the leaf switch that it hangs on, from 1; 0 where there is one switch.
    leaf: int = 0

    @property
    def prefix(self) -> int:
        """Bits of its network."""
        return _LEAF_PREFIX if self.leaf else SWITCH.prefixlen


class Plug(msgspec.Struct, frozen=True, kw_only=True):
    """A node's end of a direct cable."""

    node: str
    #: Inside the node.
    interface: str
    address: str

    def outside(self) -> str:
        """Return the interface at the other side of the node's wall, in the lab's namespace."""
        return f"{self.interface}-{self.node}"


class Cable(msgspec.Struct, frozen=True, kw_only=True):
    """A direct cable between two nodes, beside the switch."""

    #: The bridge that is the cable.
    name: str
    ends: tuple[Plug, Plug]


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """Leaf switches, each connected with every spine switch."""

    leaves: int
    spines: int

    def switches(self) -> list[str]:
        """Names of the switches."""
        return [*self._named("leaf", self.leaves), *self._named("spine", self.spines)]

    def neighbours(self, switch: str) -> list[str]:
        """Return the switches that one is connected with."""
        return (
            self._named("spine", self.spines)
            if switch.startswith("leaf")
            else self._named("leaf", self.leaves)
        )

    def _named(self, kind: str, count: int) -> list[str]:
        return [f"{kind}{number}" for number in range(1, count + 1)]


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """The whole cluster."""

    nodes: list[Node]
    cables: list[Cable] = []
    #: Whether a node's CPUs are a control group's, which programs in the node cannot leave.
    isolated: bool = True
    #: Whether the nodes run Slurm, with its controller on the first.
    slurm: bool = False
    #: Program that holds frames back; empty where the kernel does it (netem).
    delayer: str = ""
    #: Of nodes that are virtual machines; None where they are containers.
    vm: Vm | None = None
    #: Between the nodes; None for one switch.
    fabric: Fabric | None = None

    def names(self) -> list[str]:
        """Node names in order."""
        return [node.name for node in self.nodes]

    def plugs(self, node: str) -> list[tuple[Cable, Plug]]:
        """Return a node's direct cables, with its own end of each."""
        return [(cable, end) for cable in self.cables for end in cable.ends if end.node == node]

    def shared_cpus(self) -> list[list[str]]:
        """Return the groups of nodes that share a CPU; empty when each has its own."""
        if not self.isolated:
            return [self.names()] if len(self.nodes) > 1 else []
        groups: dict[tuple[int, ...], list[str]] = {}
        for node in self.nodes:
            groups.setdefault(tuple(node.cpus), []).append(node.name)
        return [group for group in groups.values() if len(group) > 1]


def plan(
    count: int,
    cpus: Sequence[int],
    link: Link,
    overrides: Mapping[str, Link] | None = None,
    cables: Sequence[tuple[int, int]] = (),
    fabric: Fabric | None = None,
) -> Topology:
    """Lay out a cluster.

    Parameters
    ----------
    count
        Number of nodes.
    cpus
        CPUs that may be used; nodes get distinct ones while there are any, then share one each.
    link
        Every node's cable, unless overridden.
    overrides
        Node name → what is different about its cable.
    cables
        Direct cables: the numbers of the two nodes, from 0.
    fabric
        The switches; the first nodes hang on the first leaf.

    Raises
    ------
    UsageError
        `count` is out of range, an override names no node, or a cable leads to none.
    """
    names = [f"node{number:02d}" for number in range(1, count + 1)]
    _check(names, overrides or {}, cables, fabric)
    leaves = [index * fabric.leaves // count + 1 if fabric else 0 for index in range(count)]
    return Topology(
        cables=_cables(names, cables),
        nodes=[
            Node(
                name=name,
                address=str(SWITCH[256 * leaves[index] + 10 + index]),
                cpus=share(cpus, count, index),
                link=merge(link, (overrides or {}).get(name, Link())),
                leaf=leaves[index],
            )
            for index, name in enumerate(names)
        ],
        fabric=fabric,
    )


def _check(
    names: Sequence[str],
    overrides: Mapping[str, Link],
    cables: Sequence[tuple[int, int]],
    fabric: Fabric | None,
) -> None:
    count = len(names)
    if not 1 <= count <= MAX_NODES:
        raise UsageError(f"--nodes {count}: a virtual cluster has 1 to {MAX_NODES} nodes")
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise UsageError(
            f"--link {unknown[0]}: there is no such node; the nodes are {names[0]} to {names[-1]}"
        )
    beyond = max((max(ends) for ends in cables), default=0)
    if beyond >= count:
        raise UsageError(f"the cables are those of {beyond + 1} nodes: say --nodes {beyond + 1} or more")
    if fabric is not None and count < fabric.leaves:
        raise UsageError(f"--fabric: {fabric.leaves} leaves take as many nodes or more")


def parse_fabric(text: str) -> Fabric:
    """Parse ``leaf-spine:2x4``: so many leaves, so many spines.

    Raises
    ------
    UsageError
        It is none, or larger than a virtual cluster can be.
    """
    match = _FABRIC.fullmatch(text)
    if match is None or not 2 <= int(match[1]) <= MOST_SWITCHES or not 1 <= int(match[2]) <= MOST_SWITCHES:
        raise UsageError(
            f"--fabric {text!r}: write leaf-spine:LEAVESxSPINES, such as leaf-spine:2x4 (16 of each at most)"
        )
    return Fabric(leaves=int(match[1]), spines=int(match[2]))


def bridge_of(leaf: int) -> str:
    """Name of the bridge that a leaf's nodes are plugged into."""
    return f"wulf{leaf}"


def link_address(leaf: int, spine: int, end: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Address of a switch, `end`, on the link between a leaf and a spine."""
    return SWITCH[256 * (_LINKS + leaf) + 2 * spine + end.startswith("leaf")]


def _cables(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> list[Cable]:
    """Give every end of a cable an address and, in the order of the node's cables, an interface."""
    plugged: dict[int, int] = {}
    found = []
    for number, pair in enumerate(pairs):
        ends = []
        for place, index in enumerate(pair):
            plugged[index] = plugged.get(index, 0) + 1
            address = str(CABLES[2 * number + place])
            ends.append(Plug(node=names[index], interface=f"cable{plugged[index]}", address=address))
        found.append(Cable(name=f"wire{number + 1}", ends=(ends[0], ends[1])))
    return found


def share(cpus: Sequence[int], count: int, index: int) -> list[int]:
    """CPUs of node `index` of `count`: a part of its own, or one that is shared when there are too few."""
    each = len(cpus) // count
    if each == 0:
        return [cpus[index % len(cpus)]]
    return list(cpus[index * each : (index + 1) * each])


def merge(base: Link, override: Link) -> Link:
    """Return `base` with what `override` sets."""
    return Link(
        mtu=override.mtu or base.mtu, rate=override.rate or base.rate, delay=override.delay or base.delay
    )


def link(mtu: int | None = None, rate: str | None = None, delay: str | None = None) -> Link:
    """Validate a cable's options.

    Raises
    ------
    UsageError
        Names the option and what is allowed.
    """
    if mtu is not None and not 576 <= mtu <= 65535:
        raise UsageError(f"mtu {mtu}: allowed are 576 to 65535 bytes")
    if rate is not None and not _RATE.fullmatch(rate):
        raise UsageError(f"rate {rate!r}: write for example 100mbit or 1gbit")
    if delay is not None and not _DELAY.fullmatch(delay):
        raise UsageError(f"delay {delay!r}: write for example 50us or 1ms")
    return Link(mtu=mtu, rate=rate, delay=delay)


def parse_override(text: str) -> tuple[str, Link]:
    """Parse ``node03:rate=100mbit,mtu=9000``."""
    match = _LINK.fullmatch(text)
    if match is None:
        raise UsageError(f"--link {text!r}: write for example node03:rate=100mbit,mtu=9000")
    options: dict[str, str] = {}
    for item in match["options"].split(","):
        key, equals, value = item.partition("=")
        if key not in ("mtu", "rate", "delay") or not equals:
            raise UsageError(f"--link {text!r}: {item!r} is not mtu=, rate= or delay=")
        options[key] = value
    mtu = options.get("mtu")
    if mtu is not None and not mtu.isdecimal():
        raise UsageError(f"--link {text!r}: mtu must be a number of bytes")
    return match["node"], link(int(mtu) if mtu else None, options.get("rate"), options.get("delay"))


def gateway() -> str:
    """Address of the bridge: where the controller's connections come from. Nodes have no route beyond it."""
    return str(SWITCH[1])


def hosts_file(topology: Topology) -> str:
    """``/etc/hosts`` of every node."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    lines += [f"{node.address} {node.name}" for node in topology.nodes]
    return "\n".join(lines + list(_switch_names(topology.fabric))) + "\n"


def _switch_names(fabric: Fabric | None) -> Iterator[str]:
    """Yield a line for each switch, as a site's name service has them."""
    for switch in fabric.switches() if fabric else ():
        yield f"{switch_address(switch)} {switch}"


def switch_address(switch: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Address of a switch itself, with which it answers."""
    number = int(re.sub(r"\D", "", switch))
    return SWITCH[256 * _SWITCHES + number + (_SPINES if switch.startswith("spine") else 0)]


def known_hosts(topology: Topology, public_key: str) -> str:
    """All nodes have the host key that was made for the lab."""
    names = ",".join([*topology.names(), *(node.address for node in topology.nodes)])
    return f"{names} {public_key.strip()}\n"


def ssh_config(topology: Topology, directory: str, connect: str) -> str:
    """Write the configuration with which the controller reaches nodes by name.

    ``connect`` is a command that connects inside the lab's namespace and hands the open socket over, so
    that no packet for a node is ever made outside the namespace and no relay stands in the way.
    """
    addresses = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in topology.nodes)
    return (
        f"{addresses}Host {' '.join(topology.names())}\n"
        f"  User root\n"
        f'  IdentityFile "{directory}/key"\n'
        f"  IdentitiesOnly yes\n"
        f'  UserKnownHostsFile "{directory}/known_hosts"\n'
        f"  GlobalKnownHostsFile /dev/null\n"
        f"  StrictHostKeyChecking yes\n"
        f"  ForwardAgent no\n"
        f"  LogLevel ERROR\n"
        # A node whose plug is pulled says nothing any more: the client must notice by itself.
        f"  ServerAliveInterval 5\n"
        f"  ServerAliveCountMax 3\n"
        f"  ProxyUseFdpass yes\n"
        f"  ProxyCommand {connect} %h %p\n"
    )


def node_ssh_config() -> str:
    """``/root/.ssh/config`` inside the nodes: from any node to any other without a question."""
    return "Host node*\n  IdentityFile /root/.ssh/id_ed25519\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n"


def cluster_toml(topology: Topology, config: str | None) -> str:
    """Cluster file of the lab; in the nodes themselves, which reach each other without, ssh has no `config`."""
    names = topology.names()
    width = f"node[{names[0][4:]}-{names[-1][4:]}]" if len(names) > 1 else names[0]
    shared = topology.shared_cpus()
    lines = [
        "[cluster]",
        'name = "lab"',
        f'nodes = "{width}"',
        f'interface = "{INTERFACE}"',
        'transport = "ssh"',
        *([f"shared_cpus = {json.dumps(shared)}"] if shared else []),
        *(["links = [", *map(_link_line, topology.cables), "]"] if topology.cables else []),
        *(["", "[ssh]", f"config = {json.dumps(config)}"] if config is not None else []),
        "",
        "[addresses]",
        *(f'{node.name} = "{node.address}"' for node in topology.nodes),
    ]
    return "\n".join(lines) + "\n"


def _link_line(cable: Cable) -> str:
    ends = [f"{end.node}:{end.interface}={end.address}/31" for end in cable.ends]
    return f"    {json.dumps(ends)},"


#: What the node's own interfaces have under /sys can be set, as on a real node; the rest of /sys is the host's.
_OWN_SYSFS = (
    "mkdir /run/lab-sys && mount -t sysfs sysfs /run/lab-sys && mount -o remount,rw /run/lab-sys && "
    "mount --bind /run/lab-sys/devices/virtual/net /sys/devices/virtual/net && umount -l /run/lab-sys"
)


def network_unit(
    node: Node, plugs: Sequence[Plug] = (), *, has_netem: bool = True, vm: Vm | None = None
) -> str:
    """Write the unit that gives a node its address; being in the node, it also holds after a reboot in it."""
    commands = _machine(vm) if vm is not None else []
    commands += [f"ip address replace {node.address}/{node.prefix} dev {INTERFACE}"]
    if node.link.mtu:
        commands.append(f"ip link set dev {INTERFACE} mtu {node.link.mtu}")
    commands.append(f"ip link set dev {INTERFACE} up")
    if node.leaf:
        commands.append(f"ip route replace {SWITCH} via {SWITCH[256 * node.leaf + 254]} dev {INTERFACE}")
    commands += shaping(node.link, INTERFACE, has_netem=has_netem)
    for plug in plugs:
        commands.append(f"ip address replace {plug.address}/31 dev {plug.interface}")
        commands.append(f"ip link set dev {plug.interface} up")
    if vm is None:
        commands.append(f"sh -c '{_OWN_SYSFS}'")
    starts = "".join(f"ExecStart=/usr/bin/env {command}\n" for command in commands)
    return (
        "[Unit]\nDescription=Address and link of the virtual node\nDefaultDependencies=no\n"
        "Before=network.target ssh.service sshd.service\n\n"
        f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{starts}"
    )


def _machine(vm: Vm) -> list[str]:
    """Give the interface of a machine its name: the one that its kernel has given is another one."""
    commands = ["ip link set dev lo up"]
    if not vm.has_bond:
        return [f"ip link set dev eth0 name {INTERFACE}", *commands]
    # The switch knows of no bond: only with a standby does nothing come back by the other cable.
    commands.append(f"ip link add {INTERFACE} type bond mode active-backup miimon 100")
    for number in range(2):
        commands += [f"ip link set dev eth{number} master {INTERFACE}", f"ip link set dev eth{number} up"]
    return commands


def shaping(link: Link, device: str, *, has_netem: bool = True) -> list[str]:
    """Commands that slow a device down as the link says; without netem its delay is made elsewhere (`plugging`)."""
    commands = []
    if link.rate:
        commands.append(
            f"tc qdisc replace dev {device} root handle 1: tbf rate {link.rate} burst 128kb latency 20ms"
        )
    if link.delay and has_netem:
        parent = "parent 1:" if link.rate else "root"
        commands.append(f"tc qdisc replace dev {device} {parent} netem delay {link.delay} limit 10000")
    return commands


def plugging(link: Link, name: str, bridge: str, delayer: str) -> list[str]:
    """Shell commands that plug a node's cable into the switch; where a program holds frames back, by way of it.

    The node's end of it is then no part of the bridge: it must not answer questions for addresses that the bridge has.
    """
    if not (link.delay and delayer):
        return [f"ip link set vb-{name} master {bridge} up"]
    mtu = [f"ip link set tap-{name} mtu {link.mtu}"] if link.mtu else []
    return [
        f"ip link set vb-{name} arp off up",
        f"{shlex.quote(delayer)} vb-{name} tap-{name} {round(parse_duration(link.delay) * 1e9)} &",
        f"await tap-{name}",
        *mtu,
        f"ip link set tap-{name} master {bridge} up",
    ]


#: What runs in a node; everything else that the host has enabled makes no sense there.
KEPT_UNITS = frozenset(
    {"ssh.service", "sshd.service", "dbus.service", "dbus.socket", "dbus-broker.service"}
    | {"wulf-lab-network.service"}  # enabled where a lab is raised inside a virtual node
)
#: Static units that only cost time in a node, or have no device there.
USELESS_UNITS = (
    "console-getty.service",
    "getty.target",
    "ldconfig.service",
    "systemd-firstboot.service",
    "systemd-hwdb-update.service",
    "systemd-journal-flush.service",
    "systemd-machine-id-commit.service",
    "systemd-random-seed.service",
    "systemd-sysusers.service",
    "systemd-udev-trigger.service",
    "systemd-udevd.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
)
#: Units that a tuner works with: not started in a node, but there to be enabled.
DISABLED_UNITS = frozenset(
    {"irqbalance.service", "nftables.service", "tuned.service", "firewalld.service", "NetworkManager.service"}
)


def units_to_mask(enabled: Sequence[str], own: Sequence[str] = ()) -> list[str]:
    """Units to mask in a node, from those that the host has enabled; the node's own are left."""
    foreign = {unit for unit in enabled if unit not in KEPT_UNITS | DISABLED_UNITS | set(own)}
    return sorted(foreign | set(USELESS_UNITS))


def units_to_disable(enabled: Sequence[str]) -> list[str]:
    """Units of the host that a node has, but not enabled."""
    return sorted(set(enabled) & DISABLED_UNITS)
