"""The value of a knob on a node, for every kind of access. Pure.

A new kind is one function here (and, to change it, one file for its writer).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from wulf.base.catalogue import Knob, sysctl_path
from wulf.base.output_values import Absent, Unknown, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import firewall, mpi, network, nic, services
from wulf.node.facts.readers.machine import pm_qos_us

#: The kernel's own value of /dev/cpu_dma_latency, when nobody holds it: 2000 s.
_UNLIMITED_US = 2_000_000_000


def add(facts: Facts, capture: NodeCapture, knobs: Sequence[Knob]) -> None:
    """Collect the value of every knob, under its own id."""
    for knob in knobs:
        facts.read(knob.id, lambda knob=knob: value(capture, knob))  # type: ignore[misc]


def value(capture: NodeCapture, knob: Knob) -> FactValue:
    """Return the knob's value as text.

    Raises
    ------
    Unknown
        When it cannot be told; `Absent` and `Unsupported` where that is the reason.
    """
    return _READERS[knob.access.kind](capture, knob)


def _sysctl(capture: NodeCapture, knob: Knob) -> FactValue:
    return " ".join(capture.tree.text(sysctl_path(knob.access.target)).split())


def _file(capture: NodeCapture, knob: Knob) -> FactValue:
    target = knob.access.target
    if "{interface}" in target:
        target = target.replace("{interface}", capture.nic())
    return " ".join(_folded(capture, pattern, knob.access.select) for pattern in target.split())


def _folded(capture: NodeCapture, pattern: str, select: str) -> str:
    """Return the value all files of a pattern have, or how many have which."""
    found = [_selected(text, select, path) for path, text in capture.tree.matching(pattern)]
    counts = {text: found.count(text) for text in dict.fromkeys(found)}
    if len(counts) == 1:
        return found[0]
    return ", ".join(f"{text} ({count}×)" for text, count in counts.items())


def _selected(text: str, select: str, path: str) -> str:
    text = " ".join(text.split())
    if select == "bracketed":
        chosen = re.search(r"\[([^\]]+)\]", text)
        if not chosen:
            raise Unknown(f"{shown(path, 80)} has no value in brackets")
        return chosen[1]
    if select == "mask":
        return text.replace(",", "").lstrip("0") or "0"
    return shown(text, 200)


def _pm_qos(capture: NodeCapture, _: Knob) -> FactValue:
    limit = pm_qos_us(capture.tree)
    return "unlimited" if limit >= _UNLIMITED_US else str(limit)


def _idle_states(capture: NodeCapture, knob: Knob) -> FactValue:
    states: dict[str, str] = {}
    for path, text in capture.tree.matching(knob.access.target):
        states.setdefault(path.rsplit("/", 2)[1], "")
        states[path.rsplit("/", 2)[1]] += text
    off = [name for name, texts in states.items() if "1" in texts]
    return "disabled: " + " ".join(off) if off else "all allowed"


def _turbo(capture: NodeCapture, knob: Knob) -> FactValue:
    inverse, plain = knob.access.target.split()
    try:
        return {"0": "1", "1": "0"}[capture.tree.text(inverse)]
    except (Unknown, KeyError):
        return capture.tree.text(plain)


def _boot(capture: NodeCapture, knob: Knob) -> FactValue:
    words = capture.tree.text("/proc/cmdline").split()
    wanted = knob.access.target.split()
    found = [shown(word, 200) for word in words if word.partition("=")[0] in wanted]
    if not found:
        raise Absent("not on the kernel's command line")
    return " ".join(found)


def _service(capture: NodeCapture, knob: Knob) -> FactValue:
    return services.service(capture, knob.access.target)


def _irq_affinity(capture: NodeCapture, _: Knob) -> FactValue:
    return nic.affinity(capture)


def _module(capture: NodeCapture, knob: Knob) -> FactValue:
    link = capture.links.get(capture.nic())
    driver = link.driver if link else None
    if driver is None:
        raise Absent("it is a virtual interface")
    name = knob.access.target
    try:
        return capture.tree.text(f"/sys/module/{driver}/parameters/{name}")
    except Unknown:
        pass  # most drivers do not export it: the configuration says what they were loaded with
    for _, text in capture.tree.files("/etc/modprobe.d/"):
        found = re.search(rf"^\s*options\s+{re.escape(driver)}\s.*\b{name}=(\S+)", text, re.MULTILINE)
        if found:
            return found[1]
    raise Absent(f"the driver {shown(driver, 40)} was loaded without it")


_ETHTOOL = {
    "coalesce": "-c",
    "ring": "-g",
    "channels": "-l",
    "feature": "-k",
    "pause": "-a",
    "eee": "--show-eee",
    "driver": "-i",
    "link": "",
}


def _ethtool(capture: NodeCapture, knob: Knob) -> FactValue:
    parts = [target.partition(".") for target in knob.access.target.split()]
    values = nic.ethtool_values(capture, _ETHTOOL[parts[0][0]])
    group = parts[0][0]
    if group == "eee":
        return nic.given(values, "enabled")
    if group == "driver":
        return " ".join(values[name] for name in ("driver", "version", "firmware-version") if name in values)
    if group == "channels":
        present = [
            f"{name} {count}" for name, count in values.items() if not name.endswith("-max") and count != "0"
        ]
        return " ".join(present) or "none"
    if group == "link":
        return f"{nic.given(values, 'speed')} Mbit/s {nic.given(values, 'duplex')}"
    return " ".join(nic.given(values, name).removesuffix(" [fixed]") for _, _, name in parts)


def _link(capture: NodeCapture, knob: Knob) -> FactValue:
    return str(whole(capture.tree.text(f"/sys/class/net/{capture.nic()}/{knob.access.target}"), knob.id))


def _route(capture: NodeCapture, _: Knob) -> FactValue:
    return network.rto_min(capture)


def _firewall(capture: NodeCapture, knob: Knob) -> FactValue:
    readers = {"tracking": firewall.tracking, "legacy_rules": firewall.legacy_rules}
    return str(readers[knob.access.target](capture))


def _tuned(capture: NodeCapture, knob: Knob) -> FactValue:
    try:
        state = services.service(capture, "tuned.service")
    except Absent:
        raise Absent("TuneD is not installed") from None
    if not str(state).startswith("on"):
        return "none"
    try:
        return capture.tree.text(knob.access.target) or "none"
    except Absent:
        return "none"


def _mpi_parameter(capture: NodeCapture, knob: Knob) -> FactValue:
    return mpi.parameter(capture, knob.access.target)


def _environment(capture: NodeCapture, knob: Knob) -> FactValue:
    return mpi.variable(capture, knob.access.target)


def _job_file(_: NodeCapture, knob: Knob) -> FactValue:
    raise Absent(f"it belongs to a job ({knob.access.target}), not to the node")


def _blas(capture: NodeCapture, _: Knob) -> FactValue:
    return mpi.blas(capture)


_READERS: dict[str, Callable[[NodeCapture, Knob], FactValue]] = {
    "sysctl": _sysctl,
    "file": _file,
    "pm_qos": _pm_qos,
    "idle_states": _idle_states,
    "turbo": _turbo,
    "boot": _boot,
    "service": _service,
    "irq_affinity": _irq_affinity,
    "module": _module,
    "ethtool": _ethtool,
    "link": _link,
    "route": _route,
    "firewall": _firewall,
    "tuned": _tuned,
    "mpi_parameter": _mpi_parameter,
    "environment": _environment,
    "job_file": _job_file,
    "blas": _blas,
}
