"""What the cluster's interface is made of: bonds, VLANs, bridges, macvlans and stacks of them. Pure.

What is true of a network card (speed, duplex, interrupts, Energy Efficient Ethernet …) is true of the *members* of
such an interface: the ones at the bottom. Each fact of a member is called as that of the interface, with the member's
name behind it: ``nic.duplex@eno2``.

Sources: kernel documentation, networking/bonding.rst and ABI/testing/sysfs-class-net (lower_*, bonding, brport);
``print_linktype`` of iproute2's ip/ipaddress.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from wulf.base.catalogue import Knob, of_device
from wulf.base.output_values import Absent, Unknown, Unsupported, shown
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import knobs, nic

#: Modes in which a hash of each flow's addresses chooses the member that sends it.
_HASHED = ("balance-xor", "802.3ad", "balance-tlb")
#: What drivers call themselves where ip does not say what an interface is.
_DRIVERS = {"bonding": "bond", "802.1Q VLAN Support": "vlan", "team": "team"}
_NO_PARTNER = "00:00:00:00:00:00"
#: State of a port of a bridge that hands frames on (BR_STATE_FORWARDING).
_FORWARDING = "3"
#: Facts of the interface itself, whatever it is made of.
_OWN = ("name", "addresses", "peer", "subnet", "mtu_bytes", "state")
#: Of these the interface has its own: a bond's speed is the sum, a bridge has a queueing discipline beside its ports'.
_OWN_TOO = (*_OWN, "speed_bits_per_s", "duplex", "carrier_changes", "qdisc")


def add(facts: Facts, capture: NodeCapture, catalogue: Sequence[Knob]) -> None:
    """Collect what the interface is made of, and the facts of its members; to be called after all others of it."""
    for name, read in _FACTS.items():
        facts.read(f"nic.{name}", lambda read=read: read(capture))  # type: ignore[misc]
    below = members(capture)
    for member in below:
        _add_member(facts, capture, member, catalogue)
    if below:
        names = [f"nic.{name}" for name in nic.FACTS if name not in _OWN_TOO]
        for name in (*names, *(knob.id for knob in catalogue if of_device(knob))):
            _merge(facts, name, below)


def _add_member(facts: Facts, capture: NodeCapture, member: str, catalogue: Sequence[Knob]) -> None:
    of_member = NodeCapture(capture.tree, member)
    for name, read in nic.FACTS.items():
        if name not in _OWN:
            facts.read(f"nic.{name}@{member}", lambda read=read: read(of_member))  # type: ignore[misc]
    for knob in catalogue:
        if of_device(knob):
            facts.read(f"{knob.id}@{member}", lambda knob=knob: knobs.value(of_member, knob))  # type: ignore[misc]
    facts.put(f"nic.name@{member}", member)
    facts.put(f"nic.part@{member}", _part(capture, member))


def _merge(facts: Facts, name: str, below: Sequence[str]) -> None:
    """Give the interface what all its members have; where they differ it has no one value."""
    values = {member: facts.values.get(f"{name}@{member}") for member in below}
    for place in (facts.values, facts.unknown, facts.absent, facts.unsupported):
        place.pop(name, None)
    if len(set(values.values())) > 1:
        said = ", ".join(f"{member} {value}" for member, value in values.items())
        facts.lack(name, Absent(f"its members differ: {shown(said, 150)}"))
        return
    first = f"{name}@{below[0]}"
    if first in facts.values:
        facts.put(name, facts.values[first])
    for reason, place in ((Unknown, facts.unknown), (Absent, facts.absent), (Unsupported, facts.unsupported)):
        if first in place:
            facts.lack(name, reason(place[first]))


def members(capture: NodeCapture) -> list[str]:
    """Return the interfaces at the bottom of the cluster's, which carry its traffic; none where it is a device."""
    try:
        top = capture.nic()
    except Unknown:
        return []
    return [name for name in stack(capture)[1:] if not _lower(capture, name) and name != top]


def stack(capture: NodeCapture) -> list[str]:
    """Return the cluster's interface and all that it is made of, from the top down."""
    found: list[str] = []
    waiting = [capture.nic()]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting += _lower(capture, name)
    return found


def _lower(capture: NodeCapture, name: str) -> list[str]:
    """Return what an interface is made of; of a bridge's ports those that lead to a device."""
    link = capture.links.get(name)
    below = [one for one in link.lower if one in capture.links] if link is not None else []
    if below and kind(capture, name) == "bridge":
        return [one for one in below if capture.links[one].device or capture.links[one].lower]
    return below


def kind(capture: NodeCapture, name: str) -> str:
    """Return what an interface is: ``device``, ``bond``, ``vlan``, ``bridge``, ``macvlan`` … or ``virtual``."""
    return _described(capture, name)[0]


def _described(capture: NodeCapture, name: str) -> tuple[str, str]:
    """Return (kind, what ip says of it)."""
    link = capture.links.get(name)
    if link is not None and link.device:
        return "device", ""
    try:
        text = capture.tree.text(f"kind.{name}")
    except Unknown:
        text = ""
    found = re.search(r"\\\s+(?!altname|alias)([a-z0-9]+) (.*)", text)
    if found:
        return found[1], found[2]
    if f"/sys/class/net/{name}/bonding/mode" in capture.tree:
        return "bond", ""
    return _DRIVERS.get((link.driver if link else None) or "", "virtual"), ""


def _kind(capture: NodeCapture) -> FactValue:
    return kind(capture, capture.nic())


def _stack(capture: NodeCapture) -> FactValue:
    """Return the layers in words: ``bond0.7 (vlan 7) on bond0 (bond, 802.3ad) on eno1, eno2``."""
    names = stack(capture)
    if len(names) == 1:
        raise Absent("it is made of nothing else")
    level, said = [names[0]], []
    done: set[str] = set()
    while level:
        done.update(level)
        said.append(", ".join(_words(capture, name) for name in level))
        following = dict.fromkeys(below for name in level for below in _lower(capture, name))
        level = [name for name in following if name not in done]
    return shown(" on ".join(said), 400)


def _words(capture: NodeCapture, name: str) -> str:
    what, text = _described(capture, name)
    if what == "device":
        return name
    more = {
        "vlan": re.search(r"\bid( \d+)", text),
        "macvlan": re.search(r"\bmode( \S+)", text),
        "ipvlan": re.search(r"\bmode( \S+)", text),
    }.get(what)
    mode = f", {_mode(capture, name)}" if what == "bond" and _has_mode(capture, name) else ""
    return f"{name} ({what}{more[1] if more else mode})"


def _has_mode(capture: NodeCapture, bond: str) -> bool:
    try:
        _mode(capture, bond)
    except Unknown:
        return False
    return True


def _mode(capture: NodeCapture, bond: str) -> str:
    return _bond_file(capture, bond, "mode")


def _bond_file(capture: NodeCapture, bond: str, name: str) -> str:
    """Return the first word of a file of the bond, which has the mode's number behind it."""
    try:
        return capture.tree.text(f"/sys/class/net/{bond}/bonding/{name}").split()[0]
    except IndexError:
        raise Absent(f"{shown(bond, 40)} has none") from None
    except Unknown:
        found = (
            re.search(rf"\b{_IN_IP[name]} (\S+)", _described(capture, bond)[1]) if name in _IN_IP else None
        )
        if found is None:
            raise
        return found[1]


#: What ip calls these files.
_IN_IP = {"mode": "mode", "xmit_hash_policy": "xmit_hash_policy", "active_slave": "active_slave"}


def _bond(capture: NodeCapture) -> str:
    """Return the bond in the stack: the uppermost."""
    found = next((name for name in stack(capture) if kind(capture, name) == "bond"), None)
    if found is None:
        raise Absent("there is no bond in it")
    return found


def _hash(capture: NodeCapture) -> FactValue:
    """Return by what a bond chooses the member for a flow."""
    bond = _bond(capture)
    if _mode(capture, bond) not in _HASHED:
        raise Absent(f"a bond of mode {_mode(capture, bond)} does not hash flows")
    return _bond_file(capture, bond, "xmit_hash_policy")


def _active(capture: NodeCapture) -> FactValue:
    """Return the member that carries all traffic, of a bond with a standby."""
    bond = _bond(capture)
    if _mode(capture, bond) != "active-backup":
        raise Absent("all members carry traffic")
    return _bond_file(capture, bond, "active_slave")


def _partner(capture: NodeCapture) -> FactValue:
    """Return the LACP partner: the switch's address; ``none`` where it does not speak LACP."""
    bond = _bond(capture)
    if _mode(capture, bond) != "802.3ad":
        raise Absent("the bond does not speak LACP")
    partner = _bond_file(capture, bond, "ad_partner_mac").lower()
    return "none" if partner == _NO_PARTNER else partner


def _members(capture: NodeCapture) -> FactValue:
    """Return each member with its state, speed and duplex."""
    found = members(capture)
    if not found:
        raise Absent("it is made of nothing else")
    return shown("; ".join(_member(capture, name) for name in found), 1000)


def _member(capture: NodeCapture, name: str) -> str:
    return f"{name} {' '.join(_properties(NodeCapture(capture.tree, name)))}"


def _properties(member: NodeCapture) -> Iterator[str]:
    for read in (nic.FACTS["state"], _speed_words, nic.FACTS["duplex"]):
        try:
            yield str(read(member))
        except Unknown:
            yield "?"


def _speed_words(member: NodeCapture) -> str:
    speed = nic.FACTS["speed_bits_per_s"](member)
    return f"{int(str(speed)) // 1_000_000} Mbit/s"


def _members_out(capture: NodeCapture) -> FactValue:
    """Return the members that carry nothing although they should, and why; ``none`` where all are well."""
    found = members(capture)
    if not found:
        raise Absent("it is made of nothing else")
    said = [f"{name} {why}" for name in found if (why := _out(capture, name))]
    return shown("; ".join(said), 1000) or "none"


def _out(capture: NodeCapture, name: str) -> str:
    place = f"/sys/class/net/{name}"

    def has(file: str) -> str:
        try:
            return capture.tree.text(f"{place}/{file}")
        except Unknown:
            return ""

    state = has("operstate")
    if state not in ("up", "unknown", ""):
        return f"is {state}"
    if has("bonding_slave/mii_status") not in ("up", ""):
        return f"has the state {has('bonding_slave/mii_status')} in its bond"
    if has("brport/state") not in (_FORWARDING, ""):
        return "does not forward in its bridge"
    return _out_of_aggregator(capture, name, has("bonding_slave/ad_aggregator_id"))


def _out_of_aggregator(capture: NodeCapture, name: str, aggregator: str) -> str:
    link = capture.links.get(name)
    if not aggregator or link is None or link.master is None:
        return ""
    try:
        chosen = _bond_file(capture, link.master, "ad_aggregator")
    except Unknown:
        return ""
    return (
        "" if chosen == aggregator else f"is in the LACP aggregator {aggregator}, not in the active {chosen}"
    )


def _members_differ(capture: NodeCapture) -> FactValue:
    """Return in what the members are unequal: speed, duplex, driver; ``none`` where they are not."""
    found = members(capture)
    if len(found) < 2:
        raise Absent("it does not have several members")
    said = []
    for name in ("speed_bits_per_s", "duplex", "driver"):
        values = {}
        for member in found:
            try:
                read = _speed_words if name.startswith("speed") else nic.FACTS[name]
                values[member] = str(read(NodeCapture(capture.tree, member)))
            except Unknown:
                continue  # what one does not tell is no difference; its own fact says why
        if len(set(values.values())) > 1:
            said.append(", ".join(f"{member} {value}" for member, value in values.items()))
    return shown("; ".join(said), 1000) or "none"


def _part(capture: NodeCapture, member: str) -> str:
    """Return what a member is, for messages: ``eno2 (member of bond0)``."""
    try:
        standby = _active(capture) != member
    except Unknown:
        standby = False
    return f"{member} ({'standby' if standby else 'member'} of {capture.nic()})"


_FACTS: dict[str, Callable[[NodeCapture], FactValue]] = {
    "kind": _kind,
    "stack": _stack,
    "members": _members,
    "members_out": _members_out,
    "members_differ": _members_differ,
    "bond_mode": lambda capture: _mode(capture, _bond(capture)),
    "bond_hash": _hash,
    "bond_active": _active,
    "bond_partner": _partner,
}
