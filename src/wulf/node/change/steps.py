"""From ``nic.mtu=9000`` to the steps that a node's guard takes.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from wulf.base import access, catalogue
from wulf.base.catalogue import Knob
from wulf.base.errors import UsageError
from wulf.base.records import FactValue, NodeRecord
from wulf.base.text import printable

#: Stands for "none" in a plan, whose fields must not be empty.
NOTHING = "-"
#: What may be part of a value: nothing that a shell could expand.
#: Digits alone: what Python takes for a number besides (signs of signs, other scripts) no kernel takes.
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:;=/@+ -]{1,200}")


class KnobSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A knob and the value it shall have."""

    knob: Knob
    value: str

    def __str__(self) -> str:
        return f"{self.knob.id}={self.value}"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a guard does on a node."""

    knob: str
    #: A file of `access/`.
    kind: str
    interface: str
    target: str
    value: str

    def line(self) -> str:
        """Return it as a line of a plan."""
        return "\t".join((self.knob, self.kind, self.interface or NOTHING, self.target, self.value))


def parse(words: Sequence[str]) -> list[KnobSetting]:
    """Return what a user wants, from words such as ``nic.mtu=9000``.

    Raises
    ------
    UsageError
        A word is not of that form, names no knob, a knob twice, one that cannot be set, or a value it cannot have.
    """
    found: dict[str, KnobSetting] = {}
    for word in words:
        name, mark, value = word.partition("=")
        if not mark or not name or not value:
            raise UsageError(f"{printable(word, 100)!r} is not KNOB=VALUE, such as nic.mtu=9000")
        wanted = check(catalogue.knob(name), value.strip())
        if wanted.knob.id in found:
            raise UsageError(f"{wanted.knob.id} is given twice")
        found[wanted.knob.id] = wanted
    return list(found.values())


def check(knob: Knob, value: str) -> KnobSetting:
    """Return the wish when the knob can be set on a running node and may have the value.

    Raises
    ------
    UsageError
        Names what is wrong, and what is allowed.
    """
    refusal = catalogue.unsettable(knob)
    if refusal:
        raise UsageError(f"{knob.id} cannot be set here: {refusal}")
    if not _VALUE.fullmatch(value):
        raise UsageError(f"{knob.id}={printable(value, 60)!r}: letters, digits and _.,:;=/@+ - only")
    if value.startswith("@") or ".." in value:
        raise UsageError(f"{knob.id}={value}: a value, not a path")
    if knob.type == "int" and not (_WHOLE.fullmatch(value) or value in knob.values):
        raise UsageError(f"{knob.id}={value}: a whole number{_allowed(knob)}")
    if knob.type == "int" and knob.range and value not in knob.values:
        low, high = knob.range
        if not low <= int(value) <= high:
            raise UsageError(f"{knob.id}={value}: from {low} to {high}")
    if knob.type == "vector":
        value = _of_vector(knob, value)
    if knob.type in ("bool", "service", "enum") and knob.values and value not in knob.values:
        raise UsageError(f"{knob.id}={value}: one of {', '.join(knob.values)}")
    if knob.access.kind == "ethtool" and knob.access.target.startswith("feature."):
        value = _of_features(knob, value)
    return KnobSetting(knob=knob, value=value)


def _of_vector(knob: Knob, value: str) -> str:
    """Return its numbers with one space between them."""
    fault = catalogue.vector_fault(knob, value)
    if fault:
        raise UsageError(f"{knob.id}={value}: {fault}")
    return " ".join(str(int(word)) for word in value.split())


def _of_features(knob: Knob, value: str) -> str:
    """Return a word for each feature; one word is for all."""
    features, words = knob.access.target.split(), value.split()
    if len(words) == 1:
        words *= len(features)
    if len(words) != len(features) or not {"on", "off"}.issuperset(words):
        names = ", ".join(feature.removeprefix("feature.") for feature in features)
        raise UsageError(f"{knob.id}={value!r}: on or off, or a word for each of {names}")
    return " ".join(words)


def may_have(knob: Knob, value: str) -> bool:
    """Whether `check` accepts the value; a knob of a job is not checked, as its library does that."""
    if knob.access.kind == "environment":
        return _VALUE.fullmatch(value) is not None
    try:
        check(knob, value)
    except UsageError:
        return False
    return True


def members(record: NodeRecord) -> list[str]:
    """Return the cards that the cluster's interface is made of; none where it is one itself."""
    return [name.partition("@")[2] for name in record.facts if name.startswith("nic.part@")]


def cards(knob: Knob, record: NodeRecord, interface: str | None) -> list[str | None]:
    """Return on what a knob is set: that of cards on all that the interface is made of, any other on itself."""
    return [
        *(members(record) if catalogue.of_device(knob) else []),
        *([] if _below(knob, record) else [interface]),
    ]


def _below(knob: Knob, record: NodeRecord) -> bool:
    return catalogue.of_device(knob) and bool(members(record))


def values(knob: Knob, record: NodeRecord) -> dict[str, FactValue | None]:
    """Return what a node has of a knob, by card; the name is empty where the interface itself has it."""
    if not _below(knob, record):
        return {"": record.facts.get(knob.id)}
    return {member: record.facts.get(f"{knob.id}@{member}") for member in members(record)}


def value_words(knob: Knob, record: NodeRecord) -> str | None:
    """Return what a node has of a knob, for people: that of each card where they differ; None where it is not known."""
    found = values(knob, record)
    if len(set(map(str, found.values()))) == 1:
        value = next(iter(found.values()))
        return None if value is None else str(value)
    return ", ".join(f"{member} {'?' if value is None else value}" for member, value in found.items())


def obstacle(wanted: KnobSetting, record: NodeRecord, *, take_over: bool, relax: bool) -> str:
    """Return why the knob must not be set on this node, as its facts say; empty when it may.

    Parameters
    ----------
    take_over
        The user wants it although somebody else sets the same knob.
    relax
        The user wants less of a packet filter although the node faces the outside.
    """
    name = wanted.knob.id
    if not record.reachable or record.error:
        return (record.error or "it does not answer").removeprefix(f"{record.node}: ")
    several = members(record)
    if len(several) > 1 and wanted.knob.access.kind == "module":
        return f"{name} is given to the driver for each of its cards in order ({', '.join(several)}): set it by hand"
    for what, place in [
        (what, place) for what in ("absent", "unsupported") for place in _places(wanted.knob, record)
    ]:
        reason = getattr(record, what).get(place)
        # What belongs to a job, a route or a driver that was loaded without it is not there before it is set.
        if reason and wanted.knob.scope not in ("job", "route") and wanted.knob.access.kind != "module":
            card = place.partition("@")[2]
            return f"{name} is {what} {f'on {card}' if card else 'there'}: {reason}"
    owner = record.facts.get(f"owner.{name}")
    if owner and not take_over:
        return (
            f"{name} is held by {owner}, which would set it again: change it there "
            f"('wulf settings show {name}' says where), or take it over with --take-over"
        )
    if _relaxes(wanted) and not relax:
        return _exposure(wanted, record)
    return ""


def _places(knob: Knob, record: NodeRecord) -> list[str]:
    """Return the names of the facts that say whether a knob can be set."""
    return [f"{knob.id}@{member}" for member in members(record)] if _below(knob, record) else [knob.id]


def _relaxes(wanted: KnobSetting) -> bool:
    """Whether less is filtered after it."""
    knob = wanted.knob
    if knob.access.kind == "firewall":
        return wanted.value != "tracked"
    return knob.id in ("svc.firewalld", "svc.nftables") and wanted.value == "off"


def _exposure(wanted: KnobSetting, record: NodeRecord) -> str:
    """Return what would be open to the outside without the filter; empty when nothing is."""
    way = "give --relax-firewall-facing-outside if you want that"
    if wanted.knob.access.kind == "firewall":
        facing = record.facts.get("network.faces_outside")
        if facing is False:
            return ""
        why = record.unknown.get("network.faces_outside", "")
        known = "has the default route or a public address" if facing else f"may face the outside ({why})"
        return f"the cluster's interface {known}, so its packet filter is not relaxed: {way}"
    if "network.default_interface" in record.absent and record.facts.get("network.faces_outside") is False:
        return ""
    outside = record.facts.get("network.default_interface", "an interface that is not known")
    return (
        f"{outside} faces the outside and would be open: net.conntrack=exempt lets only the cluster's interface "
        f"pass; {way}"
    )


def fulfilled(knob_setting: KnobSetting, value: object) -> bool:
    """Whether a node that has this value needs nothing."""
    if knob_setting.knob.access.kind == "firewall" and value in ("off", "filtered"):
        # No rule tracks anything there; from rules that do not the interface can still be exempt.
        return knob_setting.value == "tracked" if value == "filtered" else knob_setting.value != "tracked"
    return same(knob_setting.value, value)


def fulfilled_on(knob_setting: KnobSetting, record: NodeRecord) -> bool:
    """Whether a node needs nothing: no card of its interface, where the knob is one of cards."""
    return all(fulfilled(knob_setting, value) for value in values(knob_setting.knob, record).values())


def has(knob: Knob, value: str, now: object) -> bool:
    """Whether a node on which the knob is now so needs nothing to have the value."""
    return fulfilled(KnobSetting(knob=knob, value=value), now)


def same(wanted: str, value: object) -> bool:
    """Whether a value read from a node is the one that was wanted."""
    words = " ".join(str(value).split())
    if wanted == words:
        return True
    # "9000" and 9000, "5" and "5ms"
    return wanted.isdigit() and words.removesuffix("ms") == wanted


def plan(
    wanted: Sequence[KnobSetting], interface: str | None, record: NodeRecord | None = None
) -> list[Step]:
    """Return the steps that fulfil all wishes on a node, in the order in which they must be taken.

    Parameters
    ----------
    record
        Says which cards `interface` is made of: what belongs to a card is set on each of them.

    Raises
    ------
    UsageError
        A knob is of an interface, and it is not known which one carries the cluster's traffic.
    """
    ranks = catalogue.ranks()
    return sorted(
        (
            _step(one, card)
            for one in wanted
            for card in (cards(one.knob, record, interface) if record is not None else [interface])
        ),
        key=lambda step: ranks[step.knob],
    )


def lacking(wanted: Sequence[KnobSetting], interface: str | None, record: NodeRecord) -> list[Step]:
    """Return the steps that a node needs, as its facts say; those of its cards that have the value need none."""
    has = {one.knob.id: values(one.knob, record) for one in wanted}
    by_id = {one.knob.id: one for one in wanted}
    return [
        step
        for step in plan(wanted, interface, record)
        if not fulfilled(by_id[step.knob], has[step.knob].get(step.interface, has[step.knob].get("")))
    ]


def _step(knob_setting: KnobSetting, interface: str | None) -> Step:
    knob = knob_setting.knob
    needs = access.kinds()[knob.access.kind].scope == "interface" or "{interface}" in knob.access.target
    if needs and interface is None:
        raise UsageError(
            f"{knob.id} belongs to an interface: say which one carries the cluster's traffic "
            "([cluster] interface in cluster.toml)"
        )
    return Step(
        knob=knob.id,
        kind=knob.access.kind,
        interface=interface or NOTHING,
        target=knob.access.target.replace("{interface}", interface or NOTHING),
        value=knob_setting.value,
    )


def _allowed(knob: Knob) -> str:
    low_high = f" from {knob.range[0]} to {knob.range[1]}" if knob.range else ""
    words = [value for value in knob.values if not value.lstrip("-").isdigit()]
    return low_high + (f", or {', '.join(words)}" if words else "")
