"""What of a run fits into its time: the sizes there are to choose from, what launches may cost, a forecast.  Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wulf.base.records import LaunchResult, Operation, Plan
from wulf.node.probe import budget, ladder, schedule


def one_of_each(
    streams: Sequence[schedule.Stream],
    ladders: Mapping[str, Sequence[Sequence[int]]],
    costs: Mapping[str, budget.Cost],
) -> budget.Fit:
    """Return what a block of a series is: a launch of every stream at all its sizes, however long that takes."""
    return budget.fit(streams, ladders, costs, {}, 1, math.inf)


def choices(
    plan: Plan,
    scouts: Sequence[LaunchResult],
    fixed: Mapping[str, list[int]],
) -> dict[str, list[list[int]]]:
    """Return the sizes that each operation may be measured at: as many as there are, then fewer.

    Parameters
    ----------
    fixed
        Sizes of the operations that have begun: they leave no choice, and neither does a ladder with a name.
    """
    base = schedule.base_ladders(plan)
    found = {}
    for op, sizes in schedule.ladders(plan, scouts).items():
        if op in fixed:
            found[op] = [fixed[op]]
        elif plan.ladder != ladder.ADAPTIVE:
            found[op] = [sizes]
        else:
            added = [sizes] if len(sizes) > len(base[op]) else []
            found[op] = [*added, *ladder.ever_fewer(base[op])]
    return found


def assumed(
    plan: Plan,
    operations: Mapping[str, Operation],
    ladders: Mapping[str, Sequence[Sequence[int]]],
    look_s: float,
    width: Mapping[str, float],
) -> dict[str, budget.Cost]:
    """Return what a launch of each operation may take, before one has been timed."""
    return {
        op: budget.assumed(plan, operations[op].transport, ladders[op][0], look_s, width[op])
        for op in plan.workload.ops
    }


def forecast(plan: Plan, operations: Sequence[Operation], look_s: float) -> budget.Fit:
    """Return what fits into the budget of a run that has not begun."""
    known = {operation.name: operation for operation in operations}
    ladders = choices(plan, [], {})
    costs = assumed(plan, known, ladders, look_s, {op: schedule.width(plan, op) for op in plan.workload.ops})
    if plan.series is not None:
        return one_of_each(schedule.streams(plan), ladders, costs)
    return fit_of(plan, schedule.streams(plan), ladders, costs, {}, plan.budget_s)


def fit_of(
    plan: Plan,
    streams: Sequence[schedule.Stream],
    ladders: Mapping[str, Sequence[Sequence[int]]],
    costs: Mapping[str, budget.Cost],
    done: Mapping[schedule.Stream, int],
    left_s: float,
) -> budget.Fit:
    """Return what of a plan's streams fits into the time that is left; see `wulf.node.probe.budget.fit`."""
    return budget.fit(
        streams,
        ladders,
        costs,
        done,
        plan.min_launches,
        left_s,
        together=plan.workload.at_once,
        all_needed=plan.all_needed,
    )
