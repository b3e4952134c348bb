"""From records to a view: everything that a report says, before it is drawn.  Pure."""

from __future__ import annotations

import dataclasses
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
from wulf.page.blocks import Command, KeyFigures, Operations, Page, Paragraph, Section, Verdict, Warnings
from wulf.page.parts import Figure, OperationResult, Table
from wulf.page.sections import diagnosis as diagnosis_view
from wulf.page.sections import findings as audit_view
from wulf.page.words import Terms, estimate_item, name
from wulf.tools.measure.page import (
    headline,
    hosts,
    loads,
    methods,
    over_time,
    provenance,
    ranking,
    summary_tables,
    tables,
)
from wulf.tools.measure.page import pattern_results as performed_view
from wulf.tools.measure.page.figures import figures
from wulf.tools.measure.page.matrix import judged

#: Figures in the title.
SAID = 2
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
    *,
    brief: bool = False,
) -> Page:
    """Return all that is shown of a run.

    Parameters
    ----------
    audit, diagnosis, performed
        Of its nodes, of its figures, and the pattern that it performed, where there are.
    brief
        Whether only its key figures are shown, whether to trust them, and what must be known.
    """
    known = {operation.name: operation for operation in manifest.operations}
    results = _operations(manifest, analysis)
    told = list(_diagnosis(diagnosis, analysis, results)) if diagnosis is not None else []
    shown = Page(
        title=_answer(manifest, results, diagnosis)
        if performed is None
        else performed_view.title(*performed),
        lede=f"{headline.title(manifest)}. {headline.lede(manifest, analysis)}",
        kind=f"Report · {name(manifest.id)}",
        verb="report",
        head=(*_diagnosed(diagnosis), KeyFigures(results), _trust(manifest, nodes, analysis)),
        sections=(
            *told,
            *([performed_view.section(*performed, brief=brief)] if performed is not None else []),
            # The times of a pattern are in its table.
            *(
                [Section("", "", (Operations(results, brief),))]
                if results and not (brief and performed)
                else []
            ),
            *_warnings(analysis),
            *([] if brief else _across(manifest, analysis, launches, known)),
            *hosts.sections(analysis.hosts, brief=brief),
        ),
        run=name(manifest.id),
    )
    rest = () if brief else tuple(_rest(manifest, nodes, launches, analysis, audit))
    return dataclasses.replace(shown, sections=(*shown.sections, *rest))


def _diagnosed(diagnosis: Diagnosis | None) -> Iterator[Verdict]:
    """Yield what a diagnosis says of the nodes, where there is one."""
    if diagnosis is not None and diagnosis.matrices:
        yield diagnosis_view.verdict_block(diagnosis)


def _trust(manifest: Manifest, nodes: Sequence[NodeRecord], analysis: Analysis) -> Verdict:
    """Return how far the run can be trusted, and why."""
    grade = headline.trust(manifest, analysis)
    return Verdict(grade, headline.trust_text(manifest, analysis, nodes), headline.TRUST_TITLES[grade])


def _answer(manifest: Manifest, results: Sequence[OperationResult], diagnosis: Diagnosis | None) -> str:
    """Return who is slow, or else the figures that are read first."""
    if diagnosis is not None and diagnosis.matrices and not diagnosis.fine:
        return diagnosis_view.verdict_block(diagnosis).title
    told = next((result for result in results if result.key_figures), None)
    if told is None:
        return f"{headline.title(manifest)}{'' if results else ': nothing was measured'}"
    figures = told.key_figures[:SAID]
    worst = " for the worst pair" if any(figure.best for figure in figures) else ""
    return f"{told.name}: {' and '.join(figure.worst.text for figure in figures)}{worst}"


def _warnings(analysis: Analysis) -> Iterator[Section]:
    found = headline.warnings(analysis.warnings)
    if found:
        yield Section("warnings", "What must be known", (Warnings(found),))


def _diagnosis(found: Diagnosis, analysis: Analysis, results: Sequence[OperationResult]) -> Iterator[Section]:
    places = {result.name: result.id for result in results}
    if found.matrices or found.symptoms:
        yield diagnosis_view.section(found, tuple(judged(found.matrices, analysis.cells)), places)


def _rest(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    audit: Audit | None,
) -> Iterator[Section]:
    """Yield how good the figures are, and where they are from."""
    known = {operation.name: operation for operation in manifest.operations}
    yield Section(
        "quality",
        "Contamination, and what was not reached",
        (tables.unreached_table(analysis.cells, known), provenance.launches_table(launches, known)),
    )
    if audit is not None:
        found = audit_view.build(audit)
        yield Section("audit", "Audit of the nodes", (Paragraph(found.lede), found), found.headline)
    yield Section(
        "nodes",
        "Nodes and provenance",
        (
            provenance.facts_table(nodes),
            provenance.unknown_table(nodes, manifest),
            provenance.provenance_table(manifest, launches),
            Command("Command line", printable(shlex.join(manifest.command_line), 1000)),
        ),
    )
    text = methods.paragraph(manifest, nodes, launches, analysis)
    yield Section("methods", "Methods, to quote", (Paragraph(text, quoted=True),))


def _across(
    manifest: Manifest, analysis: Analysis, launches: Sequence[Launch], known: Mapping[str, Operation]
) -> Iterator[Section]:
    """Yield what the run says of several operations together."""
    zone = manifest.plan.series.time_zone if manifest.plan.series else ""
    sections = (
        Section("parameters", "Parameters of LogGP", (summary_tables.parameters_table(analysis.parameters),)),
        Section("overheads", "MPI over TCP", (summary_tables.overheads_table(analysis.overheads),)),
        Section(
            "loads",
            "Under load, and beside traffic",
            (summary_tables.loads_table(analysis.loads, launches), *loads.curves(analysis.loads, known)),
        ),
        Section(
            "over-time",
            "Over time",
            (over_time.table(analysis.periods, analysis.weekends, known, zone),),
        ),
        Section(
            "overlaps", "Overlap with computation", (summary_tables.overlaps_table(analysis.overlaps, known),)
        ),
        Section("resources", "Resources", (summary_tables.resources_table(analysis.resources),)),
    )
    yield from (
        section for section in sections if any(isinstance(one, Table) and one.rows for one in section.blocks)
    )


def _operations(manifest: Manifest, analysis: Analysis) -> tuple[OperationResult, ...]:
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
) -> OperationResult:
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
    return OperationResult(
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


def figures_of(shown: Page) -> list[tuple[str, Figure]]:
    """Return all charts of a run, each with the name of what it is about."""
    results = [one for block in shown.blocks if isinstance(block, Operations) for one in block.results]
    by_result = [(one.name, figure) for one in results for figure in (*one.overview, *one.detail)]
    rest = [
        (section.id, block)
        for section in shown.sections
        for block in section.blocks
        if isinstance(block, Figure)
    ]
    return by_result + rest
