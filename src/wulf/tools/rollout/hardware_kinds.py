"""Which nodes are of equal hardware.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wulf.base import catalogue
from wulf.base.records import OWN_FACTS, PASSING_FACTS, NodeRecord
from wulf.tools.rollout.record import Hardware

#: Rules whose facts say what a node is made of.
_RULES = ("same.hardware", "same.driver")
#: Link that was negotiated: a setting that helps at one speed may harm at another.
_LINK = ("nic.speed_bits_per_s", "nic.duplex")
UNKNOWN = "unknown"
#: Nodes of which something may be said to be in common.
FEWEST = 2


def facts() -> list[str]:
    """Return the names of the facts by which nodes are told apart."""
    rules = catalogue.consistencies()
    return [*dict.fromkeys(name for rule in _RULES for name in rules[rule].facts), *_LINK]


def hardware(records: Sequence[NodeRecord], tested: Collection[str], *, others: bool) -> list[Hardware]:
    """Return the kinds of nodes, those with most nodes first.

    A fact that is not known of a node, unlike others, makes it one of another kind.

    Parameters
    ----------
    tested
        What tested nodes are made of, as `made_of` says it; empty where no test is known: the most common kind counts
        as tested then, its canaries are the test.
    others
        Whether the change is also tried on other hardware.
    """
    groups: dict[str, list[NodeRecord]] = {}
    for record in records:
        groups.setdefault(made_of(record), []).append(record)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    known = set(tested) or {made for made, _ in ordered[:1]}
    differing = [name for name in facts() if len({_value(some[0], name) for some in groups.values()}) > 1]
    return [
        Hardware(
            name=chr(ord("A") + number) if number < 26 else f"kind {number + 1}",
            nodes=[record.node for record in some],
            facts={name: _value(some[0], name) for name in differing},
            tried=others or made in known,
        )
        for number, (made, some) in enumerate(ordered)
    ]


def in_common(
    records: Sequence[NodeRecord], harmed: Collection[str], kept: Collection[str]
) -> dict[str, str]:
    """Return fact → value of what all harmed nodes have and no node that kept the change has.

    Nothing where one of the two is a single node: that has many facts of its own.
    """
    bad = [record.facts for record in records if record.node in harmed]
    good = [record.facts for record in records if record.node in kept]
    if min(len(bad), len(good)) < FEWEST:
        return {}
    names = bad[0].keys() - OWN_FACTS - PASSING_FACTS
    return {
        name: str(bad[0][name])
        for name in sorted(names)
        if all(name in facts and facts[name] == bad[0][name] for facts in bad)
        and all(name in facts and facts[name] != bad[0][name] for facts in good)
    }


def made_of(record: NodeRecord) -> str:
    """Return what a node is made of, as one text."""
    return "\n".join(f"{name}={_value(record, name)}" for name in facts())


def _value(record: NodeRecord, name: str) -> str:
    if name in record.facts:
        return str(record.facts[name])
    if name in record.absent or name in record.unsupported:
        return "none"
    # Unknown for one reason on two nodes counts as alike: else what only root may read would make all nodes strangers.
    return f"{UNKNOWN}: {record.unknown.get(name, '')}"
