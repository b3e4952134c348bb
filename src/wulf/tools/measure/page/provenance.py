"""Where the figures come from: launches that are suspect, facts of the nodes, versions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from wulf.base.nodeset import fold_reasons, impersonal
from wulf.base.records import OWN_FACTS, PASSING_FACTS, FactValue, Launch, Manifest, NodeRecord, Operation
from wulf.base.text import count, printable
from wulf.base.units import fact_label, format_fact
from wulf.page.parts import Column, Item, Table
from wulf.page.words import UNKNOWN, duration, heading, listed, moment, name, noun, place_name

#: Characters of a fact or a reason that are printed.
TEXT_LIMIT = 200
#: Rows of suspect launches at most.
ROWS = 200


#: Groups of facts by the hundred: shown only where nodes differ. All are in the JSON.
_MANY = ("sysctl.", "service.")


def launches_table(launches: Sequence[Launch], operations: Mapping[str, Operation]) -> Table:
    """Fold launches that failed or ran under other load: one row for what befell an operation for one reason."""
    folded: dict[tuple[str, bool, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        # Of scouts there are no figures that other load could spoil.
        if launch.status == "failed" or (launch.contamination and launch.purpose == "measure"):
            folded[launch.op, launch.status == "failed", _alike(launch)].append(launch)
    rows = sorted(folded.values(), key=lambda group: (group[0].status != "failed", -len(group)))
    nouns = (
        noun(place, operations.get(launch.op))
        for group in rows
        for launch in group
        for place in launch.measured
    )
    return Table(
        title="Failed and contaminated launches",
        columns=(
            Column("launches", numeric=True),
            Column("operation"),
            Column(heading(nouns)),
            Column("first", narrow=False),
            Column("what"),
            Column("why"),
        ),
        rows=tuple(_launches_row(group, operations.get(group[0].op)) for group in rows[:ROWS]),
        note="Contaminated launches are kept and marked; nothing is dropped. 'wulf report --json' has every launch.",
        empty="no launch failed and none ran under other load" if launches else "there was no launch",
    )


def _why(launch: Launch) -> str:
    reasons = [launch.error or UNKNOWN] if launch.status == "failed" else launch.contamination
    return "; ".join(printable(reason, TEXT_LIMIT) for reason in reasons)


def _alike(launch: Launch) -> str:
    """Return why, without what differs from one launch to the next: the nodes' names and numbers."""
    return re.sub(r"\d+(\.\d+)?", "#", impersonal(_why(launch), launch.place))


def _launches_row(group: Sequence[Launch], operation: Operation | None) -> tuple[Item, ...]:
    first = group[0]
    reasons = {_why(launch) for launch in group}
    pairs = sorted({place_name(place, operation) for launch in group for place in launch.measured})
    return (
        Item(str(len(group)), len(group)),
        Item(name(first.op)),
        Item(listed(pairs, 3)),
        Item(moment(first.started_at), first.started_at),
        Item("failed", "failed", "error")
        if first.status == "failed"
        else Item("contaminated", "contaminated", "warning"),
        Item(_why(first) if len(reasons) == 1 else f"such as: {_why(first)}"),
    )


def facts_table(nodes: Sequence[NodeRecord]) -> Table:
    """One row per fact and value; nodes that agree share a row."""
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        for fact, value in node.facts.items():
            if value is not None:
                values[fact][_value(fact, value)].append(name(node.node))
    expected = OWN_FACTS | PASSING_FACTS
    odd = {
        fact
        for fact, by_value in values.items()
        if len(by_value) > 1 and fact.partition("@")[0] not in expected
    }
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
    away = {node.node: node.error or "the node was not reached" for node in nodes if not node.reachable}
    for names, reason in fold_reasons(away):
        groups["everything", printable(reason, TEXT_LIMIT)] += map(name, names)
    for node in nodes:
        reasons = {fact: "no reason recorded" for fact, value in node.facts.items() if value is None}
        for fact, reason in (reasons | node.unknown).items():
            groups[name(fact), printable(reason, TEXT_LIMIT)].append(name(node.node))
    for key, value in manifest.software.items():
        if value is None:
            groups[name(key), "not found on the controller"].append("controller")
    return Table(
        title="Unknown",
        columns=(Column("fact"), Column("unknown because"), Column("nodes")),
        rows=tuple(_unknown_rows(groups, total=len(nodes))),
        empty="no node was asked for its facts" if not nodes else "nothing that was asked for is unknown",
    )


def _unknown_rows(groups: Mapping[tuple[str, str], list[str]], total: int) -> Iterator[tuple[Item, ...]]:
    """One row for all facts that are unknown on the same nodes for the same reason."""
    folded: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (fact, reason), who in groups.items():
        folded[reason, _who(who, total)].append(fact)
    for (reason, where), facts in folded.items():
        yield Item(listed(facts)), Item(f"{UNKNOWN}: {reason}", None, "unknown"), Item(where)


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
        *_ladder_row(manifest),
        ("seed", str(plan.seed)),
        (
            "budget",
            f"{duration(plan.budget_s)}, {plan.min_launches} to {count(plan.max_launches, 'launch')} per cell",
        ),
        ("schema", str(manifest.schema_version)),
    ]
    return Table(
        title="Provenance",
        columns=(Column("what"), Column("value")),
        rows=tuple((Item(key), Item(value)) for key, value in rows),
    )


def _ladder_row(manifest: Manifest) -> list[tuple[str, str]]:
    """Say which sizes the run began with, unless none of its operations has any."""
    plan = manifest.plan
    if manifest.operations and not any(operation.max_size_bytes for operation in manifest.operations):
        return []
    sizes = max((len(part.sizes_bytes) for part in plan.workload.parts), default=0)
    return [("ladder", f"{name(plan.ladder)}, {count(sizes, 'size')} to begin with")]


def _probe_rows(launches: Sequence[Launch]) -> list[tuple[str, str]]:
    probes = [launch.probe for launch in launches if launch.probe is not None]
    found = {
        "probe": sorted({name(probe.version) for probe in probes}),
        "MPI library": sorted(
            {" ".join(printable(probe.mpi, TEXT_LIMIT).split()) for probe in probes if probe.mpi}
        ),
        "threads may call it": sorted({name(probe.thread_level) for probe in probes if probe.thread_level}),
        "directory of files": sorted({name(probe.filesystem) for probe in probes if probe.filesystem}),
        "clock": clock_texts(launches),
    }
    return [(key, listed(values)) for key, values in found.items() if values]


def clock_texts(launches: Sequence[Launch]) -> list[str]:
    """Return the probe's clocks, each with its resolution and the cost of one reading, in whole nanoseconds."""
    costs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for launch in launches:
        if launch.probe is not None:
            clock = launch.probe.clock
            costs[name(clock.source), f"{clock.resolution_ns:.0f}"].add(round(clock.cost_ns))
    return [
        f"{source} (resolution {resolution} ns, one reading {_range(found)} ns)"
        for (source, resolution), found in sorted(costs.items())
    ]


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
