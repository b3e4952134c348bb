"""What a node printed → its facts. Pure; whatever the node prints, every fact has a value or a reason."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from wulf.facts.sections import Sections, Unknown, cpu_list, number, shown, whole
from wulf.ports import NodeResult
from wulf.records import FactValue, NodeRecord

#: Longest value kept [characters]; only a long list of addresses comes near.
_LIMIT = 4000


def record(result: NodeResult, interface: str | None) -> NodeRecord:
    """Facts of a node from the result of the capture script, or why there are none."""
    if result.status != "ok":
        reached = result.status in ("exit", "garbage")
        return NodeRecord(node=result.node, reachable=reached, error=result.reason or result.status)
    return parse(result.node, result.stdout.decode("utf-8", "replace"), interface)


def parse(node: str, text: str, interface: str | None) -> NodeRecord:
    """Facts from what ``capture.sh`` printed.

    Parameters
    ----------
    interface
        The interface that the script was asked about; None when it was not asked about one.
    """
    sections = Sections(text)
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    for name, read in (_NODE | (_NIC if interface is not None else {})).items():
        try:
            value = read(sections)
        except Unknown as reason:
            unknown[name] = str(reason)
            continue
        facts[name] = shown(value, _LIMIT) if isinstance(value, str) else value
    return NodeRecord(node=node, reachable=True, facts=facts, unknown=unknown)


def interfaces(facts: dict[str, FactValue]) -> dict[str, list[str]]:
    """Interface → addresses with prefix length, IPv4 first, from the fact ``addresses``."""
    result: dict[str, list[str]] = {}
    for word in str(facts.get("addresses") or "").split():
        name, _, address = word.partition("=")
        if _interface(address) is not None:
            result.setdefault(name, []).append(address)
    for found in result.values():
        found.sort(key=lambda address: ":" in address)
    return result


def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def _text(name: str) -> Callable[[Sections], FactValue]:
    def read(sections: Sections) -> FactValue:
        text = " ".join(sections.text(name).split())
        if not text:
            raise Unknown("empty")
        return text

    return read


def _field(section: str, key: str, what: str = "") -> Callable[[Sections], FactValue]:
    """Value of a ``key: value`` or ``key=value`` line."""
    pattern = re.compile(rf"\s*{re.escape(key)}\s*[:=]\s*(.*)")

    def read(sections: Sections) -> FactValue:
        for line in sections.lines(section):
            found = pattern.fullmatch(line)
            if found and found[1].strip().strip('"'):
                return found[1].strip().strip('"')
        raise Unknown(f"{what or section} does not say")

    return read


def _count(section: str, key: str) -> Callable[[Sections], FactValue]:
    field = _field(section, key)
    return lambda sections: whole(str(field(sections)), key)


def _hypervisor(sections: Sections) -> FactValue:
    lines = sections.lines("lscpu")
    for line in lines:
        if line.startswith("Hypervisor vendor:"):
            return line.partition(":")[2].strip() or "unnamed"
    if any(line.startswith("CPU(s):") for line in lines):
        return "none"
    raise Unknown("lscpu does not say")


def _memory(sections: Sections) -> FactValue:
    value = str(_field("meminfo", "MemTotal")(sections)).removesuffix("kB").strip()
    return whole(value, "MemTotal", 1024)


def _word(section: str, index: int) -> Callable[[Sections], FactValue]:
    def read(sections: Sections) -> FactValue:
        words = sections.text(section).split()
        if len(words) <= index:
            raise Unknown("empty")
        return number(words[index], section)

    return read


def _cpus_allowed(sections: Sections) -> FactValue:
    text = str(_field("cpu_status", "Cpus_allowed_list", "the kernel")(sections))
    cpu_list(text)
    return text


def _container(sections: Sections) -> FactValue:
    return " ".join(sections.text("container").split()) or "none"


def _addresses(sections: Sections) -> FactValue:
    words = []
    for line in sections.lines("addresses"):
        found = re.match(r"\d+:\s+([^\s@:]+)\S*\s+inet6?\s+([0-9a-fA-F.:]+/\d+)\s", line + " ")
        address = _interface(found[2]) if found else None
        if found and address is not None and not address.is_loopback and not address.is_link_local:
            words.append(f"{found[1]}={found[2]}")
    if not words:
        raise Unknown("ip shows no address but loopback's and link-local ones")
    return " ".join(words)


def _own_addresses(sections: Sections) -> list[str]:
    name = sections.text("nic")
    text = " ".join(
        line for line in sections.lines("addresses") if re.match(rf"\d+:\s+{re.escape(name)}[@\s]", line)
    )
    found = [word for word in re.findall(r"inet6?\s+(\S+)", text) if _interface(word) is not None]
    if not found:
        raise Unknown(f"{shown(name, 40)} has no address")
    return sorted(found, key=lambda address: ":" in address)


def _subnet(sections: Sections) -> FactValue:
    first = _interface(_own_addresses(sections)[0])
    assert first is not None
    return str(first.network)


def _speed(sections: Sections) -> FactValue:
    text = sections.text("nic_speed")
    # The kernel says -1 for an interface that has no speed of its own (a bridge, a virtual link).
    if text.startswith("-"):
        raise Unknown("the driver does not say")
    return whole(text, "the speed", 1_000_000)


def _firmware(sections: Sections) -> FactValue:
    return _field("ethtool", "firmware-version", "the driver")(sections)


def _openmpi(sections: Sections) -> FactValue:
    found = re.search(r"Open MPI v?(\S+)", sections.text("openmpi"))
    if not found:
        raise Unknown("ompi_info does not say")
    return found[1]


def _mtu(sections: Sections) -> FactValue:
    return whole(sections.text("nic_mtu"), "the MTU")


_NODE: dict[str, Callable[[Sections], FactValue]] = {
    "hostname": _text("hostname"),
    "kernel": _text("kernel"),
    "arch": _text("arch"),
    "os": _field("os", "PRETTY_NAME", "/etc/os-release"),
    "libc": _text("libc"),
    "cpu_model": _field("lscpu", "Model name"),
    "cpus": _count("lscpu", "CPU(s)"),
    "sockets": _count("lscpu", "Socket(s)"),
    "numa_nodes": _count("lscpu", "NUMA node(s)"),
    "threads_per_core": _count("lscpu", "Thread(s) per core"),
    "cpus_allowed": _cpus_allowed,
    "smt": _text("smt"),
    "governor": _text("governor"),
    "hypervisor": _hypervisor,
    "container": _container,
    "clock_source": _text("clock_source"),
    "memory_bytes": _memory,
    "uptime_s": _word("uptime", 0),
    "load1": _word("loadavg", 0),
    "addresses": _addresses,
    "openmpi_version": _openmpi,
    "mpich_version": _field("mpich", "MPICH Version", "mpichversion"),
}

_NIC: dict[str, Callable[[Sections], FactValue]] = {
    "interface": _text("nic"),
    "nic_addresses": lambda sections: " ".join(_own_addresses(sections)),
    "nic_subnet": _subnet,
    "nic_mtu_bytes": _mtu,
    "nic_state": _text("nic_state"),
    "nic_speed_bits_per_s": _speed,
    "nic_duplex": _text("nic_duplex"),
    "nic_device": _text("nic_device"),
    "nic_driver": _field("ethtool", "driver"),
    "nic_driver_version": _field("ethtool", "version", "the driver"),
    "nic_firmware": _firmware,
}
