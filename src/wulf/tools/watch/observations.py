"""From a measured run and a look at the nodes to what a history keeps of them.  Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from wulf.base.profile import Severity
from wulf.base.records import PASSING_FACTS, Analysis, Audit, FactValue, LaunchResult, NodeRecord
from wulf.base.records.watched import WatchedTime
from wulf.tools.watch.environment import utc

#: What a node takes for something that no network is part of: see docs/explanation/method.md.
REFERENCE = "reference"
#: Name under which a history has what measures.
CONTROLLER = ""
#: A finding of an audit is a fact of the nodes that have it: this and its id, with the severity as its value.
FINDING = "finding."
#: How many checks whose findings would be serious an audit could not make on a node: it is there where one was made.
UNJUDGED = "audit.unjudged"
SERIOUS: tuple[Severity, ...] = ("fail", "warn")
BOOTED = "node.booted_at"
_OTHER_BOOT = timedelta(minutes=10)


def times(analysis: Analysis, results: Iterable[LaunchResult]) -> list[WatchedTime]:
    """Return what a run has measured, and the reference of each node."""
    found = [
        WatchedTime(
            op=cell.cell.op,
            size_bytes=cell.cell.size_bytes,
            nodes=cell.cell.place,
            time_s=cell.time.value,
            launches=len(cell.launches),
            disturbed=sum(point.contaminated for point in cell.launches),
        )
        for cell in analysis.cells
        # Nothing that was lost or came changed has a time that means anything.
        if cell.time.value > 0 and not cell.corrupt
    ]
    return found + _references(results)


def _references(results: Iterable[LaunchResult]) -> list[WatchedTime]:
    of_node: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for result in results:
        for reference in result.references:
            for node, medians_ns in zip(reference.place, reference.medians_ns, strict=True):
                if medians_ns:
                    disturbed = bool(result.launch.contamination)
                    of_node[node].append((statistics.median(medians_ns) * 1e-9, disturbed))
    return [
        WatchedTime(
            op=REFERENCE,
            size_bytes=0,
            nodes=(node,),
            time_s=statistics.median(time for time, _ in several),
            launches=len(several),
            disturbed=sum(disturbed for _, disturbed in several),
        )
        for node, several in sorted(of_node.items())
        if statistics.median(time for time, _ in several) > 0
    ]


def facts(
    records: Sequence[NodeRecord],
    audit: Audit,
    software: Mapping[str, FactValue],
    before: Mapping[str, Mapping[str, str | None]],
    at: datetime,
) -> dict[str, dict[str, str | None]]:
    """Return what is known of every node that answered, and of what measures.

    Parameters
    ----------
    before
        Node → what was known of it. What a node did not say now is taken to be as it was.
    """
    found: dict[str, dict[str, str | None]] = {}
    for record in records:
        if not record.reachable:
            continue
        last = before.get(record.node, {})
        known: dict[str, str | None] = {
            name: text(value)
            for name, value in record.facts.items()
            if name.partition("@")[0] not in PASSING_FACTS
        }
        known |= {name: last[name] for name in record.unknown if last.get(name) is not None}
        known |= _booted(record, last, at)
        known[UNJUDGED] = "0"
        found[record.node] = known
    for finding in audit.findings:
        for node in finding.nodes:
            if node in found:
                found[node][FINDING + finding.id] = finding.severity
    _add_unjudged(found, audit, before)
    found[CONTROLLER] = {name: text(value) for name, value in software.items()}
    return found


def _add_unjudged(
    found: Mapping[str, dict[str, str | None]], audit: Audit, before: Mapping[str, Mapping[str, str | None]]
) -> None:
    """Count what could not be judged of each node; a finding of before that cannot be looked for now is still one."""
    for judgement in audit.judgements:
        name = FINDING + judgement.id
        for node in judgement.nodes if judgement.status == "unknown" else ():
            if node not in found:
                continue
            last = before.get(node, {}).get(name)
            if last is not None:
                found[node].setdefault(name, last)
            if judgement.severity in SERIOUS:
                found[node][UNJUDGED] = str(int(found[node][UNJUDGED] or 0) + 1)


def _booted(record: NodeRecord, last: Mapping[str, str | None], at: datetime) -> dict[str, str | None]:
    """Return when a node was booted; as it was said before where that is the same boot."""
    up_s = record.facts.get("node.up_s")
    if not isinstance(up_s, int | float):
        return {BOOTED: last[BOOTED]} if BOOTED in last else {}
    booted = at - timedelta(seconds=float(up_s))
    said = last.get(BOOTED)
    if said is not None and abs(datetime.fromisoformat(said) - booted) < _OTHER_BOOT:
        return {BOOTED: said}
    return {BOOTED: utc(booted)}


def text(value: FactValue) -> str:
    """Return a fact as a history has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
