"""The cluster's interface, and the counters of all physical ones. Pure."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable

from wulf.base.output_values import Absent, Unknown, Unsupported, cpu_list, is_count, number, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import ethtool
from wulf.node.facts.tree import Tree

#: Counters of the kernel that only grow when something goes wrong.
_ERRORS = (
    "rx_errors",
    "tx_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "rx_over_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "collisions",
)
#: Configuration registers of a PCI device: how many there are of the old kind, where capabilities begin, where that is
#: said, how many there can be; the capability PCI Express, its Device Control, and the bit of relaxed ordering there.
_ALL_REGISTERS, _HEADER, _FIRST_CAPABILITY, _MOST_CAPABILITIES = 256, 0x40, 0x34, 48
_EXPRESS, _DEVICE_CONTROL, _RELAXED = 0x10, 8, 0x10
#: Frames nobody wants (spanning tree, LLDP) count as dropped: so many per second are normal.
_NORMAL_DROPS_PER_S = 10.0


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect the facts of the cluster's interface."""
    for name, read in FACTS.items():
        facts.read(f"nic.{name}", functools.partial(read, capture))
    facts.read("network.errors", lambda: _errors(capture))
    facts.read("network.drops", lambda: _drops(capture))


def ethtool_values(capture: NodeCapture, option: str) -> dict[str, str]:
    """Return what ``ethtool OPTION`` says of the cluster's interface (``-c``, ``--show-eee``, ``""`` …).

    Raises
    ------
    Unknown
        When ethtool is missing or refuses.
    """
    nic = capture.nic()
    capture.tree.require("ethtool")
    return capture.once(
        f"ethtool{option}", lambda: _ETHTOOL[option](capture.tree.text(f"ethtool{option}.{nic}"))
    )


def given(values: dict[str, str], name: str) -> str:
    """Return one of ethtool's values.

    Raises
    ------
    Unsupported
        When the driver does not have it.
    """
    if name not in values:
        raise Unsupported(f"the driver has no {name}")
    return values[name]


_ETHTOOL: dict[str, Callable[[str], dict[str, str]]] = {
    "": ethtool.link,
    "-i": ethtool.driver,
    "-c": ethtool.coalesce,
    "-g": ethtool.rings,
    "-l": ethtool.channels,
    "-k": ethtool.switches,
    "-a": ethtool.pause,
    "--show-eee": ethtool.eee,
}


def interface_addresses(capture: NodeCapture) -> dict[str, list[str]]:
    """Interface → its addresses with prefix length, IPv4 first, without loopback's and link-local ones.

    Raises
    ------
    Unknown
        When the node did not say.
    """
    return capture.once("addresses", lambda: _addresses(capture.tree))


def _addresses(tree: Tree) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in tree.lines("addresses"):
        match = re.match(_ADDRESS, line + " ")
        # Behind 'peer' is the other end of a point-to-point link, with the prefix length of both.
        text = f"{match[2]}{match[3] or _whole_prefix(match[2])}" if match else ""
        address = interface_address(text)
        if match and address is not None and not address.is_loopback and not address.is_link_local:
            found.setdefault(match[1], []).append(text)
    for addresses in found.values():
        addresses.sort(key=lambda address: ":" in address)
    return found


_ADDRESS = r"\d+:\s+([^\s@:]+)\S*\s+inet6?\s+([0-9a-fA-F.:]+)(/\d+)?(?:\s+peer\s+[0-9a-fA-F.:]+(?:/\d+)?)?\s"


def _whole_prefix(address: str) -> str:
    """Return the prefix length of an address that is printed without one: the network beyond it is its peer's."""
    return "/128" if ":" in address else "/32"


def interface_address(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
    """Return an address with its prefix length; None when it is none."""
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def _peer(capture: NodeCapture) -> FactValue:
    """Return the other end of a point-to-point link, as in ``inet A peer B/32``."""
    own = re.escape(capture.nic())
    for line in capture.tree.lines("addresses"):
        found = re.match(rf"\d+:\s+{own}(?:@\S+)?\s+inet6?\s+\S+\s+peer\s+([0-9a-fA-F.:]+)", line)
        if found:
            return found[1]
    raise Absent("the interface is not that of a point-to-point link")


def _own_addresses(capture: NodeCapture) -> list[str]:
    found = interface_addresses(capture).get(capture.nic())
    if not found:
        raise Unknown(f"{shown(capture.nic(), 40)} has no address")
    return found


def _subnet(capture: NodeCapture) -> FactValue:
    first = interface_address(_own_addresses(capture)[0])
    assert first is not None
    return str(first.network)


def _file(name: str) -> Callable[[NodeCapture], str]:
    return lambda capture: capture.tree.text(f"/sys/class/net/{capture.nic()}/{name}")


def _mtu(capture: NodeCapture) -> FactValue:
    return whole(_file("mtu")(capture), "the MTU")


def _speed(capture: NodeCapture) -> FactValue:
    text = _file("speed")(capture)
    if text in ethtool.NO_SPEED:
        raise Unsupported("the driver does not say")
    return whole(text, "the speed", 1_000_000)


def _mode_speed(name: str) -> Callable[[NodeCapture], FactValue]:
    return lambda capture: whole(given(ethtool_values(capture, ""), name), "the speed", 1_000_000)


def _speed_possible(capture: NodeCapture) -> FactValue:
    """Return the fastest that both ends offer, where the partner says what it does."""
    modes = ethtool_values(capture, "")
    offered = [modes[name] for name in ("speed-max", "speed-max-partner") if name in modes]
    if "speed-max" not in modes:
        raise Unsupported("the driver has no speed-max")
    return min(whole(one, "the speed", 1_000_000) for one in offered)


def _eee_active(capture: NodeCapture) -> FactValue:
    return given(ethtool_values(capture, "--show-eee"), "active")


def _device(capture: NodeCapture) -> FactValue:
    link = capture.links.get(capture.nic())
    if link is None or link.device is None:
        raise Absent("it is a virtual interface")
    return link.device


def _device_id(capture: NodeCapture) -> FactValue:
    """Return the PCI vendor and device."""
    _device(capture)
    return f"{_file('device/vendor')(capture)}:{_file('device/device')(capture)}".replace("0x", "")


def _driver(key: str) -> Callable[[NodeCapture], FactValue]:
    return lambda capture: given(ethtool_values(capture, "-i"), key)


def _pci(name: str) -> Callable[[NodeCapture], FactValue]:
    def read(capture: NodeCapture) -> FactValue:
        _device(capture)
        text = _file(f"device/{name}")(capture)
        if "Unknown" in text or text in ("", "255"):
            raise Unknown("the device does not say")
        return number(text.split(" ")[0], "the PCI link")

    return read


def _numa_node(capture: NodeCapture) -> FactValue:
    _device(capture)
    text = _file("device/numa_node")(capture)
    if text == "-1":
        raise Unsupported("the firmware does not say")
    return whole(text, "the NUMA node")


def _iommu(capture: NodeCapture) -> FactValue:
    """Return how the IOMMU translates what the device reaches: ``identity``, ``DMA``, ``DMA-FQ``."""
    _device(capture)
    try:
        return _file("device/iommu_group/type")(capture)
    except Absent:
        raise Absent("no IOMMU translates for it") from None


def _driver_out_of_tree(capture: NodeCapture) -> FactValue:
    """Return whether the driver is none of the kernel's own."""
    _device(capture)
    try:
        taint = capture.tree.text(f"/sys/class/net/{capture.nic()}/device/driver/module/taint")
    except Unknown:
        raise Unknown("the driver is built in, or the kernel does not say") from None
    return "O" in taint


def _relaxed_ordering(capture: NodeCapture) -> FactValue:
    """Return whether the card may have its writes overtake each other on PCI Express: bit 4 of Device Control."""
    _device(capture)
    text = capture.tree.text(f"pci_config.{capture.nic()}")
    try:
        registers = bytes.fromhex(text)
    except ValueError:
        raise Unknown("the card's registers are not readable") from None
    express = _capability(registers, _EXPRESS)
    return bool(registers[express + _DEVICE_CONTROL] & _RELAXED)


def _capability(registers: bytes, wanted: int) -> int:
    """Return where a capability of a PCI device begins (PCI Local Bus Specification, capabilities list)."""
    if len(registers) < _ALL_REGISTERS:
        raise Unknown("only root can read the card's registers")
    place = registers[_FIRST_CAPABILITY]
    for _ in range(_MOST_CAPABILITIES):
        if not _HEADER <= place < _ALL_REGISTERS - _DEVICE_CONTROL - 1:
            break
        if registers[place] == wanted:
            return place
        place = registers[place + 1]
    raise Absent("it is no PCI Express device")


def interrupts(capture: NodeCapture) -> dict[str, tuple[int, str, int]]:
    """IRQ of the cluster's interface → (its interrupts during the look, CPU that handled most, all so far).

    Raises
    ------
    Unknown
        When the interface has none (it is virtual), or the node did not say.
    """
    nic = capture.nic()
    device = str(_device(capture))
    listed = set(capture.tree.text(f"irqs.{nic}").split()) if f"irqs.{nic}" in capture.tree else set()
    named = re.compile(rf"(^|[\s:-])({re.escape(nic)}|{re.escape(device)})($|[-@:.\s])")
    first, second = (_interrupt_lines(capture, n) for n in (1, 2))
    found = {}
    for irq, (total, cpu, name) in second.items():
        if (irq in listed or named.search(name)) and irq in first:
            found[irq] = (total - first[irq][0], cpu, total)
    if not found:
        raise Unknown(f"no interrupt belongs to {shown(nic, 40)}")
    return found


def _interrupt_lines(capture: NodeCapture, n: int) -> dict[str, tuple[int, str, str]]:
    found = {}
    for line in capture.tree.lines(f"interrupts.{n}"):
        words = line.split(" ", 4)
        if len(words) >= 4 and is_count(words[1]):
            found[words[0].rstrip(":")] = (int(words[1]), words[2], words[4] if len(words) > 4 else "")
    return found


def _interrupt_rate(capture: NodeCapture) -> FactValue:
    return max(0, sum(grown for grown, _, _ in interrupts(capture).values())) / capture.seconds


def _interrupt_queues(capture: NodeCapture) -> FactValue:
    """Return how many interrupts of the interface have ever been raised."""
    return sum(1 for _, _, total in interrupts(capture).values() if total > 0)


def _interrupt_cpus(capture: NodeCapture) -> FactValue:
    """Return how many CPUs handle most of some interrupt of the interface."""
    return len({cpu for _, cpu, total in interrupts(capture).values() if total > 0})


def _interrupts_on(capture: NodeCapture) -> FactValue:
    """Return the CPUs that handle most of some interrupt of the interface, ascending."""
    cpus = {cpu for _, cpu, total in interrupts(capture).values() if total > 0}
    return " ".join(sorted(cpus, key=lambda cpu: (len(cpu), cpu))) or "none"


def _interrupts_away(capture: NodeCapture) -> FactValue:
    """Return the CPUs that handle interrupts of the interface and are on another NUMA node than it."""
    near = cpu_list(capture.tree.text(f"/sys/devices/system/node/node{_numa_node(capture)}/cpulist"))
    away = [cpu for cpu in str(_interrupts_on(capture)).split() if is_count(cpu) and int(cpu) not in near]
    return " ".join(away) or "none"


def _pause_frames(capture: NodeCapture) -> FactValue:
    """Return the driver's counters of pause frames received that grew during the look: the switch stopped the node."""
    nic = capture.nic()
    before, after = (ethtool.statistics(capture.tree.text(f"ethtool-S.{nic}.{n}")) for n in (1, 2))
    known = [name for name in after if name in before and _PAUSED.search(name)]
    if not known:
        raise Unsupported("the driver does not count them")
    return (
        "; ".join(f"{name} +{after[name] - before[name]}" for name in known if after[name] > before[name])
        or "none"
    )


#: Of e1000e, igb, ixgbe, i40e, ice; mlx5, bnxt_en; tg3, r8169.
_PAUSED = re.compile(
    r"^(rx_flow_control_xoff|port\.link_xoff_rx|link_xoff_rx(\.nic)?|rx_(global_)?pause(_ctrl_phy|_frames)?|rx_xoff_entered|rx_xoff_pkts_phy)$"
)


def _allowed(capture: NodeCapture) -> dict[str, str]:
    """IRQ of the interface → CPUs it may be handled on."""
    found = {}
    for irq in interrupts(capture):
        try:
            found[irq] = capture.tree.text(f"/proc/irq/{irq}/smp_affinity_list")
        except Unknown:
            continue
    if not found:
        raise Unknown("the kernel does not show on which CPUs the interrupts may be handled")
    return found


def _by_irq(item: tuple[str, str]) -> tuple[int, str]:
    return (int(item[0]) if item[0].isdigit() and len(item[0]) < 9 else 1 << 30, item[0])


def affinity(capture: NodeCapture) -> FactValue:
    """Return the CPUs of the interface's interrupts, in the order of the interrupts."""
    return "; ".join(f"{irq}: {cpus}" for irq, cpus in sorted(_allowed(capture).items(), key=_by_irq))


def _by_hand(capture: NodeCapture) -> FactValue:
    """Return whether interrupts of the interface are bound to single CPUs."""
    return all(cpus.isdigit() for cpus in _allowed(capture).values())


def _growth(capture: NodeCapture, nic: str) -> dict[str, int]:
    counters = []
    for n in (1, 2):
        row = {}
        for line in capture.tree.lines(f"statistics.{nic}.{n}"):
            path, _, value = line.rpartition(":")
            row[path.rpartition("/")[2]] = whole(value, "a counter")
        counters.append(row)
    return {name: counters[1][name] - counters[0].get(name, 0) for name in counters[1]}


def _looked_at(capture: NodeCapture) -> list[str]:
    found = [nic for nic in capture.links if f"statistics.{nic}.2" in capture.tree]
    if not found:
        raise Unknown("the node did not print the counters")
    return found


def _errors(capture: NodeCapture) -> FactValue:
    """Return the error counters of all looked-at interfaces that grew during the look."""
    said = []
    for nic in _looked_at(capture):
        grown = _growth(capture, nic)
        said += [f"{nic} {name} +{grown[name]}" for name in _ERRORS if grown.get(name, 0) > 0]
        said += [f"{nic} {name} +{count}" for name, count in _driver_growth(capture, nic).items()]
    return "; ".join(said) or "none"


def _driver_growth(capture: NodeCapture, nic: str) -> dict[str, int]:
    """Return the driver's own CRC and error counters that grew and that the kernel does not show."""
    try:
        before, after = (ethtool.statistics(capture.tree.text(f"ethtool-S.{nic}.{n}")) for n in (1, 2))
    except Unknown:
        return {}
    return {
        name: after[name] - before[name]
        for name in after
        if name in before
        and after[name] > before[name]
        and name not in _ERRORS
        and re.search(r"crc|_err", name)
    }


def _drops(capture: NodeCapture) -> FactValue:
    """Return the interfaces that dropped more frames during the look than is normal."""
    said = []
    for nic in _looked_at(capture):
        grown = _growth(capture, nic)
        for name in ("rx_dropped", "tx_dropped"):
            if grown.get(name, 0) > _NORMAL_DROPS_PER_S * capture.seconds:
                said.append(f"{nic} {name} +{grown[name]}")
    return "; ".join(said) or "none"


def _qdisc(capture: NodeCapture) -> FactValue:
    """Return the queueing discipline at the root of the cluster's interface."""
    nic = capture.nic()
    for line in capture.tree.lines("qdiscs"):
        words = line.split()
        if words[:1] == ["qdisc"] and words[3:5] == ["dev", nic] and "root" in words[5:7]:
            return words[1]
    raise Unknown(f"tc shows none for {shown(nic, 40)}")


def _state(capture: NodeCapture) -> FactValue:
    return _file("operstate")(capture)


def _duplex(capture: NodeCapture) -> FactValue:
    text = _file("duplex")(capture)
    if text not in ("full", "half"):
        raise Unsupported("the driver does not say")
    return text


FACTS: dict[str, Callable[[NodeCapture], FactValue]] = {
    "name": lambda capture: capture.nic(),
    "addresses": lambda capture: " ".join(_own_addresses(capture)),
    "peer": _peer,
    "subnet": _subnet,
    "mtu_bytes": _mtu,
    "state": _state,
    "speed_bits_per_s": _speed,
    "speed_max_bits_per_s": _mode_speed("speed-max"),
    "speed_partner_bits_per_s": _mode_speed("speed-max-partner"),
    "speed_possible_bits_per_s": _speed_possible,
    "eee_active": _eee_active,
    "duplex": _duplex,
    "carrier_changes": lambda capture: whole(
        _file("carrier_changes")(capture), "how often the link went down or up"
    ),
    "autoneg": lambda capture: given(ethtool_values(capture, ""), "autoneg"),
    "device": _device,
    "device_id": _device_id,
    "driver": _driver("driver"),
    "driver_version": _driver("version"),
    "firmware": _driver("firmware-version"),
    "pci_speed_gt_per_s": _pci("current_link_speed"),
    "pci_speed_max_gt_per_s": _pci("max_link_speed"),
    "pci_lanes": _pci("current_link_width"),
    "pci_lanes_max": _pci("max_link_width"),
    "numa_node": _numa_node,
    "interrupts_per_s": _interrupt_rate,
    "interrupt_queues": _interrupt_queues,
    "interrupt_cpus": _interrupt_cpus,
    "interrupts_on": _interrupts_on,
    "interrupts_bound": _by_hand,
    "qdisc": _qdisc,
    "interrupts_away": _interrupts_away,
    "pause_frames": _pause_frames,
    "iommu": _iommu,
    "driver_out_of_tree": _driver_out_of_tree,
    "relaxed_ordering": _relaxed_ordering,
}
