"""Progress of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from wulf.base.nodeset import fold
from wulf.base.text import count
from wulf.face.cli.progress import Display, duration

if TYPE_CHECKING:
    from wulf.base.records import Launch, Place, Plan, Series
    from wulf.node.measuring.loop import State
    from wulf.node.probe import budget
    from wulf.node.probe.schedule import Forecast, Stream


class MeasureProgress(Display):
    """Shows where a measurement stands."""

    def launched(self, state: State) -> None:
        """Show a finished launch and the time left."""
        launch = state.last.launch
        if launch.status == "failed":
            self.note(f"launch {launch.id} failed: {launch.error}")
        text = (
            f"launch {state.launches}: {launch.op} {_who(launch)} · "
            f"{state.streams_with_interval}/{state.streams} with an interval, {state.streams_done} precise · "
            f"{time_left(state.left)}"
        )
        self.show(text, state.spent_s, state.left.most_s)

    def fits(self, plan: Plan, fit: budget.Fit, spent_s: float) -> None:
        """Say what fits into the budget, or what a series is."""
        for line in what_fits(plan, fit, spent_s):
            self.note(line)

    def paused(self, until_next_s: float, spent_s: float, left_s: float) -> None:
        """Show the time until the next block of a series."""
        text = f"next block in {duration(until_next_s)} · ends within {duration(left_s)}"
        self.show(text, spent_s, left_s, lines=False)

    def interrupted(self, path: Path) -> None:
        """Say how to go on."""
        self.note(f"interrupted; what was measured is kept: wulf measure --resume {path}")


def _who(launch: Launch) -> str:
    from wulf.base.records import RANKS_OF_A_PAIR

    if launch.pairs:
        return f"{count(len(launch.pairs), 'pair')} at once"
    nodes, ranks = list(dict.fromkeys(launch.place)), len(launch.place)
    return "–".join(nodes) if ranks <= RANKS_OF_A_PAIR else f"{fold(nodes)} ({count(ranks, 'rank')})"


def time_left(left: Forecast) -> str:
    """Return the time to the next decision, and to the end at the latest: the noise decides between the two."""
    most = f"ends within {duration(left.most_s)}"
    if left.intervals_s > 0:
        return f"intervals in about {duration(left.intervals_s)}, {most}"
    if left.least_s >= left.most_s:
        return most
    return f"done in {duration(left.least_s)} at the earliest, {most}"


def what_fits(plan: Plan, fit: budget.Fit, spent_s: float = 0.0) -> list[str]:
    """Return in words what a budget is enough for, and which would be enough for the rest; or what a series is."""
    from wulf.node.probe import budget

    if plan.series is not None:
        return _what_series(plan, plan.series, fit)
    left_s = max(plan.budget_s - spent_s, 0.0)
    what = f"{_streams(plan, fit.streams)}{_sizes(fit)}: {count(fit.launches, 'launch')} each"
    takes = f"take about {_exactly(fit.expected_s)}"
    lines = []
    if fit.expected_s > left_s:
        lines.append(f"{_exactly(left_s)} are hardly enough for {what}, which {takes}")
    elif fit.streams:
        lines.append(
            f"fits into {_exactly(left_s)}: {what} {takes}; the time left then narrows the intervals"
        )
    lacking = [f"no launch of {_streams(plan, fit.left_out)}"] if fit.left_out else []
    lacking += ["the other sizes"] if fit.thinned else []
    lacking += [f"{count(plan.min_launches, 'launch')} each"] if fit.launches < plan.min_launches else []
    if lacking:
        enough = budget.budget_for(fit.whole_s, spent_s)
        lines.append(f"does not fit: {'; '.join(lacking)}; --budget {_option(enough)} is enough for all")
    return lines


def _what_series(plan: Plan, series: Series, fit: budget.Fit) -> list[str]:
    from wulf.node.probe import budget

    begun = datetime.fromisoformat(series.begun_at)
    ends = (begun + timedelta(seconds=series.for_s)).astimezone()
    blocks = count(series.blocks, "block")
    lines = [
        f"{blocks}, one every {_exactly(series.every_s)} until {ends:%a %d %b %H:%M:%S} {series.time_zone}: "
        f"{_streams(plan, fit.streams)}{_sizes(fit)}, one launch each; a block takes about {_exactly(fit.expected_s)}"
    ]
    if fit.expected_s > series.every_s:
        every = _option(budget.budget_for(fit.expected_s))
        lines.append(
            f"a block takes longer than that: some will be left out; --every {every} is enough for all"
        )
    return lines


def _exactly(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else duration(seconds)


def _streams(plan: Plan, streams: Sequence[Stream]) -> str:
    groups: dict[str, list[str]] = {}
    for op in dict.fromkeys(op for op, _ in streams):
        places = [place for other, place in streams if other == op]
        groups.setdefault(_nodes(places) if op in plan.workload.groups else _pairs(places), []).append(op)
    return "; ".join(f"{', '.join(ops)} on {where}" for where, ops in groups.items())


def _nodes(places: Sequence[Place]) -> str:
    nodes = {node for place in places for node in place}
    return count(len(nodes), "node")


def _pairs(places: Sequence[Place]) -> str:
    return count(len(places), "pair")


def _sizes(fit: budget.Fit) -> str:
    """Return a comma and how many sizes; nothing where no operation has any but zero."""
    if not any(size for sizes in fit.sizes.values() for size in sizes):
        return ""
    some = sorted({len(sizes) for sizes in fit.sizes.values()})
    every = sorted({fit.all_sizes[op] for op in fit.sizes})
    of = f" of {_range(every)}" if fit.thinned else ""
    return f", {_range(some)}{of} size{'s' if every != [1] else ''}"


def _range(counts: Sequence[int]) -> str:
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _option(seconds: float) -> str:
    """Return a budget as it is typed."""
    return f"{seconds / 60:.0f}m" if seconds % 60 == 0 else f"{seconds:.0f}s"
