"""What the reader of a run must be told: the list of all advice, the worst first.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.records import Advice, CellEstimate, LaunchResult, NodeRecord, Operation, Plan
from wulf.stats.estimate import figure_advice, files, launch_advice, order_effects, reference_adjustment


def advise(
    cells: Sequence[CellEstimate],
    results: Sequence[LaunchResult],
    nodes: Sequence[NodeRecord],
    plan: Plan,
    operations: Sequence[Operation],
) -> list[Advice]:
    """Everything about a run that a reader must know, the worst first.

    Parameters
    ----------
    cells
        Estimates of the run.
    results
        Its launches, failed ones and scouts included.
    nodes
        Its nodes, those that did not answer included.
    plan
        What was wanted.
    operations
        What each operation does.
    """
    streams = figure_advice.streams_of(cells)
    silent = {operation.name for operation in operations if operation.pattern == "none"}
    # A program or a disk may take any time; a message that takes as long as a tick has waited for one.
    programs = {one.name for one in operations if one.pattern == "application" or one.files}
    found = [
        *launch_advice.unreachable(nodes),
        *launch_advice.left_out(plan),
        *launch_advice.failed(results, plan),
        *launch_advice.not_begun(results, plan),
        *figure_advice.of_streams(streams, plan, programs),
        *figure_advice.dependent(streams, plan),
        *figure_advice.not_tested(streams, plan),
        *launch_advice.contaminated(results),
        *launch_advice.one_machine(results),
        *launch_advice.company(results),
        *launch_advice.shared_cpu(results),
        *files.advise(cells, results, operations),
        *order_effects.advise(cells, operations),
        # Where nobody sends, what the clock costs is the figure itself.
        *launch_advice.clock_cost(result for result in results if result.launch.op not in silent),
        *launch_advice.warmup(results, plan),
        *figure_advice.one_run(streams),
        *reference_adjustment.advise(cells),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda advice: order[advice.severity])
