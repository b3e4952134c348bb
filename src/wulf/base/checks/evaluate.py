"""Facts of all nodes × the catalogue → findings. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from wulf.base import catalogue
from wulf.base.catalogue import (
    Check,
    Consistency,
    Cost,
    Knob,
    file_of,
    fits,
    is_own,
    preferred,
    shown,
    unsettable,
)
from wulf.base.checks.consistency import DEPENDS, UNSETTABLE, consistency_findings
from wulf.base.checks.members import PART, Members, members
from wulf.base.errors import ConfigError
from wulf.base.predicate import DRIVER, Gap, Predicate, State, look_up, state
from wulf.base.profile import SEVERITIES, Profile, Severity
from wulf.base.records import PASSING_FACTS, Audit, Finding, Judgement, NodeRecord, Remedy
from wulf.base.text import in_command, interface_in_command, nearest
from wulf.base.units import format_fact

_FIELD = re.compile(r"\{([A-Za-z0-9_.@-]+)\}")
#: Facts of which a command may have the name: that, too, comes from the node.
_SYSCTL = re.compile(r"sysctl\.[A-Za-z0-9_][A-Za-z0-9_./-]{0,200}")
#: Who sets a finding right that wulf does not mend → why.
_REASONS: Mapping[Remedy, str] = {"mend": "", "try": DEPENDS, "person": UNSETTABLE}
#: A recommendation is worth a try, no more: only measuring tells what it is worth on this cluster.
_RECOMMENDED: Severity = "info"
_LAYER_COSTS: Mapping[str, list[Cost]] = {
    "cpu_power": ["latency"],
    "irq": ["latency"],
    "nic": ["latency", "bandwidth"],
    "kernel_net": ["latency", "bandwidth"],
    "services": ["latency"],
    "mpi": ["latency", "bandwidth"],
    "application": ["bandwidth"],
}

_OutcomeOf = Callable[[NodeRecord], "_Outcome"]
_Key = tuple[str, str, str, str]

#: Facts that say what a link should reach.
EXPECTED = ("expected.bandwidth", "expected.latency")


class Rule(msgspec.Struct, frozen=True):
    """A check with its predicates compiled: ready for thousands of nodes."""

    check: Check
    when: Predicate | None
    holds: Predicate

    @property
    def names(self) -> list[str]:
        """Facts on which its outcome and its words depend."""
        check = self.check
        texts = " ".join((check.found, check.wanted, check.fix, check.keep))
        names = set(_FIELD.findall(texts)) - {"interface"} | self.holds.names | {"nic.name"}
        if any(_has_modes(name) for name in names):
            names.add(DRIVER)
        return sorted(names | (self.when.names if self.when else set()))


def compile_checks(checks: Iterable[Check]) -> list[Rule]:
    """Compile all checks.

    Raises
    ------
    ConfigError
        A predicate of the catalogue is malformed; names its file.
    """
    rules = []
    for check in checks:
        source = file_of("checks", check.id)
        when = Predicate(check.when, f"{source}: when") if check.when else None
        rules.append(Rule(check, when, Predicate(check.holds, f"{source}: holds")))
    return rules


def compile_when(knob: Knob) -> Predicate | None:
    """Compile where a knob's recommendation makes sense; None for everywhere; raises as `compile_checks`."""
    return Predicate(knob.when, f"{file_of('knobs', knob.id)}: when") if knob.when else None


def evaluate(
    nodes: Sequence[NodeRecord],
    checks: Iterable[Check],
    knobs: Iterable[Knob],
    rules: Iterable[Consistency],
    profile: Profile,
) -> Audit:
    """Judge all nodes.

    Parameters
    ----------
    profile
        What the cluster is to be good at; checks and recommendations depend on it.

    Raises
    ------
    ConfigError
        As `compile_checks`, whatever the profile.
    """
    seen = [node for node in nodes if _answered(node)]
    lost = {node.node: node.error or "does not answer" for node in nodes if not _answered(node)}
    judgements: list[Judgement] = []
    knobs = list(knobs)
    settable = {knob.id: knob.recommend.get(profile, "") for knob in knobs if not unsettable(knob)}
    compiled = compile_checks(checks)
    _require_facts(compiled, seen, knobs)
    wanted = [rule for rule in compiled if profile in rule.check.profiles]
    made_of = {node.node: found for node in seen if (found := members(node)) is not None}
    findings, said = _by_checks(wanted, seen, made_of, settable, judgements)
    findings += _by_recommendations(knobs, profile, seen, made_of, said, judgements)
    # What a check calls wrong is not made so elsewhere because most nodes have it.
    recommended = settable | {name: value for found in findings for name, value in found.settings.items()}
    odd, matrix = consistency_findings(
        seen, list(rules), _commands(knobs, seen), recommended, silent=len(lost)
    )
    findings += odd
    return Audit(
        profile=profile,
        nodes=[node.node for node in nodes],
        unreachable=lost,
        findings=sorted(findings, key=_order),
        judgements=judgements,
        matrix=matrix,
        expected=_expected(seen),
    )


def _expected(nodes: Sequence[NodeRecord]) -> dict[str, list[str]]:
    """Return what links should reach → nodes; of a node of which it is not known nothing."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        words = [str(node.facts[name]) for name in EXPECTED if name in node.facts]
        if words:
            found.setdefault("; ".join(words), []).append(node.node)
    return found


def _by_checks(
    rules: Sequence[Rule],
    nodes: Sequence[NodeRecord],
    made_of: Mapping[str, Members],
    settable: Collection[str],
    judgements: list[Judgement],
) -> tuple[list[Finding], dict[str, set[str]]]:
    """Return what the checks find, and of which nodes they speak: by the facts that they are about."""
    findings: list[Finding] = []
    said: dict[str, set[str]] = {}
    for rule in rules:
        looks = _Looks(nodes, made_of, rule.names, rule.holds.names)
        about = _About(rule.check.id, rule.check.title, rule.check.severity)
        judged = _judge(about, looks, _check_outcome(rule, settable), judgements)
        found = _of_the_moment(rule.check, judged)
        findings += found
        for fact in {*rule.holds.names, *rule.check.knobs}:
            said.setdefault(fact, set()).update(node for finding in found for node in finding.nodes)
    return findings, said


def _by_recommendations(
    knobs: Sequence[Knob],
    profile: Profile,
    nodes: Sequence[NodeRecord],
    made_of: Mapping[str, Members],
    said: Mapping[str, set[str]],
    judgements: list[Judgement],
) -> Iterator[Finding]:
    """Yield where nodes are not as the catalogue recommends and no check speaks of that (`said`)."""
    applies = {knob.id: compile_when(knob) for knob in knobs}
    for knob in knobs:
        wanted = knob.recommend.get(profile)
        if wanted is None:
            continue
        when = applies[knob.id]
        facts = [
            knob.id,
            "nic.name",
            *([DRIVER] if knob.special else []),
            *(sorted(when.names) if when else []),
        ]
        looks = _Looks(nodes, made_of, facts, {knob.id})
        about = _About(knob.id, knob.title, _RECOMMENDED)
        judged = _judge(about, looks, _knob_outcome(knob, wanted, when), judgements)
        yield from _without([finding for finding, _ in judged], said.get(knob.id, set()))


def _require_facts(rules: Sequence[Rule], nodes: Sequence[NodeRecord], knobs: Iterable[Knob]) -> None:
    """Refuse a site's own check that names what no node has ever told: it would never find anything.

    Raises
    ------
    ConfigError
        Names the file and the fact.
    """
    ours = [rule for rule in rules if is_own("checks", rule.check.id)]
    if not ours or not nodes:
        return
    known = {name for rule in rules if rule not in ours for name in rule.names} | {knob.id for knob in knobs}
    for node in nodes:
        known |= {*node.facts, *node.unknown, *node.absent, *node.unsupported}
    for rule in ours:
        check, file = rule.check, file_of("checks", rule.check.id)
        for name in rule.names:
            if name not in known and not name.startswith("sysctl."):
                raise ConfigError(
                    f"{file}: there is no fact {name}{nearest(name, known)} ('wulf audit facts' shows them)"
                )
        for key, text in (("found", check.found), ("wanted", check.wanted), ("fix", check.fix)):
            if "{" in _FIELD.sub("", text):
                raise ConfigError(f"{file}: {key}: what is in braces is the name of a fact: {text}")


def _answered(node: NodeRecord) -> bool:
    return node.reachable and node.error is None


def _commands(knobs: Iterable[Knob], nodes: Sequence[NodeRecord]) -> dict[str, str]:
    """Return the command that sets a fact, for the knobs where one command with a value does."""
    interfaces = {interface_in_command(node.facts.get("nic.name")) for node in nodes}
    interface = interfaces.pop() if len(interfaces) == 1 else interface_in_command(None)
    commands = {
        name: f"sysctl -w {name.removeprefix('sysctl.')}={{value}}"
        for node in nodes[:1]
        for name in node.facts
        if _SYSCTL.fullmatch(name)
    }
    for knob in knobs:
        if "{value}" in knob.access.set and knob.access.kind not in ("mpi_parameter", "environment"):
            commands[knob.id] = knob.access.set.replace("{interface}", interface)
    return commands


class _Outcome(msgspec.Struct, frozen=True):
    """What a check says of the nodes that have the same facts."""

    status: str
    reason: str = ""
    finding: Finding | None = None


class _Looks(msgspec.Struct, frozen=True):
    """The nodes that a check is made of, each with the members of its interface where the check is about those."""

    nodes: Sequence[NodeRecord]
    made_of: Mapping[str, Members]
    #: Facts on which the outcome and its words depend.
    facts: Sequence[str]
    #: Facts that the check is about.
    about: Collection[str]

    def views(self, node: NodeRecord) -> list[NodeRecord]:
        """Return the node as each member sees it; empty where the check is not about members."""
        found = self.made_of.get(node.node)
        return found.views if found is not None and not found.facts.isdisjoint(self.about) else []


class _About(msgspec.Struct, frozen=True):
    """What is judged, and how bad a finding of it is."""

    id: str
    title: str
    severity: Severity


#: A finding, and the nodes as those see themselves of which it speaks.
_Judged = tuple[Finding, list[NodeRecord]]


def _judge(
    about: _About, looks: _Looks, outcome_of: _OutcomeOf, judgements: list[Judgement]
) -> list[_Judged]:
    """Evaluate one check on all nodes; nodes with the same facts are evaluated once."""
    known: dict[tuple[State, ...], _Outcome] = {}
    groups: dict[_Key, list[NodeRecord]] = {}
    outcomes: dict[_Key, _Outcome] = {}

    def outcome(node: NodeRecord) -> _Outcome:
        states = tuple(state(node, fact) for fact in looks.facts)
        if states not in known:
            known[states] = outcome_of(node)
        return known[states]

    for node in looks.nodes:
        own = (outcome(node), node)
        for said, speaker in _decisive(own, [(outcome(view), view) for view in looks.views(node)]):
            finding = said.finding
            key = (said.status, said.reason, finding.found if finding else "", finding.fix if finding else "")
            outcomes.setdefault(key, said)
            groups.setdefault(key, []).append(speaker)
    findings = []
    for key, speakers in groups.items():
        finding = outcomes[key].finding
        names = [speaker.node for speaker in speakers]
        if finding is not None:
            findings.append((msgspec.structs.replace(finding, nodes=names), speakers))
        judgements.append(
            Judgement(
                id=about.id,
                title=about.title,
                status=key[0],  # type: ignore[arg-type]
                reason=key[1],
                nodes=names,
                severity=about.severity,
            )
        )
    return findings


#: What is said of a node whose members are judged differently: the first of these.
_STATUSES = ("finding", "unknown", "ok", "not applicable")
_Said = tuple[_Outcome, NodeRecord]


def _decisive(own: _Said, members_said: Sequence[_Said]) -> Sequence[_Said]:
    """Return what counts of a node: what is found on its members, else on its interface, else the gravest of all."""
    found = [said for said in members_said if said[0].finding is not None]
    return found or [min((own, *members_said), key=lambda said: _STATUSES.index(said[0].status))]


def _of_the_moment(check: Check, judged: Sequence[_Judged]) -> list[Finding]:
    """Fold findings that differ in facts of the moment only: every node has another value of those at every look."""
    passing = set(_FIELD.findall(check.found)) & PASSING_FACTS
    groups: dict[tuple[str, str, str], list[_Judged]] = {}
    for one in judged:
        groups.setdefault((one[0].wanted, one[0].fix, one[0].keep), []).append(one)
    if not passing or len(groups) == len(judged):
        return [finding for finding, _ in judged]
    return [_folded(check, group, passing) for group in groups.values()]


def _folded(check: Check, judged: Sequence[_Judged], passing: set[str]) -> Finding:
    """Return one finding with the lowest and the highest value that its nodes have."""
    records = [speaker for _, speakers in judged for speaker in speakers]
    template = check.found
    for fact in passing:
        values = sorted({value for node in records if isinstance(value := node.facts.get(fact), int | float)})
        if values:
            ends = dict.fromkeys(format_fact(fact, value) for value in (values[0], values[-1]))
            template = template.replace(f"{{{fact}}}", " to ".join(ends))
    return msgspec.structs.replace(
        judged[0][0], nodes=[node.node for node in records], found=_filled(template, records[0])
    )


def _without(findings: list[Finding], nodes: set[str]) -> list[Finding]:
    left = ((finding, [node for node in finding.nodes if node not in nodes]) for finding in findings)
    return [msgspec.structs.replace(finding, nodes=names) for finding, names in left if names]


def _applies(when: Predicate | None, node: NodeRecord) -> _Outcome | None:
    """Return why a check says nothing on a node; None when it does."""
    applies = True if when is None else when(node)
    if isinstance(applies, Gap):
        return _Outcome(applies.kind, applies.reason)
    if not applies:
        return _Outcome("not applicable", "its condition is not met")
    return None


def _check_outcome(rule: Rule, settable: Collection[str]) -> _OutcomeOf:
    check = rule.check
    remedy: Remedy = (
        "mend"
        if check.mend
        else "try"
        if not {*rule.holds.names, *check.knobs}.isdisjoint(settable)
        else "person"
    )

    def outcome(node: NodeRecord) -> _Outcome:
        silent = _applies(rule.when, node)
        if silent is not None:
            return silent
        holds = rule.holds(node)
        if isinstance(holds, Gap):
            return _Outcome(holds.kind, holds.reason)
        if holds:
            return _Outcome("ok")
        return _Outcome(
            "finding",
            finding=Finding(
                id=check.id,
                kind="check",
                title=check.title,
                severity=check.severity,
                costs=list(check.costs),
                effect=check.effect,
                nodes=[],
                found=_filled(check.found, node),
                wanted=_filled(check.wanted, node),
                why=check.why,
                fix=_command(check.fix, node),
                keep=_command(check.keep, node),
                risk=check.risk,
                remedy=remedy,
                reason=_REASONS[remedy],
                settings=check.mend,
                evidence=[_cited(entry.source, entry.figure) for entry in check.evidence],
            ),
        )

    return outcome


def _knob_outcome(knob: Knob, wanted: str, when: Predicate | None) -> _OutcomeOf:
    remedy: Remedy = "person" if unsettable(knob) else "try"

    def outcome(node: NodeRecord) -> _Outcome:
        silent = _applies(when, node)
        if silent is not None:
            return silent
        value = look_up(node, knob.id)
        if isinstance(value, Gap):
            return _Outcome(value.kind, value.reason)
        driver = node.facts.get(DRIVER)
        if fits(knob, wanted, str(value), driver):
            return _Outcome("ok")
        return _Outcome(
            "finding",
            finding=Finding(
                id=knob.id,
                kind="knob",
                title=f"{knob.title}: worth trying",
                severity=_RECOMMENDED,
                costs=list(_LAYER_COSTS[knob.layer]),
                effect=knob.effect,
                nodes=[],
                found=f"{knob.id} is {shown(knob, str(value), driver)}",
                wanted=shown(knob, wanted.replace("|", " or "), driver),
                why=knob.direction + (f" {knob.measure}" if knob.measure else ""),
                fix=_command(knob.access.set.replace("{value}", preferred(wanted)), node),
                keep=_command(knob.persist.file, node),
                risk=knob.risk,
                remedy=remedy,
                reason=unsettable(knob) or DEPENDS,
                evidence=[_cited(entry.source, entry.figure) for entry in knob.evidence],
            ),
        )

    return outcome


def _has_modes(name: str) -> bool:
    knob = catalogue.knobs().get(name)
    return knob is not None and bool(knob.special)


def _filled(template: str, node: NodeRecord) -> str:
    """Fill ``{fact}`` in, for people; a fact that is not known says so."""

    def fill(field: re.Match[str]) -> str:
        kind, value = state(node, field[1])
        if field[1] == "nic.name" and PART in node.facts:
            value = node.facts[PART]
        if kind != "value":
            return f"({kind})"
        if _has_modes(field[1]):
            return shown(catalogue.knobs()[field[1]], str(value), node.facts.get(DRIVER))
        return format_fact(field[1], value)

    return _FIELD.sub(fill, template)


def _command(template: str, node: NodeRecord) -> str:
    """Fill ``{fact}`` in, for a shell: what a node says of itself is one word there, whatever it is."""

    def fill(field: re.Match[str]) -> str:
        name = "nic.name" if field[1] == "interface" else field[1]
        kind, value = state(node, name)
        if name == "nic.name":
            return interface_in_command(value if kind == "value" else None)
        unknown = name.rpartition(".")[2].upper()
        return in_command(str(value), unknown) if kind == "value" else unknown

    return _FIELD.sub(fill, template)


def _cited(source: str, figure: str) -> str:
    return f"{source}: {figure}" if figure else source


def _order(finding: Finding) -> tuple[int, float, str, list[str]]:
    return SEVERITIES.index(finding.severity), -finding.effect, finding.id, finding.nodes
