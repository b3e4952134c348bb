"""How the figures came to be, in a paragraph that can stand in a paper.  Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from wulf.base.nodeset import fold
from wulf.base.records import Analysis, CellEstimate, Launch, Manifest, NodeRecord, Place, Plan
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_fact, format_time
from wulf.page.words import duration, listed, moment, name, noun, percent, quantity
from wulf.tools.measure.page.provenance import clock_texts

#: Values of one fact that are told apart; a methods paragraph is no inventory.
VALUES = 4
LINES = "Lines T = α + m/β were fitted to all sizes by Theil–Sen regression and by ordinary least squares."


def paragraph(
    manifest: Manifest, nodes: Sequence[NodeRecord], launches: Sequence[Launch], analysis: Analysis
) -> str:
    """Return nodes, network, software, what was measured, how often, and what the intervals are."""
    measured = {node for cell in analysis.cells for node in cell.cell.place}
    records = [node for node in nodes if node.node in measured] or [node for node in nodes if node.reachable]
    sentences = (
        _hardware(records),
        _measured(manifest, launches, analysis.cells),
        _replication(manifest, analysis),
        _intervals(manifest, analysis.cells),
        LINES if any(model.robust or model.least_squares for model in analysis.models) else "",
        _clock(launches),
    )
    return " ".join(sentence for sentence in sentences if sentence)


def library(raw: str) -> str:
    """Return name and version of an MPI library from all that it says of itself: 'Open MPI 4.1.4'."""
    said = name(re.split(r",|\n|\s+MPICH Release", raw, maxsplit=1)[0].replace("MPICH Version:", "MPICH"))
    return re.sub(r"\bv(?=\d)", "", said)


def _hardware(nodes: Sequence[NodeRecord]) -> str:
    if not nodes:
        return "The nodes are not known."
    return (
        f"{count(len(nodes), 'node').capitalize()} ({_names([node.node for node in nodes])}): "
        f"processor {_fact(nodes, 'cpu.model')}; network interface {_interface(nodes)}; "
        f"{_fact(nodes, 'kernel.os')}, Linux {_fact(nodes, 'kernel.release')}."
    )


def _interface(nodes: Sequence[NodeRecord]) -> str:
    said = [
        _fact(nodes, "nic.name", ""),
        f"driver {_fact(nodes, 'nic.driver')}",
        _fact(nodes, "nic.speed_bits_per_s", "speed unknown"),
        f"MTU {_fact(nodes, 'nic.mtu_bytes')}",
    ]
    return ", ".join(part for part in said if part)


def _fact(nodes: Sequence[NodeRecord], fact: str, unknown: str = "unknown") -> str:
    """Return the value of a fact; where nodes differ, each value with its nodes."""
    values: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        value = node.facts.get(fact)
        values[unknown if value is None else printable(format_fact(fact, value), 80)].append(node.node)
    if len(values) == 1:
        return next(iter(values))
    return listed([f"{value} ({_names(who)})" for value, who in values.items()], VALUES)


def _names(nodes: Sequence[str]) -> str:
    """Fold names; one that is not a name of a node is shown as it is."""
    plain = all(re.fullmatch(r"[A-Za-z0-9._-]+", node) for node in nodes)
    return fold(nodes) if plain else listed([name(node) for node in nodes])


def _measured(manifest: Manifest, launches: Sequence[Launch], cells: Sequence[CellEstimate]) -> str:
    libraries = sorted(
        {library(launch.probe.mpi) for launch in launches if launch.probe and launch.probe.mpi}
    )
    known = {operation.name: operation for operation in manifest.operations}
    places = {(noun(x.cell.place, known.get(x.cell.op)), x.cell.place) for x in cells}
    sizes = sorted({cell.cell.size_bytes for cell in cells})
    span = ""
    if len(sizes) > 1:
        span = f", {count(len(sizes), 'message size')} from {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
    elif sizes and sizes[0] > 0:
        span = f", messages of {format_bytes(sizes[0])}"
    return (
        f"Measured with wulf {name(manifest.wulf_version)}{' over ' + listed(libraries) if libraries else ''}, "
        f"{moment(manifest.created_at)} to {moment(manifest.updated_at)}: {_operations(manifest, cells)}, "
        f"{_where(places)}{span}."
    )


def _where(places: Collection[tuple[str, Place]]) -> str:
    of = {
        kind: sorted(place for found, place in places if found == kind) for kind in ("pair", "group", "node")
    }
    said = [f"between {count(len(of['pair']), 'pair')} of nodes"] if of["pair"] else []
    said += [
        f"among {count(len(group), 'rank')} on {_names(list(dict.fromkeys(group)))}" for group in of["group"]
    ]
    said += [f"on {_names(list(dict.fromkeys(place[0] for place in of['node'])))}"] if of["node"] else []
    return ", ".join(said) or "nowhere"


def _operations(manifest: Manifest, cells: Sequence[CellEstimate]) -> str:
    known = {operation.name: operation for operation in manifest.operations}
    ops = dict.fromkeys(cell.cell.op for cell in cells)
    said = []
    for op in ops:
        summary = f"{printable(known[op].summary, 120)}; " if op in known else ""
        said.append(f"{name(op)} ({summary}a value is the {quantity(known.get(op))})")
    return listed(said, len(said)) if said else "nothing"


def _replication(manifest: Manifest, analysis: Analysis) -> str:
    replicates = sorted({cell.time.n for cell in analysis.cells})
    counted = _span(replicates) if replicates else "no launches"
    return (
        f"The unit of replication is the launch, {_launch(manifest)}: {counted} per cell "
        f"({_cell(manifest, analysis)}), {analysis.launches_contaminated} of "
        f"{count(analysis.launches_ok, 'launch')} under other load. "
        f"{_company(manifest)}{_beside(manifest)}{_within(manifest)}"
    )


#: Who of the other nodes streams to whom, in words.
_PATTERNS = {"": "two by two", "incast": "all to one of them", "all-to-all": "each to each other one"}


def _company(manifest: Manifest) -> str:
    if not manifest.plan.workload.at_once:
        return ""
    accompanied = set(manifest.plan.workload.accompanied)
    together = accompanied != {part.op for part in manifest.plan.workload.parts}
    jobs = (
        "A launch measured several pairs that have no node in common at the same time, each visit begun together: "
        "a time is that of a pair while the others are busy, too. "
    )
    sockets = (
        f"Of {listed(sorted(accompanied))} a launch measured one pair while others that have no node in common with it "
        "did the same, from before it until after it. "
    )
    return (jobs if together else "") + (sockets if accompanied else "")


def _beside(manifest: Manifest) -> str:
    beside = [operation for operation in manifest.operations if operation.beside_traffic]
    ops = [name(operation.name) for operation in beside]
    if not ops:
        return ""
    patterns = {operation.beside_pattern for operation in beside}
    who = listed([_PATTERNS[pattern] for pattern in sorted(patterns)])
    return (
        f"While {listed(ops)} {'was' if len(ops) == 1 else 'were'} measured, the nodes that took no part streamed to "
        f"each other over TCP, {who}, from before each launch until after it. "
    )


def _launch(manifest: Manifest) -> str:
    run, probe = "one run of the command", "a fresh session of the probe"
    kinds = {operation.transport == "command" for operation in manifest.operations}
    return f"{probe}, or {run}" if len(kinds) > 1 else run if True in kinds else probe


def _cell(manifest: Manifest, analysis: Analysis) -> str:
    """Return what a cell is: 'operation, pair and size'."""
    known = {operation.name: operation for operation in manifest.operations}
    nouns = {noun(cell.cell.place, known.get(cell.cell.op)) for cell in analysis.cells} or {"pair"}
    parts = ["operation", " or ".join(sorted(nouns, reverse=True)), *(["size"] if _sized(manifest) else [])]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sized(manifest: Manifest) -> bool:
    return any(operation.max_size_bytes for operation in manifest.operations)


def _within(manifest: Manifest) -> str:
    """Say what is done within a launch of the probe."""
    plan = manifest.plan
    if {operation.transport for operation in manifest.operations} == {"command"}:
        return "No value is discarded."
    visits = f"about {format_time(plan.workload.visit_us / 1e6)} a visit; no value is discarded."
    if _sized(manifest):
        return (
            f"Within a launch every size is warmed up and then visited {count(plan.workload.sweeps, 'time')} in random "
            f"order (seed {plan.seed}), {visits}"
        )
    often = count(plan.workload.sweeps, "time")
    return f"Within a launch the operation is warmed up and then visited {often}, {visits}"


def _intervals(manifest: Manifest, cells: Sequence[CellEstimate]) -> str:
    plan = manifest.plan
    known = [cell for cell in cells if cell.time.low is not None]
    figure = "A figure is the median over launches of the launch medians"
    if not cells:
        return "No cell was measured: there is no figure, and no interval was computed."
    if not known:
        return f"{figure}; there were too few launches for an interval."
    methods = sorted({printable(cell.time.method, 120) for cell in known})
    bare = (
        f"; {len(cells) - len(known)} of {count(len(cells), 'cell')} had too few launches for an interval"
        if len(known) < len(cells)
        else ""
    )
    reached = sum(cell.reached for cell in cells)
    return (
        f"{figure} with its {percent(plan.confidence)} interval ({'; '.join(methods)}){bare}. "
        f"{_stopping(plan, reached, len(cells))}"
    )


def _stopping(plan: Plan, reached: int, cells: int) -> str:
    """Say when launches were made, and how many."""
    if plan.series is not None:
        series = plan.series
        return (
            f"Launches were made in blocks of one of each, one block every {duration(series.every_s)} for "
            f"{duration(series.for_s)}; hours and days are those of {name(series.time_zone)}."
        )
    return (
        f"Launches were added until the interval's half-width was at most {percent(plan.precision)}, which {reached} "
        f"of {count(cells, 'cell')} reached, or the budget of {duration(plan.budget_s)} was spent."
    )


def _clock(launches: Sequence[Launch]) -> str:
    clocks = clock_texts(launches)
    return f"Clock: {listed(clocks, 2)}." if clocks else ""


def _span(replicates: Sequence[int]) -> str:
    low, high = replicates[0], replicates[-1]
    return count(low, "launch") if low == high else f"{low} to {count(high, 'launch')}"
