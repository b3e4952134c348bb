"""Who else sets a knob on a node: a fact ``owner.KNOB`` for each knob that somebody else holds. Pure.

A change of such a knob would be fought over: undone at the next event, or by the next run of a tool that manages
the node.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence

from wulf.base.catalogue import Knob
from wulf.base.output_values import Unknown, shown
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import services, tuned
from wulf.node.facts.readers.settings import connections, kept_mtu_file, kept_sysctls

#: Section and name in a TuneD profile (``*`` matches) → knobs that it sets.
_TUNED = {
    "cpu governor": ("cpu.governor",),
    "cpu energy_perf*": ("cpu.epp",),
    "cpu force_latency": ("cpu.cstates_pmqos",),
    "cpu *turbo": ("cpu.turbo",),
    "cpu boost": ("cpu.turbo",),
    "vm transparent_hugepage*": ("vm.thp",),
    "net coalesce": ("nic.rx_usecs", "nic.tx_usecs", "nic.rx_frames", "nic.adaptive_rx"),
    "net features": ("nic.gro", "nic.lro", "nic.tso_gso"),
    "net ring": ("nic.rings",),
    "net pause": ("nic.pause",),
    "net channels": ("nic.channels",),
    "net mtu": ("nic.mtu",),
    "irq *": ("irq.affinity",),
    "scheduler isolated_cores": ("irq.affinity",),
}
#: Beginning of a setting of a NetworkManager connection → knobs.
_CONNECTION = {
    "mtu=": ("nic.mtu",),
    "coalesce-rx-usecs=": ("nic.rx_usecs",),
    "coalesce-tx-usecs=": ("nic.tx_usecs",),
    "coalesce-rx-frames=": ("nic.rx_frames",),
    "coalesce-adaptive-": ("nic.adaptive_rx",),
    "ring-": ("nic.rings",),
    "feature-gro=": ("nic.gro",),
    "feature-lro=": ("nic.lro",),
    "feature-tso=": ("nic.tso_gso",),
    "feature-gso=": ("nic.tso_gso",),
    "pause-": ("nic.pause",),
    "channels-": ("nic.channels",),
    "eee-": ("nic.eee",),
}
#: Service that is running → knobs it sets again and again.
_SERVICES = {
    "irqbalance.service": ("irq.affinity",),
    "firewalld.service": ("net.conntrack",),
    "power-profiles-daemon.service": ("cpu.governor", "cpu.epp"),
}

Owned = Iterator[tuple[str, str]]


def add(facts: Facts, capture: NodeCapture, knobs: Sequence[Knob]) -> None:
    """Collect the other owners of knobs."""
    known = {knob.id: knob for knob in knobs}
    found: dict[str, str] = {}
    for source in _SOURCES:
        try:
            owned = list(source(capture, known))
        except Unknown:
            continue  # what the node does not tell is said at the facts that come from it
        for name, owner in owned:
            found.setdefault(name, owner)
    for name, owner in found.items():
        if name in known:
            facts.put(f"owner.{name}", owner)


def _tuned(capture: NodeCapture, knobs: dict[str, Knob]) -> Owned:
    if not tuned.runs(capture):
        return
    sysctls = {knob.access.target: name for name, knob in knobs.items() if knob.access.kind == "sysctl"}
    for entry in tuned.entries(capture):
        words = f"{entry.section} {entry.name}"
        names = [
            name for pattern, names in _TUNED.items() if fnmatch.fnmatchcase(words, pattern) for name in names
        ]
        if entry.section == "sysctl" and entry.name in sysctls:
            names.append(sysctls[entry.name])
        for name in names:
            yield name, f"TuneD (profile {shown(entry.profile, 60)}, [{shown(entry.section, 40)}])"


def _services(capture: NodeCapture, _: dict[str, Knob]) -> Owned:
    known = services.services(capture)
    for unit, names in _SERVICES.items():
        if unit in known and known[unit].running:
            for name in names:
                yield name, unit.removesuffix(".service")


def _network_manager(capture: NodeCapture, _: dict[str, Knob]) -> Owned:
    known = services.services(capture)
    if "NetworkManager.service" not in known or not known["NetworkManager.service"].running:
        return
    for path, lines in connections(capture):
        for line in lines:
            for start, names in _CONNECTION.items():
                if line.startswith(start):
                    for name in names:
                        yield name, f"NetworkManager ({shown(path, 100)})"


def _managed_sysctls(capture: NodeCapture, knobs: dict[str, Knob]) -> Owned:
    """Say who manages the files that set sysctls, where they tell it in a comment."""
    marked = _markers(capture)
    kept = kept_sysctls(capture)
    for name, knob in knobs.items():
        if knob.access.kind == "sysctl" and knob.access.target in kept:
            path = kept[knob.access.target][1]
            if path in marked:
                yield name, f"{marked[path]} ({shown(path, 100)})"


def _managed_mtu(capture: NodeCapture, _: dict[str, Knob]) -> Owned:
    """Say who manages the file that sets the MTU."""
    path = kept_mtu_file(capture)
    marked = _markers(capture)
    if path in marked:
        yield "nic.mtu", f"{marked[path]} ({shown(path, 100)})"


def _markers(capture: NodeCapture) -> dict[str, str]:
    """Return file → the tool that manages it, as the file says."""
    found = {}
    for line in capture.tree.output("managed")[0].splitlines():
        path, _, words = line.partition(":")
        tool = re.search(r"ansible|puppet|chef|salt|cfengine|cloud-init", words, re.IGNORECASE)
        found[path] = _TOOLS.get(tool[0].lower() if tool else "", "a configuration management")
    return found


_TOOLS = {
    "ansible": "Ansible",
    "puppet": "Puppet",
    "chef": "Chef",
    "salt": "Salt",
    "cfengine": "CFEngine",
    "cloud-init": "cloud-init",
}
_SOURCES: tuple[Callable[[NodeCapture, dict[str, Knob]], Owned], ...] = (
    _tuned,
    _services,
    _network_manager,
    _managed_sysctls,
    _managed_mtu,
)
