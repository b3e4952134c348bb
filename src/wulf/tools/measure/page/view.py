"""From records to a view: everything that a report says, before it is drawn.  Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from wulf.base.records import (
    Analysis,
    Audit,
    CellEstimate,
    CurveModel,
    Launch,
    Manifest,
    NodeRecord,
    Operation,
    PeriodEstimate,
)
from wulf.base.records.diagnosed import Diagnosis
from wulf.base.records.emulated import Emulated, EmulatedPattern
from wulf.base.text import printable
from wulf.base.units import format_bytes
from wulf.page.parts import DiagnosisView, Figure, OperationView, Section, View
from wulf.page.sections import audit as audit_view
from wulf.page.sections import diagnosis as diagnosis_view
from wulf.page.words import Terms, estimate_item, name
from wulf.tools.measure.page import (
    across,
    headline,
    hosts,
    loads,
    methods,
    over_time,
    provenance,
    ranking,
    tables,
)
from wulf.tools.measure.page import performed as performed_view
from wulf.tools.measure.page.figures import figures
from wulf.tools.measure.page.matrix import judged

#: A pattern, and what its run says of it.
Performed = tuple[EmulatedPattern, Emulated]


def build(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    audit: Audit | None = None,
    diagnosis: Diagnosis | None = None,
    performed: Performed | None = None,
) -> View:
    """Return all that is shown of a run."""
    grade = headline.trust(manifest, analysis)
    known = {operation.name: operation for operation in manifest.operations}
    operations = _operations(manifest, analysis)
    return View(
        run_id=name(manifest.id),
        title=headline.title(manifest) if performed is None else performed_view.title(*performed),
        lede=headline.lede(manifest, analysis),
        trust=grade,
        trust_title=headline.TRUST_TITLES[grade],
        trust_text=headline.trust_text(manifest, analysis, nodes),
        warnings=headline.warnings(analysis.warnings),
        operations=operations,
        diagnosis=_diagnosis(diagnosis, analysis, operations) if diagnosis is not None else None,
        across=tuple(_across(manifest, analysis, launches, known)),
        hosts=hosts.build(analysis.hosts),
        pattern=performed_view.build(*performed) if performed is not None else None,
        audit=audit_view.build(audit) if audit is not None else None,
        launches=provenance.launches_table(launches, known),
        unreached=tables.unreached_table(analysis.cells, known),
        facts=provenance.facts_table(nodes),
        unknown=provenance.unknown_table(nodes, manifest),
        provenance=provenance.provenance_table(manifest, launches),
        methods=methods.paragraph(manifest, nodes, launches, analysis),
        command_line=printable(shlex.join(manifest.command_line), 1000),
    )


def _diagnosis(
    found: Diagnosis, analysis: Analysis, operations: Sequence[OperationView]
) -> DiagnosisView | None:
    sections = {operation.name: operation.id for operation in operations}
    return diagnosis_view.build(found, tuple(judged(found.matrices, analysis.cells)), sections)


def _across(
    manifest: Manifest, analysis: Analysis, launches: Sequence[Launch], known: Mapping[str, Operation]
) -> Iterator[Section]:
    """Yield what the run says of several operations together."""
    zone = manifest.plan.series.time_zone if manifest.plan.series else ""
    sections = (
        Section("parameters", "Parameters of LogGP", across.parameters_table(analysis.parameters)),
        Section("overheads", "MPI over TCP", across.overheads_table(analysis.overheads)),
        Section(
            "loads",
            "Under load, and beside traffic",
            across.loads_table(analysis.loads, launches),
            tuple(loads.curves(analysis.loads, known)),
        ),
        Section(
            "over-time",
            "Over time",
            over_time.table(analysis.periods, analysis.weekends, known, zone),
        ),
        Section("overlaps", "Overlap with computation", across.overlaps_table(analysis.overlaps, known)),
        Section("resources", "Resources", across.resources_table(analysis.resources)),
    )
    yield from (section for section in sections if section.table.rows)


def _operations(manifest: Manifest, analysis: Analysis) -> tuple[OperationView, ...]:
    """Return operations in the order of the plan, one for each setting that was measured, but those of single CPUs."""
    known = {operation.name: operation for operation in manifest.operations}
    keys = list(dict.fromkeys((cell.cell.op, cell.cell.setting) for cell in analysis.cells))
    keys = [key for key in keys if not hosts.shows(known.get(key[0]))]
    planned = {op: index for index, op in enumerate(manifest.plan.workload.ops)}
    keys.sort(key=lambda key: (planned.get(key[0], len(planned)), key))
    return tuple(
        _operation(
            f"op{index}",
            known.get(op),
            [cell for cell in analysis.cells if (cell.cell.op, cell.cell.setting) == (op, setting)],
            [model for model in analysis.models if (model.op, model.setting) == (op, setting)],
            [one for one in analysis.periods if (one.cell.op, one.cell.setting) == (op, setting)],
        )
        for index, (op, setting) in enumerate(keys)
    )


def _operation(
    id_: str,
    operation: Operation | None,
    cells: list[CellEstimate],
    models: list[CurveModel],
    periods: list[PeriodEstimate],
) -> OperationView:
    first = cells[0].cell
    terms = Terms.of(operation, cells)
    groups = ranking.by_pair(cells)
    order = ranking.worst_first(cells)
    shown = ranking.shown(order)
    by_pair = {model.place: model for model in models}
    overview, detail = figures(id_, terms, groups, by_pair, order)
    label = name(first.op) + (f" ({name(first.setting)})" if first.setting != "default" else "")
    left_out = ""
    if len(shown) < len(order):
        left_out = (
            f"{'Lines and details' if terms.varied else 'Details'} are those of the {len(shown) - 1} worst "
            f"{terms.noun}s and of the best one; the table of {terms.noun}s has all {terms.count(len(order))}, and "
            "'wulf report --csv' has all their figures."
        )
    return OperationView(
        id=id_,
        name=label,
        title=printable(operation.summary, 120) if operation else "operation unknown to the manifest",
        quantity=terms.quantity,
        key_figures=headline.key_figures(terms, groups, by_pair),
        pairs=tables.pairs_table(terms, groups, by_pair, order),
        overview=overview,
        detail=detail + over_time.figures(id_, terms, periods, shown),
        details=tuple(tables.detail(terms, pair, groups[pair], by_pair.get(pair)) for pair in shown),
        left_out=left_out,
        noun=terms.noun,
        span=" to ".join(map(format_bytes, terms.ends)) if terms.varied else "",
        lines=tuple((terms.name(pair), _times(groups[pair]), _ends(groups[pair])) for pair in shown),
    )


def _times(cells: Sequence[CellEstimate]) -> tuple[float, ...]:
    return tuple(cell.time.value for cell in cells) if len(cells) > 1 else ()


def _ends(cells: Sequence[CellEstimate]) -> str:
    return " … ".join(estimate_item(cell.time).text for cell in (cells[0], *cells[1:][-1:]))


def figures_of(shown: View) -> list[tuple[str, Figure]]:
    """Return all charts of a run, each with the name of what it is about."""
    found = [("pattern", figure) for figure in (shown.pattern.figures if shown.pattern else ())]
    found += [(op.name, figure) for op in shown.operations for figure in (*op.overview, *op.detail)]
    found += [(section.title, figure) for section in shown.across for figure in section.figures]
    found += [("diagnosis", figure) for figure in (shown.diagnosis.figures if shown.diagnosis else ())]
    return found + [("hosts", figure) for figure in (shown.hosts.figures if shown.hosts else ())]
