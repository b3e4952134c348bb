"""From a stored run to everything that is derived from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from wulf.base.records import (
    SCHEMA_VERSION,
    Analysis,
    CellEstimate,
    Comparison,
    Launch,
    LaunchResult,
    NodeRecord,
    Operation,
    Place,
    Plan,
)
from wulf.base.store import Run
from wulf.stats import estimate, model
from wulf.stats.estimate import host_signatures


def measuring(results: list[LaunchResult]) -> list[LaunchResult]:
    """Results that estimates are made of: scouts only chose the sizes, so they must not also be evidence."""
    return [result for result in results if result.launch.purpose == "measure"]


def analyze(run: Run) -> Analysis:
    """Estimates, models and advice of a run.  Pure: the same run gives the same analysis."""
    manifest = run.manifest
    return analyze_results(manifest.id, manifest.plan, manifest.operations, run.nodes, run.results)


def compare(base: Run, candidate: Run, margin: float) -> Comparison:
    """Compare what two stored runs have in common; a change within the margin, a share, does not matter."""
    return estimate.compare(
        base.analysis() or analyze(base),
        candidate.analysis() or analyze(candidate),
        base.nodes,
        candidate.nodes,
        margin=margin,
        plans=(base.manifest.plan, candidate.manifest.plan),
        candidate_is_earlier=candidate.manifest.created_at < base.manifest.created_at,
        higher=[operation.name for operation in base.manifest.operations if operation.better == "higher"],
    )


def analyze_results(
    name: str,
    plan: Plan,
    operations: list[Operation],
    nodes: list[NodeRecord],
    results: list[LaunchResult],
) -> Analysis:
    """Return what is derived from the results of a run called `name`; scouts may be among them."""
    evidence = measuring(results)
    launches = [result.launch for result in evidence]
    samples = [sample for result in evidence for sample in result.samples]
    cells = estimate.adjust(estimate.cells(samples, launches, plan, operations), evidence, plan)
    limits = _eager_limits(launches)
    patterns = {operation.name: operation.pattern for operation in operations}
    return Analysis(
        schema_version=SCHEMA_VERSION,
        run_id=name,
        cells=cells,
        models=[model.curve(curve, patterns[curve[0].cell.op], limits) for curve in _curves(cells)],
        parameters=list(model.loggp(cells, operations, limits)),
        overheads=list(estimate.over_tcp(cells, operations)),
        loads=list(estimate.under_load(cells, operations)),
        overlaps=list(estimate.overlaps(cells, operations)),
        resources=list(estimate.resources(evidence, plan.confidence)),
        hosts=host_signatures.advise(
            estimate.host_noise(evidence, cells, operations, plan.confidence), nodes
        ),
        periods=estimate.periods(samples, launches, plan),
        weekends=estimate.weekends(samples, launches, plan),
        warnings=estimate.advise(cells, results, nodes, plan, operations),
        launches_seen=len(results),
        launches_ok=sum(launch.status == "ok" for launch in launches),
        launches_failed=sum(result.launch.status == "failed" for result in results),
        launches_contaminated=sum(bool(launch.contamination) for launch in launches),
    )


def _eager_limits(launches: Sequence[Launch]) -> Mapping[str, int]:
    """Return what the MPI library of a run says of its own limits: it is the same in all launches."""
    return next((one.probe.eager_limits for one in launches if one.probe and one.probe.eager_limits), {})


def _curves(cells: list[CellEstimate]) -> list[list[CellEstimate]]:
    groups: dict[tuple[str, Place, str], list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        groups[cell.cell.op, cell.cell.place, cell.cell.setting].append(cell)
    return [sorted(group, key=lambda cell: cell.cell.size_bytes) for group in groups.values()]
