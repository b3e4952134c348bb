"""The changes that are made: of every kind of access, several at once, on two nodes; two of them cut the node off."""

from __future__ import annotations

import base64

from wulf.node.change.steps import NOTHING, Step


def _step(kind: str, target: str, value: str, interface: str = NOTHING) -> Step:
    return Step(
        knob=f"{kind}.{target.rpartition('/')[2]}", kind=kind, interface=interface, target=target, value=value
    )


def _file(text: str) -> str:
    return "file:644:" + base64.b64encode(text.encode()).decode()


_SYSCTL = [
    _step("sysctl", "net.ipv4.tcp_slow_start_after_idle", "0"),
    _step("sysctl", "net.ipv4.tcp_rmem", "4096 262144 8388608"),
]
_ETHTOOL = [
    _step("ethtool", "channels", "rx 2 tx 2", "host0"),
    _step(
        "ethtool", "feature.tcp-segmentation-offload feature.generic-segmentation-offload", "off off", "host0"
    ),
]
_MTU = [_step("link", "mtu", "1400", "host0")]
_FIREWALL = [_step("firewall", "tracking", "notrack", "host0")]
_SERVICE = [_step("service", "planted.service", "off"), _step("service", "nftables.service", "off")]
_SYSFS = [
    _step("file", "/sys/class/net/host0/gro_flush_timeout", "20000"),
    _step("file", "/sys/class/net/host0/queues/rx-*/rps_cpus", "1"),
]
_STORED = [
    _step("stored", "/etc/planted.d/deep/new.conf", _file("x = 1")),
    _step("stored", "/etc/sysctl.d/98-planted.conf", _file("net.ipv4.tcp_fin_timeout = 33\n")),
]
_UNIT = [_step("unit", "planted.service", "disabled")]
_MPI = [_step("mpi_parameter", "btl_tcp_eager_limit", "131072")]
_ALL = [*_SERVICE[:1], *_ETHTOOL[1:], *_MTU, *_SYSCTL[:1], *_SYSFS[:1], *_FIREWALL, *_STORED, *_UNIT, *_MPI]
_SOME = [*_SYSCTL[:1], *_MTU, *_STORED[:1], *_UNIT]
#: Name → steps. A rollback is of the change on two nodes, made on one. The last two cut the node off by themselves.
CHANGES: dict[str, list[Step]] = {
    "sysctl": _SYSCTL,
    "ethtool": _ETHTOOL,
    "mtu": _MTU,
    "firewall": _FIREWALL,
    "service": _SERVICE,
    "sysfs": _SYSFS,
    "stored": _STORED,
    "unit": _UNIT,
    "mpi": _MPI,
    "all": _ALL,
    "rollback": _SOME,
    "two nodes": _SOME,
    "mtu that cuts ssh": [_step("link", "mtu", "68", "host0")],
    "filter that cuts ssh": [_step("service", "planted-cut.service", "on")],
}
CUTTING = ("mtu that cuts ssh", "filter that cuts ssh")
