"""What the reader sees first: what was measured, can it be trusted, and the figures with their worst pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from wulf.records import (
    Advice,
    Analysis,
    CellEstimate,
    CurveModel,
    Estimate,
    Manifest,
    NodeRecord,
    Place,
    Plan,
)
from wulf.report.parts import KeyFigure, Warning
from wulf.report.words import Terms, count, estimate_item, listed, moment, name, percent
from wulf.text import printable
from wulf.units import format_bytes

Trust = Literal["good", "fair", "poor", "nothing"]

TRUST_TITLES: dict[Trust, str] = {
    "good": "Trustworthy",
    "fair": "Usable with reservations",
    "poor": "Read the warnings before using these figures",
    "nothing": "Nothing was measured",
}
Severity = Literal["error", "warning", "note"]
#: Subjects of one warning that are named.
SUBJECTS = 4
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
STATUS_TEXTS = {
    "running": "The run was not finished when this was written.",
    "budget": "The budget was spent before all targets were reached.",
    "interrupted": "The run was interrupted; 'wulf measure --resume' goes on.",
    "failed": "The run failed.",
}
#: Instead of the above, where no target was missed by what was measured.
ALL_REACHED = "The budget was spent before everything that was planned was measured."


def title(manifest: Manifest) -> str:
    """Return '4 nodes, 3 pairs: mpi_pingpong, tcp_rr'."""
    plan = manifest.plan
    nodes = _nodes(plan)
    ops = listed([name(op) for op in plan.workload.ops])
    two = {op.name for op in manifest.operations if op.between_pairs}
    pairs = {place for part in plan.workload.parts if part.op in two for place in part.places}
    between = f", {count(len(pairs), 'pair')}" if pairs else ""
    return f"{count(len(nodes), 'node')}{between}: {ops}"


def _nodes(plan: Plan) -> set[str]:
    return {node for place in plan.workload.places for node in place}


def lede(manifest: Manifest, analysis: Analysis) -> str:
    """Say in one or two sentences what was measured on what, when and how often."""
    nodes = sorted(map(name, _nodes(manifest.plan)))
    sizes = sorted({cell.cell.size_bytes for cell in analysis.cells})
    span = ""
    if sizes:
        ends = f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
        one = f" {ends.partition(' to ')[0]}," if sizes[0] > 0 else ""
        span = f" {count(len(sizes), 'message size')} from {ends}," if len(sizes) > 1 else one
    launches = analysis.launches_ok + analysis.launches_failed
    together = " of several pairs at the same time" if manifest.plan.workload.at_once else ""
    return (
        f"{'Between' if len(nodes) > 1 else 'On'} {listed(nodes, 8)},{span} {count(launches, 'launch')}{together} "
        f"from {moment(manifest.created_at)} to {moment(manifest.updated_at)}."
    )


def trust(manifest: Manifest, analysis: Analysis) -> Trust:
    """Grade a run.

    An error, a failed launch or most targets missed is `poor`; anything else that is not as asked is `fair`.
    """
    if not analysis.cells:
        return "nothing"
    severe = any(advice.severity == "error" for advice in analysis.warnings)
    missed = sum(not cell.reached for cell in analysis.cells)
    unsure = missed > len(analysis.cells) / 2
    if severe or unsure or analysis.launches_failed or manifest.status == "failed":
        return "poor"
    noted = any(advice.severity == "warning" for advice in analysis.warnings)
    if noted or missed or analysis.launches_contaminated or manifest.status != "complete":
        return "fair"
    return "good"


def trust_text(manifest: Manifest, analysis: Analysis, nodes: Sequence[NodeRecord]) -> tuple[str, ...]:
    """Return the counts behind the grade, one sentence each."""
    plan = manifest.plan
    cells = analysis.cells
    lines = []
    if cells:
        reached = sum(cell.reached for cell in cells)
        lines.append(
            f"{reached} of {count(len(cells), 'cell')} reached ±{percent(plan.precision)} "
            f"({percent(plan.confidence)} intervals)."
        )
    total = analysis.launches_ok + analysis.launches_failed
    lines.append(
        f"{analysis.launches_contaminated} contaminated and {analysis.launches_failed} failed "
        f"of {count(total, 'launch')}."
    )
    away = [name(node.node) for node in nodes if not node.reachable]
    if away:
        lines.append(f"Not reached: {listed(away)}.")
    lines += _end(manifest, cells)
    return tuple(lines)


def _end(manifest: Manifest, cells: Sequence[CellEstimate]) -> list[str]:
    """Say how the run ended, where it is not complete."""
    if manifest.status == "budget" and cells and all(cell.reached for cell in cells):
        return [ALL_REACHED]
    text = STATUS_TEXTS.get(manifest.status)
    if text is None:
        return []
    return [f"{text} ({printable(manifest.message, 300)})" if manifest.message else text]


def warnings(advices: Sequence[Advice]) -> tuple[Warning, ...]:
    """Group warnings that share kind and advice, most severe first; subjects of which the same is said share it."""
    groups: dict[tuple[Severity, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for advice in advices:
        said = groups[advice.severity, advice.kind, printable(advice.advice, 400)]
        said[printable(advice.text, 300)].append(printable(advice.subject, 120))
    ordered = sorted(groups.items(), key=lambda entry: SEVERITIES.index(entry[0][0]))
    return tuple(
        Warning(
            severity=severity,
            kind=kind.replace("_", " "),
            advice=advice_text,
            cases=tuple(f"{listed(subjects, SUBJECTS)}: {text}" for text, subjects in said.items()),
        )
        for (severity, kind, advice_text), said in ordered
    )


def key_figures(
    terms: Terms,
    groups: Mapping[Place, Sequence[CellEstimate]],
    models: Mapping[Place, CurveModel],
) -> tuple[KeyFigure, ...]:
    """Latency, bandwidth and half-performance length of the worst pair, with the best beside it."""
    found = [
        _figure(terms, f"zero-byte {terms.quantity}", models, lambda model: model.zero_byte_latency, max)
        or _smallest(terms, groups),
        _figure(terms, "asymptotic bandwidth", models, lambda model: model.asymptotic_bandwidth, min),
        _figure(terms, "half-performance length n½", models, lambda model: model.n_half_bytes, max),
    ]
    return tuple(figure for figure in found if figure is not None)


Choose = Callable[..., tuple[Place, Estimate]]


def _figure(
    terms: Terms,
    label: str,
    models: Mapping[Place, CurveModel],
    pick: Callable[[CurveModel], Estimate | None],
    worst: Choose,
) -> KeyFigure | None:
    known = [(pair, value) for pair, model in models.items() if (value := pick(model)) is not None]
    return _worst_and_best(terms, label, known, worst)


def _smallest(terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]]) -> KeyFigure | None:
    """Return the time at the smallest size, where no model gives one for zero bytes."""
    sizes = [cells[0].cell.size_bytes for cells in groups.values()]
    if not sizes:
        return None
    smallest = max(sizes)
    known = [
        (pair, cell.time)
        for pair, cells in groups.items()
        for cell in cells
        if cell.cell.size_bytes == smallest
    ]
    label = f"{terms.quantity} at {format_bytes(smallest)}" if terms.varied else terms.value
    return _worst_and_best(terms, label, known, max)


def _worst_and_best(
    terms: Terms, label: str, known: list[tuple[Place, Estimate]], worst: Choose
) -> KeyFigure | None:
    if not known:
        return None
    best: Choose = min if worst is max else max
    bad, good = worst(known, key=_value), best(known, key=_value)
    if len(known) > 1 and estimate_item(bad[1]).text == estimate_item(good[1]).text:
        return KeyFigure(
            name=label, worst=estimate_item(bad[1]), worst_pair=f"all {terms.count(len(known))} alike"
        )
    several = len(known) > 1
    return KeyFigure(
        name=label,
        worst=estimate_item(bad[1]),
        worst_pair=terms.name(bad[0]),
        best=estimate_item(good[1]) if several else None,
        best_pair=terms.name(good[0]) if several else "",
    )


def _value(entry: tuple[Place, Estimate]) -> float:
    return entry[1].value
