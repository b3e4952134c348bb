"""Where the figures come from: launches that are suspect, facts of the nodes, versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from wulf.records import OWN_FACTS, PASSING_FACTS, FactValue, Launch, Manifest, NodeRecord
from wulf.report.parts import Column, Item, Table
from wulf.report.words import UNKNOWN, count, duration, listed, moment, name, pair_name, rest
from wulf.text import printable
from wulf.units import fact_label, format_fact

#: Characters of a fact or a reason that are printed.
TEXT_LIMIT = 200
#: Launches that are printed one by one; the rest is counted.
ROWS = 200


#: Groups of facts by the hundred: shown only where nodes differ. All are in the JSON.
_MANY = ("sysctl.", "service.")


def launches_table(launches: Sequence[Launch]) -> Table:
    """List launches that failed or ran beside foreign load."""
    suspect = [launch for launch in launches if launch.status == "failed" or launch.contamination]
    return Table(
        title="Failed and contaminated launches",
        columns=(
            Column("launch", numeric=True),
            Column("operation"),
            Column("pair"),
            Column("started", narrow=False),
            Column("what"),
            Column("why"),
        ),
        rows=tuple(_launch_row(launch) for launch in suspect[:ROWS]),
        note="Contaminated launches are kept and marked; nothing is dropped. "
        f"{rest(len(suspect), ROWS, 'launches')}".rstrip(),
        empty="no launch failed and none ran beside foreign load" if launches else "there was no launch",
    )


def _launch_row(launch: Launch) -> tuple[Item, ...]:
    failed = launch.status == "failed"
    reasons = [launch.error or UNKNOWN] if failed else launch.contamination
    return (
        Item(str(launch.index), launch.index),
        Item(name(launch.op)),
        Item(pair_name(launch.pair)),
        Item(moment(launch.started_at), launch.started_at),
        Item("failed", "failed", "error") if failed else Item("contaminated", "contaminated", "warning"),
        Item("; ".join(printable(reason, TEXT_LIMIT) for reason in reasons)),
    )


def facts_table(nodes: Sequence[NodeRecord]) -> Table:
    """One row per fact and value; nodes that agree share a row."""
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        for fact, value in node.facts.items():
            if value is not None:
                values[fact][_value(fact, value)].append(name(node.node))
    expected = OWN_FACTS | PASSING_FACTS
    odd = {fact for fact, by_value in values.items() if len(by_value) > 1 and fact not in expected}
    known = [
        (fact, shown, who)
        for fact, by_value in values.items()
        if fact in odd or not fact.startswith(_MANY)
        for shown, who in by_value.items()
    ]
    reachable = sum(node.reachable for node in nodes)
    return Table(
        title="Facts of the nodes",
        columns=(Column("fact"), Column("value"), Column("nodes")),
        rows=tuple(
            (
                Item(_label(fact)),
                Item(shown, shown, "warning" if fact in odd else ""),
                Item(_who(who, reachable)),
            )
            for fact, shown, who in known
        ),
        note=" ".join(_notes(bool(odd), hidden=len(known) < sum(map(len, values.values())))),
        empty="no node was asked for its facts" if not nodes else "no fact is known",
    )


def _notes(odd: bool, *, hidden: bool) -> list[str]:
    notes = ["Facts that differ between nodes are marked."] if odd else []
    if hidden:
        notes.append("Of the kernel's parameters and the services, only those that differ are shown.")
    return notes


def _who(names: list[str], total: int) -> str:
    return f"all {count(total, 'node')}" if len(names) == total and total > 1 else listed(names)


def _label(fact: str) -> str:
    return name(fact_label(fact).replace("_", " ").replace(".", " ", 1))


def _value(fact: str, value: FactValue) -> str:
    return printable(format_fact(fact, value), TEXT_LIMIT)


def unknown_table(nodes: Sequence[NodeRecord], manifest: Manifest) -> Table:
    """List what could not be found out, and why; it is never shown as zero."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        if not node.reachable:
            groups["everything", printable(node.error or "the node was not reached", TEXT_LIMIT)].append(
                name(node.node)
            )
        reasons = {fact: "no reason recorded" for fact, value in node.facts.items() if value is None}
        for fact, reason in (reasons | node.unknown).items():
            groups[name(fact), printable(reason, TEXT_LIMIT)].append(name(node.node))
    for key, value in manifest.software.items():
        if value is None:
            groups[name(key), "not found on the controller"].append("controller")
    total = len(nodes)
    return Table(
        title="Unknown",
        columns=(Column("fact"), Column("unknown because"), Column("nodes")),
        rows=tuple(
            (Item(fact), Item(f"{UNKNOWN}: {reason}", None, "unknown"), Item(_who(who, total)))
            for (fact, reason), who in groups.items()
        ),
        empty="no node was asked for its facts" if not nodes else "nothing that was asked for is unknown",
    )


def provenance_table(manifest: Manifest, launches: Sequence[Launch]) -> Table:
    """Versions, seed, times: what is needed to repeat the run."""
    plan = manifest.plan
    rows = [
        ("run", name(manifest.id)),
        ("status", manifest.status + (f": {printable(manifest.message, 300)}" if manifest.message else "")),
        ("measured", f"{moment(manifest.created_at)} to {moment(manifest.updated_at)}"),
        *(("resumed", moment(time)) for time in manifest.resumed_at),
        ("wulf", name(manifest.wulf_version)),
        *_probe_rows(launches),
        *((_label(key), _value(key, value)) for key, value in manifest.software.items() if value is not None),
        ("ladder", f"{name(plan.ladder)}, {count(len(plan.sizes_bytes), 'size')} to begin with"),
        ("seed", str(plan.seed)),
        (
            "budget",
            f"{duration(plan.budget_s)}, {plan.min_launches} to {plan.max_launches} launches per cell",
        ),
        ("schema", str(manifest.schema_version)),
    ]
    return Table(
        title="Provenance",
        columns=(Column("what"), Column("value")),
        rows=tuple((Item(key), Item(value)) for key, value in rows),
    )


def _probe_rows(launches: Sequence[Launch]) -> list[tuple[str, str]]:
    probes = [launch.probe for launch in launches if launch.probe is not None]
    found = {
        "probe": sorted({name(probe.version) for probe in probes}),
        "MPI library": sorted({name(probe.mpi) for probe in probes if probe.mpi}),
        "clock": sorted({clock_text(launch) for launch in launches if launch.probe}),
    }
    return [(key, listed(values)) for key, values in found.items() if values]


def clock_text(launch: Launch) -> str:
    """Return the probe's clock with its resolution and the cost of one reading, in whole nanoseconds."""
    assert launch.probe is not None
    clock = launch.probe.clock
    return (
        f"{name(clock.source)} (resolution {clock.resolution_ns:.0f} ns, one reading {clock.cost_ns:.0f} ns)"
    )
