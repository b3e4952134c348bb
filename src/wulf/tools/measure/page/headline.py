"""What the reader sees first: what was measured, can it be trusted, and the figures with their worst pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from wulf.base.records import (
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
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_value
from wulf.page.parts import Item, KeyFigure, Warning
from wulf.page.words import Terms, estimate_item, listed, moment, name, percent

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
    "interrupted": "The run was interrupted; 'wulf measure --resume latest' goes on.",
    "failed": "The run failed.",
}
#: Instead of the above, where no target was missed by what was measured.
ALL_REACHED = "The budget was spent before everything that was planned was measured."


def title(manifest: Manifest) -> str:
    """Return '4 nodes, 3 pairs: mpi_pingpong, tcp_rr'."""
    plan = manifest.plan
    nodes = _nodes(plan)
    ops = listed([name(op) for op in plan.workload.ops])
    pairs = {place for part in plan.workload.parts if not part.group for place in part.places}
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
    if cells and plan.series is not None:
        lines.append(f"{count(len(cells), 'cell')} over time, as precise as that makes them.")
    elif cells:
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
        _latency(terms, groups, models),
        _bandwidth(terms, groups, models),
        _figure(terms, "half-performance length n½", models, lambda model: model.n_half_bytes, max),
    ]
    return tuple(figure for figure in found if figure is not None)


def _latency(
    terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], models: Mapping[Place, CurveModel]
) -> KeyFigure | None:
    """Return the time of an empty message; that of the smallest where none is known, or it is no single figure."""
    label = f"zero-byte {terms.quantity}"
    fitted = _figure(terms, label, models, lambda model: model.zero_byte_latency, max)
    size = max((cells[0].cell.size_bytes for cells in groups.values()), default=0)
    smallest = _at(groups, size)
    if fitted is not None and all(map(_single, smallest.values())):
        return fitted
    label = f"{terms.quantity} at {format_bytes(size)}" if terms.varied else terms.value
    known = [(pair, cell.time) for pair, cell in smallest.items()]
    return _worst_and_best(terms, label, known, max, smallest)


def _bandwidth(
    terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], models: Mapping[Place, CurveModel]
) -> KeyFigure | None:
    """Return the asymptotic bandwidth, or where the largest size has no single figure what was measured there."""
    fitted = _figure(terms, "asymptotic bandwidth", models, lambda model: model.asymptotic_bandwidth, min)
    size = min((cells[-1].cell.size_bytes for cells in groups.values()), default=0)
    largest = _at(groups, size)
    if fitted is None or all(map(_single, largest.values())):
        return fitted
    known = [(pair, cell.bandwidth) for pair, cell in largest.items() if cell.bandwidth is not None]
    return _worst_and_best(terms, f"bandwidth at {format_bytes(size)}", known, min, largest)


def _at(groups: Mapping[Place, Sequence[CellEstimate]], size: int) -> dict[Place, CellEstimate]:
    return {pair: cell for pair, cells in groups.items() for cell in cells if cell.cell.size_bytes == size}


def _single(cell: CellEstimate) -> bool:
    """Whether one figure describes a cell."""
    return cell.range_s is None and not cell.modes_within


def _item(estimate: Estimate, cell: CellEstimate | None) -> Item:
    """Return an estimate, or where its cell has no single figure both modes, or the range of the launches."""
    if cell is None or _single(cell):
        return estimate_item(estimate)
    if cell.modes_within:
        times, between = [mode.time_s for mode in cell.modes_within], " and "
    else:
        times, between = list(cell.range_s or ()), " to "
    # A bandwidth of a cell of times; all else is what was measured itself.
    as_measured = estimate.unit == cell.time.unit
    values = times if as_measured else sorted(cell.cell.size_bytes / time for time in times)
    return Item(between.join(format_value(value, estimate.unit) for value in values), estimate.value)


def _why(estimate: Estimate, cell: CellEstimate | None) -> str:
    """Say why a cell has no single figure; nothing where it has one."""
    if cell is None or _single(cell):
        return ""
    said = []
    if cell.modes_within:
        of = count(len(cell.launches), "launch")
        shares = " and ".join(percent(mode.share) for mode in cell.modes_within)
        said.append(f"two modes in {cell.launches_with_modes} of {of}, with {shares} of the messages")
    if cell.range_s is not None:
        low, high = (format_value(value, cell.time.unit) for value in cell.range_s)
        groups = f", in {count(cell.modes_between, 'group')}" if cell.modes_between > 1 else ""
        said.append(f"nine of ten launch medians lie between {low} and {high}{groups}")
    return f"no single figure: {'; '.join(said)}; median {estimate_item(estimate).text}"


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


def _worst_and_best(
    terms: Terms,
    label: str,
    known: list[tuple[Place, Estimate]],
    worst: Choose,
    cells: Mapping[Place, CellEstimate] | None = None,
) -> KeyFigure | None:
    """Return the worst pair's figure and the best one's; of cells that have no single figure what they have."""
    if not known:
        return None
    best: Choose = min if worst is max else max
    bad, good = worst(known, key=_value), best(known, key=_value)
    of = cells or {}
    worst_item, best_item = (_item(estimate, of.get(pair)) for pair, estimate in (bad, good))
    note = next(filter(None, (_why(estimate, of.get(pair)) for pair, estimate in (bad, good))), "")
    if len(known) > 1 and worst_item.text == best_item.text:
        alike = f"all {terms.count(len(known))} alike"
        return KeyFigure(name=label, worst=worst_item, worst_pair=alike, note=note)
    several = len(known) > 1
    return KeyFigure(
        name=label,
        worst=worst_item,
        worst_pair=terms.name(bad[0]),
        best=best_item if several else None,
        best_pair=terms.name(good[0]) if several else "",
        note=note,
    )


def _value(entry: tuple[Place, Estimate]) -> float:
    return entry[1].value
