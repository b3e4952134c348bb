"""Write a cluster file that explains itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from wulf.base.interfaces import Interfaces
from wulf.base.nodeset import fold
from wulf.node.cluster import launcher, links
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.launcher.hosts import UNITS
from wulf.node.cluster.names import in_order


def render(config: ClusterConfig) -> str:
    """Return the text of ``cluster.toml`` for `config`; reading it back gives the same cluster."""
    lines = [
        '# The cluster wulf measures. Node sets are ClusterShell\'s: "node[01-32],gpu1", "@rack1".',
        "",
        *_cluster(config),
        "",
        '# Names for sets of nodes, usable as "@rack1".',
        "[groups]",
        *[f"{_key(name)} = {_text(in_order(members))}" for name, members in config.groups.items()],
        "",
        "# The name of that interface on nodes where it differs:",
        '# enp3s0 = "node[03-04]"',
        "[interfaces]",
        *_interfaces(config),
        "",
        *_ssh(config),
        "",
        "# Addresses at which the nodes reach each other, where their names do not already mean them:",
        '# node01 = "198.18.0.11"',
        "[addresses]",
        *[f"{_key(node)} = {_text(address)}" for node, address in config.addresses.items()],
        "",
        *_change(config),
        "",
        *_mpi(config),
    ]
    return "\n".join(lines) + "\n"


def _cluster(config: ClusterConfig) -> list[str]:
    usual = config.interface.usual if isinstance(config.interface, Interfaces) else config.interface
    shared = [[fold(together)] for together in config.shared_cpus]
    return [
        "[cluster]",
        f"name = {_text(config.name)}",
        f"nodes = {_text(in_order(config.nodes))}",
        "# Interface whose traffic is measured, as `ip -br link` on a node names it.",
        _optional("interface", usual, "eth0"),
        '# How nodes are reached: "ssh", or "local" for this one machine without ssh.',
        f"transport = {_text(config.transport)}",
        '# Nodes that run on the same CPUs (virtual nodes), as in [["node01", "node03"]]: their ranks yield.',
        f"shared_cpus = {json.dumps(shared)}",
        "# Cables between two nodes beside the switch, as NODE:INTERFACE=ADDRESS/PREFIX at both ends (wulf "
        "audit topology):",
        '# [["node01:eth1=10.1.0.0/31", "node02:eth1=10.1.0.1/31"]]',
        *_links(config),
    ]


def _links(config: ClusterConfig) -> list[str]:
    lines = [f"    {json.dumps(links.write(link))}," for link in config.links]
    return ["links = [", *lines, "]"] if lines else ["links = []"]


def _interfaces(config: ClusterConfig) -> list[str]:
    sets = config.interface.sets() if isinstance(config.interface, Interfaces) else {}
    return [f"{_key(name)} = {_text(in_order(nodes))}" for name, nodes in sets.items()]


def _ssh(config: ClusterConfig) -> list[str]:
    ssh = config.ssh
    return [
        "# Your own ssh configuration applies. Keys must work without a question (BatchMode).",
        "[ssh]",
        "# Another configuration file than ~/.ssh/config (ssh -F).",
        _optional("config", ssh.config, "ssh_config"),
        _optional("user", ssh.user, "root"),
        '# Additional arguments for ssh: ["-oPort=2222"].',
        f"options = {json.dumps(ssh.options)}",
        f"connect_timeout_s = {ssh.connect_timeout_s!r}",
        "# Connections made at once.",
        f"fanout = {ssh.fanout}",
        "# Thousands of nodes: gateways, with ClusterShell installed, that pass commands on:",
        '# { gw1 = "node[001-512]" }',
        f"gateways = {_table(ssh.gateways)}",
    ]


def _change(config: ClusterConfig) -> list[str]:
    return [
        "# The user who changes settings (wulf settings set, tune, persist, rollback …); measuring stays with "
        "[ssh] user.",
        "[change]",
        _optional("user", config.change.user, "root"),
        "# For a user who is not root and whom sudo lets do everything without a password.",
        _optional("become", config.change.become, "sudo"),
    ]


def _mpi(config: ClusterConfig) -> list[str]:
    mpi = config.mpi
    return [
        "[mpi]",
        "# Compiler of the MPI library to measure; the library's mpirun is taken from beside it.",
        _optional("compiler", mpi.compiler, "/opt/openmpi/bin/mpicc"),
        f"# How its jobs are started: {', '.join(launcher.names())}; derived from the compiler when not set.",
        _optional("launcher", mpi.launcher, "openmpi"),
        f"# What each rank is bound to: {', '.join(UNITS)}.",
        _optional("binding", mpi.binding, "core"),
        "# Environment of the ranks, and further arguments of mpirun or srun.",
        f"env = {_table(mpi.env)}",
        f"arguments = {json.dumps(mpi.arguments)}",
    ]


def _optional(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {_text(example)}" if value is None else f"{key} = {_text(value)}"


def _text(value: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(value).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _text(name)


def _table(values: Mapping[str, str]) -> str:
    inner: Sequence[str] = [f"{_key(name)} = {_text(value)}" for name, value in values.items()]
    return "{ " + ", ".join(inner) + " }" if inner else "{}"
