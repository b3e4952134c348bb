"""What should be the same on all nodes, and where it is not. Pure.

The largest group of nodes that agree is the reference; the others are shown against it. Being unknown, absent
or unsupported is a state that nodes agree on or not, like a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from wulf.base.catalogue import Consistency, accepts
from wulf.base.checks.members import of_member
from wulf.base.predicate import State, state
from wulf.base.records import OWN_FACTS, PASSING_FACTS, FactValue, Finding, GroupState, NodeRecord
from wulf.base.text import in_command
from wulf.base.units import format_fact

#: Why wulf does not mend a finding.
UNSETTABLE = "no setting that wulf can undo decides it"
DEPENDS = "what is right depends on what the cluster is for"
#: So many facts are named in one finding.
_NAMED = 6


def consistency_findings(
    nodes: Sequence[NodeRecord],
    rules: Sequence[Consistency],
    commands: Mapping[str, str],
    settable: Mapping[str, str],
    *,
    silent: int = 0,
) -> tuple[list[Finding], list[GroupState]]:
    """Compare the nodes.

    Parameters
    ----------
    commands
        Fact → the command that sets it now, with ``{value}`` in it.
    settable
        Knob that can be set on a running node → value that is recommended, as `wulf.base.catalogue.accepts` takes it;
        empty where none is.
    silent
        How many nodes did not answer: they may have any value, so they count against a majority.

    Returns
    -------
    findings
        One for each rule and each set of nodes that differ in the same way.
    matrix
        For each group of facts (the first word of their names), which nodes are like the others.
    """
    names = sorted(set(chain.from_iterable(_all_names(node) for node in nodes)))
    findings: list[Finding] = []
    odd: dict[str, dict[str, list[str]]] = {}
    unknown: dict[str, dict[str, list[str]]] = {}
    for name in names:
        for node in nodes:
            if name in node.unknown:
                unknown.setdefault(name.partition(".")[0], {}).setdefault(node.node, []).append(name)
    taken: set[str] = set()
    for rule in rules:
        mine = [name for name in _matching(rule, names) if name not in taken]
        taken.update(mine)
        for members, facts in _odd_groups(rule, nodes, mine, silent).items():
            findings += _findings(rule, list(members), facts, commands, settable)
            for fact in facts:
                for member in members:
                    odd.setdefault(fact.name.partition(".")[0], {}).setdefault(member, []).append(fact.name)
    groups = sorted({name.partition(".")[0] for name in names})
    return findings, _matrix([node.node for node in nodes], groups, odd, unknown)


def _all_names(node: NodeRecord) -> Iterable[str]:
    """Return the names of a node's facts; those of its interface's members are compared by what they have in common."""
    every = chain(node.facts, node.unknown, node.absent, node.unsupported)
    return (name for name in every if not of_member(name))


def _matching(rule: Consistency, names: Sequence[str]) -> list[str]:
    wanted, but = _pattern(rule.facts), _pattern(rule.but)
    alone = OWN_FACTS | PASSING_FACTS
    return [
        name for name in names if name not in alone and wanted.fullmatch(name) and not but.fullmatch(name)
    ]


def _pattern(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns) or r"(?!)"
    )


class _Odd(NamedTuple):
    """A fact that differs on some nodes."""

    name: str
    there: State
    reference: State
    #: Whether more nodes have the reference than this.
    majority: bool
    #: Whether more than half of all nodes have the reference.
    most: bool


def _odd_groups(
    rule: Consistency, nodes: Sequence[NodeRecord], names: Sequence[str], silent: int
) -> dict[tuple[str, ...], list[_Odd]]:
    """Set of nodes → (fact, its state there, the reference) of the facts in which they differ."""
    found: dict[tuple[str, ...], list[_Odd]] = {}
    interfaces = _interfaces(nodes)
    for name in names:
        members: dict[State, list[str]] = {}
        words: dict[str, State] = {}
        for node in nodes:
            found_state = _without_name(state(node, name), interfaces.get(node.node, ""))
            # What is not known is a gap, not a difference; so is a whole group that the node did not tell.
            if found_state[0] == "unknown" or (found_state == ("absent", None) and _untold(node, name)):
                continue
            if found_state[0] != "value":
                # Why it is unknown may be said in other words there; that it is unknown is what counts.
                found_state = words.setdefault(found_state[0], found_state)
            members.setdefault(found_state, []).append(node.node)
        if len(members) < 2:
            continue
        reference = _reference(rule, members)
        for value, group in members.items():
            if value != reference and not _close(value, reference, rule.tolerance):
                majority = rule.newest or len(members[reference]) > len(group)
                most = 2 * len(members[reference]) > len(nodes) + silent
                found.setdefault(tuple(group), []).append(_Odd(name, value, reference, majority, most))
    return found


def _interfaces(nodes: Sequence[NodeRecord]) -> dict[str, str]:
    """Node → name of the cluster's interface; nothing where it is the same on all."""
    names = {node.node: str(node.facts["nic.name"]) for node in nodes if "nic.name" in node.facts}
    return names if len(set(names.values())) > 1 else {}


def _without_name(found: State, interface: str) -> State:
    """Return a state that says 'its interface' instead of the name that the interface has on this node."""
    kind, value = found
    if not interface or kind != "value" or not isinstance(value, str):
        return found
    return kind, re.sub(rf"(?<![\w.-]){re.escape(interface)}(?![\w.-])", "its interface", value)


def _untold(node: NodeRecord, name: str) -> bool:
    group = name.partition(".")[0] + "."
    return not any(other.startswith(group) for other in chain(node.facts, node.absent, node.unsupported))


def _reference(rule: Consistency, members: dict[State, list[str]]) -> State:
    """Return the state of the most nodes; of equally many, a known one, then the one named first."""
    if rule.newest:
        versions = [value for value in members if value[0] == "value"]
        if versions:
            return max(versions, key=lambda value: _version(value[1]))
    sizes = Counter({value: len(group) for value, group in members.items()})
    return max(sizes, key=lambda value: (sizes[value], value[0] == "value"))


def _version(value: FactValue) -> list[tuple[int, int, str]]:
    """Sort 5.15.2 before 5.15.10, and words before numbers."""
    pieces = re.findall(r"\d{1,18}|[^\W\d_]+", str(value))
    return [(1, int(piece), "") if piece.isdigit() else (0, 0, piece) for piece in pieces]


def _close(value: State, reference: State, tolerance: float) -> bool:
    numbers = [other for kind, other in (value, reference) if kind == "value"]
    if tolerance == 0 or not all(isinstance(n, int | float) for n in numbers) or len(numbers) < 2:
        return False
    a, b = (float(n) for n in numbers if isinstance(n, int | float))
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def _findings(
    rule: Consistency,
    members: list[str],
    facts: list[_Odd],
    commands: Mapping[str, str],
    settable: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield what is mended for certain apart from what is not."""
    doubts = {fact.name: _doubt(rule, fact, settable) for fact in facts}
    certain = [fact for fact in facts if not doubts[fact.name]]
    settings = {fact.name: str(fact.reference[1]) for fact in certain}
    if certain:
        found = _finding(rule, members, certain, commands)
        yield msgspec.structs.replace(found, remedy="mend", settings=settings)
    rest = [fact for fact in facts if fact.name not in settings]
    if rest:
        tried = [fact.name for fact in rest if fact.name in settable]
        reasons = dict.fromkeys(doubts[name] for name in tried or [fact.name for fact in rest])
        yield msgspec.structs.replace(
            _finding(rule, members, rest, commands),
            remedy="try" if tried else "person",
            reason="; ".join(reasons),
        )


def _doubt(rule: Consistency, fact: _Odd, settable: Mapping[str, str]) -> str:
    """Return why it is not certain that these nodes should be like the others; empty when it is."""
    if fact.name not in settable:
        return UNSETTABLE
    if not rule.mend:
        return DEPENDS
    if not fact.most:
        return (
            "no majority of the nodes agrees, so it is not certain which value is right: "
            f"wulf settings set {fact.name}=VALUE makes them alike"
        )
    if {fact.there[0], fact.reference[0]} != {"value"}:
        return f"{fact.name} is not a valid value on some of the nodes"
    recommended = settable[fact.name]
    there, reference = (
        bool(recommended) and accepts(recommended, str(of[1])) for of in (fact.there, fact.reference)
    )
    return "only these nodes have the recommended value" if there and not reference else ""


def _finding(
    rule: Consistency, members: list[str], facts: list[_Odd], commands: Mapping[str, str]
) -> Finding:
    there = _folded([(fact.name, _words(fact.name, fact.there)) for fact in facts])
    elsewhere = _folded([(fact.name, _words(fact.name, fact.reference)) for fact in facts])
    wanted = "as on most nodes"
    if rule.newest:
        wanted = "the newest on the cluster"
    elif not all(fact.majority for fact in facts):
        wanted = "the same everywhere; as many other nodes have"
    return Finding(
        id=rule.id,
        kind="consistency",
        title=rule.title,
        severity=rule.severity,
        costs=list(rule.costs),
        effect=rule.effect,
        nodes=members,
        found=there,
        wanted=f"{wanted}: {elsewhere}",
        why=rule.why,
        fix="; ".join(_fixes(facts, commands)),
        keep=rule.advice,
        risk=rule.risk,
        evidence=[],
    )


def _fixes(facts: list[_Odd], commands: Mapping[str, str]) -> list[str]:
    """Return the commands that make the odd nodes like the others, where there are such commands."""
    return [
        commands[fact.name].replace("{value}", in_command(str(fact.reference[1]), "VALUE"))
        for fact in facts[:_NAMED]
        if fact.name in commands and fact.reference[0] == "value" and fact.majority
    ]


def _folded(facts: list[tuple[str, str]]) -> str:
    """Return ``a, b: unknown; c: 5``: facts with the same words together."""
    same: dict[str, list[str]] = {}
    for name, words in facts:
        same.setdefault(words, []).append(name)
    pieces = []
    for words, names in same.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        pieces.append(f"{', '.join(names[:_NAMED])}{more}: {words}")
    more = f"; and {len(pieces) - _NAMED} more" if len(pieces) > _NAMED else ""
    return "; ".join(pieces[:_NAMED]) + more


def _words(name: str, value: State) -> str:
    kind, content = value
    if kind == "value":
        return format_fact(name, content)
    return f"{kind} ({content})" if content else kind


def _matrix(
    nodes: list[str],
    groups: list[str],
    odd: dict[str, dict[str, list[str]]],
    unknown: dict[str, dict[str, list[str]]],
) -> list[GroupState]:
    rows = []
    for group in groups:
        states: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for node in nodes:
            if node in odd.get(group, {}):
                key = ("odd", tuple(odd[group][node]))
            elif node in unknown.get(group, {}):
                key = ("unknown", tuple(unknown[group][node]))
            else:
                key = ("same", ())
            states.setdefault(key, []).append(node)
        rows += [
            GroupState(group=group, state=kind, facts=list(facts), nodes=members)  # type: ignore[arg-type]
            for (kind, facts), members in states.items()
        ]
    return rows
