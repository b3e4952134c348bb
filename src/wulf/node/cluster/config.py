"""A validated cluster, and the checks that make one of the sections of a file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from wulf.base.errors import ConfigError, InventoryError, UsageError
from wulf.base.interfaces import Interface, Interfaces, made
from wulf.base.nodeset import fold
from wulf.base.records import DirectLink
from wulf.base.text import is_interface, nearest, printable
from wulf.node.cluster import launcher, links, schema
from wulf.node.cluster.launcher.hosts import UNITS, Binding
from wulf.node.cluster.names import expand, in_order, is_node_name

TRANSPORTS = ("ssh", "local")
BECOME = ("sudo",)

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GROUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*")


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A validated cluster: every name in it is a node name, every reference resolves."""

    name: str
    nodes: tuple[str, ...]
    #: Interface whose traffic is measured; None leaves it to the MPI library and the routing table.
    interface: Interface = None
    transport: str = "ssh"
    #: Sets of nodes that run on the same CPUs (virtual nodes); their ranks give the CPU away while they wait.
    shared_cpus: tuple[tuple[str, ...], ...] = ()
    #: Cables between two nodes, beside the switch.
    links: tuple[DirectLink, ...] = ()
    groups: dict[str, tuple[str, ...]] = {}
    ssh: schema.SshSection = schema.SshSection()
    #: Node → address at which the other nodes reach it; a node that is not here is reached by its name.
    addresses: dict[str, str] = {}
    #: As whom settings are changed.
    change: schema.ChangeSection = schema.ChangeSection()
    mpi: schema.MpiSection = schema.MpiSection()
    #: Where this came from, for messages.
    origin: str = "command line"

    def address(self, node: str) -> str:
        """Address by which other nodes reach `node`; on one machine the names are only names."""
        return self.addresses.get(node, "127.0.0.1" if self.transport == "local" else node)

    def binding(self) -> Binding | None:
        """Return what each rank of a job is bound to; None for what the launcher does by itself."""
        return next((unit for unit in UNITS if unit == self.mpi.binding), None)

    def shares_cpu(self, *nodes: str) -> bool:
        """Whether two of these nodes run on the same CPUs."""
        return any(len(set(nodes).intersection(together)) > 1 for together in self.shared_cpus)

    def for_changes(self) -> ClusterConfig:
        """Return this cluster as the user reaches it who changes settings."""
        if self.change.user is None:
            return self
        return msgspec.structs.replace(self, ssh=msgspec.structs.replace(self.ssh, user=self.change.user))

    def without(self, absent: Collection[str]) -> ClusterConfig:
        """Return the cluster as if some of its nodes were not there."""
        here = [node for node in self.nodes if node not in absent]
        sets = [tuple(node for node in together if node in here) for together in self.shared_cpus]
        gateways = {
            gateway: fold(behind)
            for gateway, spec in self.ssh.gateways.items()
            if (behind := [node for node in expand(spec) if node in here])
        }
        interface = self.interface
        if isinstance(interface, Interfaces):
            named = {node: name for node, name in interface.of_node.items() if node in here}
            interface = made(interface.usual, named)
        return msgspec.structs.replace(
            self,
            nodes=tuple(here),
            interface=interface,
            shared_cpus=tuple(together for together in sets if len(together) > 1),
            links=tuple(link for link in self.links if set(link.nodes) <= set(here)),
            addresses={node: address for node, address in self.addresses.items() if node in here},
            ssh=msgspec.structs.replace(self.ssh, gateways=gateways),
        )

    def select(self, spec: str | None) -> list[str]:
        """Nodes of this cluster in `spec` (node set syntax, ``@group``), all of them by default.

        Raises
        ------
        UsageError
            It names no node.
        InventoryError
            One is not of the cluster.
        """
        if spec is None:
            return list(self.nodes)
        chosen = expand(spec, {name: in_order(members) for name, members in self.groups.items()})
        if not chosen:
            raise UsageError(f"{spec!r} names no node: write for example node[01-04], or @group")
        _require_members(chosen, self.nodes, f"'{spec}'")
        return chosen


def resolve(document: schema.Document, origin: str, base: Path) -> ClusterConfig:
    """Check everything in `document` and resolve its node sets; relative paths are taken from `base`.

    Raises
    ------
    ConfigError
        Naming the key, what is wrong and what is allowed.
    InventoryError
        For a node that is not of the cluster.
    """
    cluster = document.cluster
    groups = _groups(document.groups)
    nodes = _at("[cluster] nodes", cluster.nodes, document.groups)
    if not nodes:
        raise ConfigError('[cluster] nodes is empty; write for example nodes = "node[01-32]"')
    members = frozenset(nodes)
    interface = _interface(document, members)
    _one_of("[cluster] transport", cluster.transport, TRANSPORTS)
    addresses = _addresses(document.addresses, members)
    return ClusterConfig(
        name=cluster.name,
        nodes=tuple(nodes),
        interface=interface,
        transport=cluster.transport,
        shared_cpus=_shared_cpus(cluster.shared_cpus, document.groups, members),
        links=links.read(cluster.links, members, addresses, interface),
        groups=groups,
        ssh=_ssh(document.ssh, document.groups, members, base),
        addresses=addresses,
        change=_change(document.change),
        mpi=_mpi(document.mpi),
        origin=origin,
    )


def _at(where: str, spec: str, groups: Mapping[str, str]) -> list[str]:
    try:
        return expand(spec, groups)
    except InventoryError as error:
        raise ConfigError(f"{where}: {error}") from error


def _one_of(where: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{where} = '{value}'{nearest(value, allowed)} (allowed: {', '.join(allowed)})")


def _require_members(names: list[str], members: tuple[str, ...] | frozenset[str], where: str) -> None:
    known = frozenset(members)
    for name in names:
        if name not in known:
            raise InventoryError(f"{where}: {name} is not a node of this cluster{nearest(name, known)}")


def _groups(groups: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    for name in groups:
        if not _GROUP_NAME.fullmatch(name):
            raise ConfigError(f"[groups] '{name}' is not a group name: letters, digits, '_', '.', '-'")
    return {name: tuple(_at(f"[groups] {name}", spec, groups)) for name, spec in groups.items()}


def _interface(document: schema.Document, members: frozenset[str]) -> Interface:
    """Return what the interface is called, of which some nodes may have another name."""
    usual = document.cluster.interface
    if usual is not None and not is_interface(usual):
        raise ConfigError(f"[cluster] interface = '{usual}' is not an interface; see `ip -br link` on a node")
    names: dict[str, str] = {}
    for name, spec in document.interfaces.items():
        where = f"[interfaces] {printable(name, 40)}"
        if not is_interface(name):
            raise ConfigError(f"{where} is not an interface; see `ip -br link` on a node")
        nodes = _at(where, spec, document.groups)
        _require_members(nodes, members, where)
        twice = next((node for node in nodes if node in names), None)
        if twice is not None:
            raise ConfigError(f"{where}: {twice} has {names[twice]} already")
        names |= dict.fromkeys(nodes, name)
    return made(usual, names)


def _shared_cpus(
    sets: list[list[str]], groups: Mapping[str, str], members: frozenset[str]
) -> tuple[tuple[str, ...], ...]:
    seen: set[str] = set()
    result = []
    for number, specs in enumerate(sets, start=1):
        where = f"[cluster] shared_cpus, set {number}"
        nodes = [node for spec in specs for node in _at(where, spec, groups)]
        _require_members(nodes, members, where)
        twice = sorted(node for node in nodes if node in seen or nodes.count(node) > 1)
        if twice:
            raise ConfigError(f"{where}: {twice[0]} is in the sets more than once")
        if len(nodes) < 2:
            raise ConfigError(f"{where}: needs at least two nodes that share CPUs")
        seen.update(nodes)
        result.append(tuple(nodes))
    return tuple(result)


def _ssh(
    ssh: schema.SshSection, groups: Mapping[str, str], members: frozenset[str], base: Path
) -> schema.SshSection:
    if not 0 < ssh.connect_timeout_s <= 600:
        raise ConfigError("[ssh] connect_timeout_s must be above 0 and at most 600")
    if not 1 <= ssh.fanout <= 1024:
        raise ConfigError("[ssh] fanout must be from 1 to 1024")
    _user("[ssh] user", ssh.user)
    if any("\0" in option for option in ssh.options):
        raise ConfigError("[ssh] options: an option contains a NUL character")
    return msgspec.structs.replace(
        ssh, config=_ssh_config(ssh.config, base), gateways=_gateways(ssh.gateways, groups, members)
    )


def _user(where: str, name: str | None) -> None:
    if name is not None and not _USER.fullmatch(name):
        raise ConfigError(f"{where} = '{name}' is not a user name")


def _change(change: schema.ChangeSection) -> schema.ChangeSection:
    _user("[change] user", change.user)
    if change.become is not None:
        _one_of("[change] become", change.become, BECOME)
        if change.user == "root":
            raise ConfigError("[change] become is for a user other than root: remove it or the user")
    return change


def _gateways(
    gateways: Mapping[str, str], groups: Mapping[str, str], members: frozenset[str]
) -> dict[str, str]:
    reached: set[str] = set()
    result = {}
    for gateway, spec in gateways.items():
        where = f"[ssh] gateways.{gateway}"
        if not is_node_name(gateway):
            raise ConfigError(f"{where}: '{gateway}' is not a node name")
        nodes = _at(where, spec, groups)
        _require_members(nodes, members, where)
        if reached.intersection(nodes):
            raise ConfigError(f"{where}: {min(reached.intersection(nodes))} has another gateway already")
        reached.update(nodes)
        result[gateway] = fold(nodes)
    return result


def _ssh_config(config: str | None, base: Path) -> str | None:
    if config is None:
        return None
    try:
        path = base / Path(config).expanduser()
        if path.is_file():
            return str(path.resolve())
    except (OSError, RuntimeError, ValueError) as error:  # too long, nobody's home, a NUL character
        raise ConfigError(f"[ssh] config: '{printable(config, 120)}': {error.args[-1]}") from error
    raise ConfigError(f"[ssh] config: no such file: {path}")


def _addresses(addresses: Mapping[str, str], members: frozenset[str]) -> dict[str, str]:
    _require_members(list(addresses), members, "[addresses]")
    for node, address in addresses.items():
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            if not is_node_name(address):
                raise ConfigError(
                    f"[addresses] {node} = '{address}' is neither an address nor a name"
                ) from error
    return dict(addresses)


def _mpi(mpi: schema.MpiSection) -> schema.MpiSection:
    if mpi.launcher is not None:
        _one_of("[mpi] launcher", mpi.launcher, launcher.names())
    if mpi.binding is not None:
        _one_of("[mpi] binding", mpi.binding, UNITS)
    if mpi.compiler is not None and (not mpi.compiler or mpi.compiler.startswith("-")):
        raise ConfigError(f"[mpi] compiler = '{mpi.compiler}' must be a path or a name like mpicc")
    for name, value in mpi.env.items():
        if not _ENV_NAME.fullmatch(name) or "\0" in value:
            raise ConfigError(f"[mpi] env: '{name}' is not the name of an environment variable")
    return mpi
