"""The data of the charts of a watch, and the words beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from wulf.base.records.watched import Alarm, WatchedSeries, WatchReport, WatchRun
from wulf.base.text import count
from wulf.base.units import format_share
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import name
from wulf.tools.watch.page import charts, words

#: Runs and nodes that have room in the chart of nodes.
RUNS, NODES = 90, 128


def history(
    id_: str,
    title: str,
    several: Sequence[WatchedSeries],
    alarms: Sequence[Alarm],
    runs: Mapping[int, WatchRun],
    report: WatchReport,
) -> Figure:
    """Return series over time, with marks where alarms say that they changed."""
    points = [
        (one, run, change)
        for one in several
        for run, change in zip(one.runs, one.change, strict=True)
        if run in runs
    ]
    main: Columns = {
        "at": [_local(runs[run]) for _, run, _ in points],
        "local": [words.at(runs[run].at, report) for _, run, _ in points],
        "ratio": rounded([1 + change for *_, change in points]),
        "series": [label(one) for one, *_ in points],
        "shown": [format_share(change) for *_, change in points],
    }
    groups = [group for group in words.together(alarms) if group[0].after_run in runs]
    marks: Columns = {
        "at": [_local(runs[group[0].after_run]) for group in groups],
        "label": [f"{group[0].id}: {words.change(group)}" for group in groups],
        "what": [f"{words.where(group)}: {words.what(group[0].op, group[0].size_bytes)}" for group in groups],
        "facts": [words.facts(group) for group in groups],
    }
    return Figure(
        id=id_,
        chart=charts.HISTORY,
        title=title,
        x_title="",
        y_title="time against what was usual",
        y=ticks.changes([1.0, *(1 + change for *_, change in points)]),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "marks": marks},
                summary=f"{count(len(several), 'series', 'series')} over "
                f"{count(len({run for _, run, _ in points}), 'run')}, with {count(len(groups), 'change')} marked.",
                caption="Each point is a run. The dashed line is the median before the last change; a vertical line is "
                "where a change was found, with its number: what else changed then is in its tooltip and in the table.",
            ),
        ),
    )


def nodes(
    id_: str,
    op: str,
    size_bytes: int,
    several: Sequence[WatchedSeries],
    runs: Mapping[int, WatchRun],
    report: WatchReport,
) -> Figure:
    """Return what every node adds in every run, by colour."""
    last = sorted({run for one in several for run in one.runs if run in runs})[-RUNS:]
    shown = set(last)
    # Those that are furthest from what is usual have room before others.
    ranked = sorted(several, key=lambda one: -abs(one.change[-1]) if one.change else 0.0)[:NODES]
    points = [
        (one.nodes[0], run, change)
        for one in sorted(ranked, key=lambda one: one.nodes)
        for run, change in zip(one.runs, one.change, strict=True)
        if run in shown
    ]
    main: Columns = {
        "node": [name(node) for node, *_ in points],
        "run": [run for _, run, _ in points],
        "local": [words.at(runs[run].at, report) for _, run, _ in points],
        "change": rounded([change for *_, change in points]),
        "shown": [format_share(change) for *_, change in points],
    }
    left_out = f" Not shown: {count(len(several) - NODES, 'more node')}." if len(several) > NODES else ""
    return Figure(
        id=id_,
        chart=charts.NODES,
        title=f"What each node adds: {words.what(op, size_bytes)}",
        x_title="run",
        y_title="node",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Change of {count(len(ranked), 'node')} against what is usual, over "
                f"{count(len(last), 'run')}.",
                caption="Time without what all nodes of the run have in common, relative to what is usual for the "
                f"node; red is slower.{left_out}",
            ),
        ),
    )


def label(one: WatchedSeries) -> str:
    """Return what a series is, in few words."""
    who = "all nodes" if one.level == "cluster" else "–".join(map(name, one.nodes))
    return f"{who}, {words.what(one.op, one.size_bytes)}"


def _local(run: WatchRun) -> str:
    """Return a run's local time; without a zone, a chart takes it for that of its reader and shows it as it is."""
    at = datetime.fromisoformat(run.at).replace(tzinfo=None) + timedelta(seconds=run.utc_offset_s)
    return at.isoformat(timespec="minutes")
