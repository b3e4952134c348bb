"""What a node's link should reach, so that a fault which all nodes share is seen without a healthy neighbour. Pure.

Bandwidth is arithmetic: the line rate less the headers of Ethernet, IP and TCP, and less where the bus is narrower.
Latency and messages in a second are those of networks of the catalogue, each with its sources; a site's own file in
``networks`` says it better (`wulf.base.networks.reach`).

Sources: IEEE 802.3 (preamble, header, check sequence and gap: 38 B a frame), RFC 791, RFC 9293, RFC 7323 (52 B of IP
and TCP with time stamps); PCI Express Base Specification (8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on; about 24 B of
headers for each 256 B of payload).
"""

from __future__ import annotations

from wulf.base import networks
from wulf.base.output_values import Absent, Unknown
from wulf.node.facts.node import Facts

_FRAME_B, _HEADERS_B = 38, 52
#: One connection that nothing holds back comes within this share of what its link can carry; from the speed on at which
#: one processor may be the limit, less [bit/s].
_WELL, _BY_PROCESSOR, _FAST_BITS_PER_S = 0.9, 0.4, 20e9
#: Drivers of cards that a hypervisor makes.
_VIRTUAL = ("virtio_net", "vmxnet3", "hv_netvsc", "ena", "gve", "xen_netfront", "veth", "tun")
_PCI_PAYLOAD = 256 / (256 + 24)


def add(facts: Facts) -> None:
    """Derive it from the facts of the link; to be called after them."""
    facts.read("expected.bandwidth", lambda: _bandwidth(facts))
    facts.read("expected.latency", lambda: _latency(facts))


def _bandwidth(facts: Facts) -> str:
    """Put the bounds of one connection [bit/s] into the facts, and return how they come about."""
    speed, mtu = _speed(facts), _number(facts, "nic.mtu_bytes", "the MTU")
    payload, frame = mtu - _HEADERS_B, mtu + _FRAME_B
    high = speed * payload / frame
    said = f"{_giga(speed)} Gbit/s less headers ({payload:g} of {frame:g} B)"
    bus = _bus(facts)
    if bus is not None and bus < high:
        high, said = (
            bus,
            f"{_giga(bus)} Gbit/s of its PCI Express link, less than the {_giga(speed)} of its port",
        )
    low = high * (_WELL if speed < _FAST_BITS_PER_S else _BY_PROCESSOR)
    facts.put("expected.bandwidth_low_bits_per_s", low)
    facts.put("expected.bandwidth_high_bits_per_s", high)
    return f"{_giga(low)} to {_giga(high)} Gbit/s: {said}"


def _latency(facts: Facts) -> str:
    """Put the bounds of half a round trip [s] and of messages in a second into the facts; return whose they are."""
    speed = _speed(facts)
    found = networks.reach(speed)
    if found is None:
        raise Absent(
            f"no network of the catalogue is of {_giga(speed)} Gbit/s: a file in networks may say it"
        )
    for name, (low, high) in (("latency_{}_s", found.latency_s), ("messages_{}_per_s", found.messages_per_s)):
        facts.put(f"expected.{name.format('low')}", low)
        facts.put(f"expected.{name.format('high')}", high)
    low, high = (value * 1e6 for value in found.latency_s)
    return f"{low:.3g} to {high:.3g} µs half a round trip over TCP, as {' and '.join(found.networks)} have it"


def _speed(facts: Facts) -> float:
    """Return the speed of the link: of several members that of the slowest, as one connection goes over one of them."""
    if facts.values.get("nic.kind") == "virtual" or facts.values.get("nic.driver") in _VIRTUAL:
        raise Absent("it is a virtual interface: what it should reach is up to its host")
    of_members = [
        value
        for name, value in facts.values.items()
        if name.startswith("nic.speed_bits_per_s@") and isinstance(value, int | float)
    ]
    return min(of_members) if of_members else _number(facts, "nic.speed_bits_per_s", "the speed")


def _number(facts: Facts, name: str, what: str) -> float:
    value = facts.values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise Unknown(f"{what} of the link is not known")
    return float(value)


def _bus(facts: Facts) -> float | None:
    """Return what the card's PCI Express link carries in one direction [bit/s]; None where it is not known."""
    lanes, transfers = facts.values.get("nic.pci_lanes"), facts.values.get("nic.pci_speed_gt_per_s")
    if (
        not isinstance(lanes, int | float)
        or not isinstance(transfers, int | float)
        or lanes <= 0
        or transfers <= 0
    ):
        return None
    return lanes * transfers * 1e9 * (0.8 if transfers <= 5 else 128 / 130) * _PCI_PAYLOAD


def _giga(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e9:.3g}"
