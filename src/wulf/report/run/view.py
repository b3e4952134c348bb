"""From records to a view: everything that a report says, before it is drawn.  Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from wulf.records import Analysis, Audit, CellEstimate, CurveModel, Launch, Manifest, NodeRecord, Operation
from wulf.report import audit as audit_view
from wulf.report.parts import OperationView, View
from wulf.report.run import headline, methods, provenance, ranking, tables
from wulf.report.run.figures import figures
from wulf.report.words import count, estimate_item, name, pair_name, quantity
from wulf.text import printable
from wulf.units import format_bytes


def build(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    audit: Audit | None = None,
) -> View:
    """Return all that is shown of a run."""
    grade = headline.trust(manifest, analysis)
    return View(
        run_id=name(manifest.id),
        title=headline.title(manifest),
        lede=headline.lede(manifest, analysis),
        trust=grade,
        trust_title=headline.TRUST_TITLES[grade],
        trust_text=headline.trust_text(manifest, analysis, nodes),
        warnings=headline.warnings(analysis.warnings),
        operations=_operations(manifest, analysis),
        audit=audit_view.build(audit) if audit is not None else None,
        launches=provenance.launches_table(launches),
        unreached=tables.unreached_table(analysis.cells),
        facts=provenance.facts_table(nodes),
        unknown=provenance.unknown_table(nodes, manifest),
        provenance=provenance.provenance_table(manifest, launches),
        methods=methods.paragraph(manifest, nodes, launches, analysis),
        command_line=printable(shlex.join(manifest.command_line), 1000),
    )


def _operations(manifest: Manifest, analysis: Analysis) -> tuple[OperationView, ...]:
    """Return operations in the order of the plan, one for each setting that was measured."""
    known = {operation.name: operation for operation in manifest.operations}
    keys = list(dict.fromkeys((cell.cell.op, cell.cell.setting) for cell in analysis.cells))
    planned = {op: index for index, op in enumerate(manifest.plan.workload.ops)}
    keys.sort(key=lambda key: (planned.get(key[0], len(planned)), key))
    return tuple(
        _operation(
            f"op{index}",
            known.get(op),
            [cell for cell in analysis.cells if (cell.cell.op, cell.cell.setting) == (op, setting)],
            [model for model in analysis.models if (model.op, model.setting) == (op, setting)],
        )
        for index, (op, setting) in enumerate(keys)
    )


def _operation(
    id_: str, operation: Operation | None, cells: list[CellEstimate], models: list[CurveModel]
) -> OperationView:
    first = cells[0].cell
    groups = ranking.by_pair(cells)
    order = ranking.worst_first(cells)
    shown = ranking.shown(order)
    by_pair = {model.place: model for model in models}
    what = quantity(operation)
    overview, detail = figures(id_, operation, cells, by_pair, shown)
    label = name(first.op) + (f" ({name(first.setting)})" if first.setting != "default" else "")
    left_out = ""
    if len(shown) < len(order):
        left_out = (
            f"Lines and details are those of the {len(shown) - 1} worst pairs and of the best one; the table of "
            f"pairs has all {count(len(order), 'pair')}, and 'wulf report --csv' has all their figures."
        )
    return OperationView(
        id=id_,
        name=label,
        title=printable(operation.summary, 120) if operation else "operation unknown to the manifest",
        quantity=what,
        key_figures=headline.key_figures(operation, groups, by_pair),
        pairs=tables.pairs_table(what, groups, by_pair, order),
        overview=overview,
        detail=detail,
        details=tuple(tables.detail(pair, groups[pair], by_pair.get(pair)) for pair in shown),
        left_out=left_out,
        span=_span(cells),
        lines=tuple((pair_name(pair), _times(groups[pair]), _ends(groups[pair])) for pair in shown),
    )


def _times(cells: Sequence[CellEstimate]) -> tuple[float, ...]:
    return tuple(cell.time.value for cell in cells)


def _ends(cells: Sequence[CellEstimate]) -> str:
    return " … ".join(estimate_item(cell.time).text for cell in (cells[0], cells[-1]))


def _span(cells: Sequence[CellEstimate]) -> str:
    sizes = sorted(cell.cell.size_bytes for cell in cells)
    first, last = format_bytes(sizes[0]), format_bytes(sizes[-1])
    if sizes[-1] == 0:
        return ""  # nothing was varied
    return first if first == last else f"{first} to {last}"
