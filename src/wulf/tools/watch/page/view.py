"""From what a watch says to what is shown of it.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wulf.base.nodeset import fold, reasons_text
from wulf.base.records.watched import Alarm, WatchedSeries, WatchReport, WatchRun
from wulf.base.text import count, printable
from wulf.base.units import format_share
from wulf.page.blocks import Notes, Page, Section, Verdict
from wulf.page.parts import Column, Figure, Flag, Item, Table
from wulf.tools.watch.page import figures, words

#: Runs in the table, and alarms that have a chart of their own.
_RUNS, _CHARTS = 30, 12
_STATES: dict[str, Flag] = {
    "open": "error",
    "noted": "good",
    "accepted": "",
    "returned": "",
    "aged": "unknown",
}
CLOSED = "Earlier changes, and what became faster"
NONE_CLOSED = "none in the last 90 days"
_LEVELS = {"cluster": "all nodes together", "node": "one node", "link": "one link"}


def build(report: WatchReport, runs: Sequence[WatchRun], series: Sequence[WatchedSeries]) -> Page:
    """Return all that is shown."""
    by_number = {run.number: run for run in runs}
    groups = words.together(report.open)
    drawn = [*groups, *(group for group in words.together(report.closed) if group[0].state != "noted")]
    history = (*_cluster(report, series, by_number), *_nodes(report, series, by_number))
    flag: Flag = "error" if report.open else "unknown" if report.untold else "good"
    return Page(
        title=_verdict(report),
        lede=_lede(report),
        kind=f"Watch over {printable(report.name, 60)}",
        verb="watch",
        head=_head(report, flag, groups),
        sections=(
            Section(
                "open",
                "What has changed",
                (
                    _alarms("What has changed", report, groups, "nothing that was not accepted"),
                    *_drawn(report, drawn[:_CHARTS], series, by_number),
                ),
            ),
            *([Section("history", "History", history)] if history else []),
            Section("closed", CLOSED, (_alarms(CLOSED, report, words.together(report.closed), NONE_CLOSED),)),
            Section("runs", "Runs", (_runs(report, runs),)),
            Section("notes", "What must be known", (Notes(_notes(report)), _shown(report))),
        ),
    )


def _head(report: WatchReport, flag: Flag, groups: Sequence[Sequence[Alarm]]) -> tuple[Verdict, ...]:
    """Return what has changed, and what nobody could have seen."""
    said = [words.sentence(group, report) for group in groups]
    doubts = [printable(f"cannot tell: {doubt}", 400) for doubt in report.untold]
    return (Verdict(flag, (*said, *doubts)),) if said or doubts else ()


def _lede(report: WatchReport) -> str:
    if report.first_at is None or report.last is None:
        return "No run yet."
    counts = ", ".join(f"{number} {status}" for status, number in sorted(report.runs.items()))
    new = f", {len(report.new)} of them new" if report.new else ""
    alarms = f"{count(len(report.open), 'alarm')} open{new}. " if report.open else ""
    return (
        f"{alarms}{count(len(report.nodes), 'node')} ({printable(fold(report.nodes), 80)}), runs since "
        f"{words.at(report.first_at, report)}: {counts}. The last one: {words.at(report.last.at, report)}, "
        f"{_outcome(report.last)}."
    )


def _outcome(run: WatchRun) -> str:
    if run.status != "measured":
        return f"{run.status}: {printable(run.reason, 300)}"
    without = f", without {printable(fold(run.skipped), 80)}" if run.skipped else ""
    return f"{count(run.pairs, 'pair')} measured{without}"


def _verdict(report: WatchReport) -> str:
    if report.open:
        first = words.together(report.open)[0]
        more = (
            f" and {count(len(report.open) - len(first), 'more alarm')}"
            if len(report.open) > len(first)
            else ""
        )
        return f"{words.where(first)}: {words.what(first[0].op, first[0].size_bytes)} {words.change(first)}{more}"
    if report.learning:
        return f"Nothing is judged yet: {report.learning}"
    if report.untold:
        return f"Cannot tell whether anything has changed: {report.untold[0]}"
    return f"Nothing has changed{_would_see(report)}"


def _would_see(report: WatchReport) -> str:
    """Say which step of a node (where these are not told apart: of what there is) would have been found."""
    steps = [one.smallest for one in report.shown if one.level == "node"]
    whom = "a node" if steps else "a step"
    steps = steps or [one.smallest for one in report.shown]
    return f": {whom} of {format_share(max(steps))} or more would be found by the third run" if steps else ""


def _alarms(title: str, report: WatchReport, groups: Sequence[Sequence[Alarm]], empty: str) -> Table:
    return Table(
        title=title,
        columns=(
            Column("number", whole=True),
            Column("where"),
            Column("what"),
            Column("change of the time", numeric=True),
            Column("since", whole=True),
            Column("before it", narrow=False, whole=True),
            Column("state"),
            Column("changed then"),
        ),
        rows=tuple(_alarm(group, report) for group in groups),
        note="Changes with 95 % intervals, as they were when they were found." if groups else "",
        empty=empty,
    )


def _alarm(group: Sequence[Alarm], report: WatchReport) -> tuple[Item, ...]:
    first = group[0]
    state = first.state if not first.note else f"{first.state}: {printable(first.note, 200)}"
    kind = " (drift)" if first.kind == "drift" else ""
    return (
        Item(_numbers(group)),
        Item(words.where(group)),
        Item(words.what(first.op, first.size_bytes)),
        Item(words.change(group) + kind, first.change.value),
        Item(words.at(first.after_at, report) if first.after_at else f"run {first.after_run}"),
        Item(words.at(first.before_at, report) if first.before_at else f"run {first.before_run}"),
        Item(state, None, _STATES[first.state]),
        Item(words.facts(group)),
    )


def _numbers(group: Sequence[Alarm]) -> str:
    numbers = sorted(alarm.id for alarm in group)
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"


def _shown(report: WatchReport) -> Table:
    return Table(
        title="What would be found soon",
        columns=(Column("level"), Column("what"), Column("smallest step", numeric=True)),
        rows=tuple(
            (
                Item(_LEVELS[one.level]),
                Item(words.what(one.op, one.size_bytes)),
                Item(format_share(one.smallest), one.smallest),
            )
            for one in report.shown
        ),
        note="A step of so much is found by the third run after it in 95 of 100 cases, on the usual series of its "
        "level; smaller ones take longer.",
        empty="unknown until changes can be told from noise",
    )


def _runs(report: WatchReport, runs: Sequence[WatchRun]) -> Table:
    flags: dict[str, Flag] = {"measured": "", "skipped": "unknown", "failed": "error"}
    return Table(
        title=f"The last {count(min(len(runs), _RUNS), 'run')}",
        columns=(
            Column("run", numeric=True),
            Column("when", whole=True),
            Column("status"),
            Column("pairs", numeric=True),
            Column("left out, and why"),
        ),
        rows=tuple(
            (
                Item(str(run.number), run.number),
                Item(words.at(run.at, report)),
                Item(run.status, None, flags[run.status]),
                Item(str(run.pairs), run.pairs),
                Item(
                    printable("; ".join(filter(None, [run.reason, reasons_text(run.skipped)])), 300)
                    or "nobody"
                ),
            )
            for run in reversed(runs[-_RUNS:])
        ),
        empty="no run yet",
    )


def _cluster(
    report: WatchReport, series: Sequence[WatchedSeries], runs: dict[int, WatchRun]
) -> Iterable[Figure]:
    mine = [one for one in series if one.level == "cluster" and one.runs]
    if mine:
        alarms = [alarm for alarm in (*report.open, *report.closed) if alarm.level == "cluster"]
        yield figures.history("cluster", "All nodes together", mine, alarms, runs, report)


def _nodes(
    report: WatchReport, series: Sequence[WatchedSeries], runs: dict[int, WatchRun]
) -> Iterable[Figure]:
    kinds = dict.fromkeys((one.op, one.size_bytes) for one in series if one.level == "node")
    for number, (op, size) in enumerate(kinds):
        mine = [
            one
            for one in series
            if one.level == "node" and (one.op, one.size_bytes) == (op, size) and one.runs
        ]
        if mine:
            yield figures.nodes(f"nodes-{number}", op, size, mine, runs, report)


def _drawn(
    report: WatchReport,
    groups: Sequence[Sequence[Alarm]],
    series: Sequence[WatchedSeries],
    runs: dict[int, WatchRun],
) -> Iterable[Figure]:
    for group in groups:
        if group[0].level == "cluster":
            continue
        keys = {(one.level, one.op, one.size_bytes, tuple(one.nodes)) for one in group[:_CHARTS]}
        mine = [
            one
            for one in series
            if (one.level, one.op, one.size_bytes, tuple(one.nodes)) in keys and one.runs
        ]
        title = f"{_numbers(group)}: {words.where(group)}, {words.what(group[0].op, group[0].size_bytes)}"
        if mine:
            yield figures.history(f"alarm-{group[0].id}", title, mine, group, runs, report)


def _audited(report: WatchReport) -> str:
    """Say what the last audit found, where one was made, and what it could not look at."""
    if len(report.unaudited) == len(report.nodes) and not report.findings:
        return "No audit is known of these nodes: wulf audit makes one."
    findings = ", ".join(f"{number} {severity}" for severity, number in sorted(report.findings.items()))
    gaps = f"; up to {count(report.unjudged, 'check')} of a node could not be made" if report.unjudged else ""
    without = f"; none is known of {printable(fold(report.unaudited), 80)}" if report.unaudited else ""
    return f"The last audit found: {findings or 'nothing'}{gaps}{without} (wulf audit says what)."


def _notes(report: WatchReport) -> tuple[str, ...]:
    coverage = report.coverage
    oldest = (
        f", the oldest {count(round(coverage.oldest_days), 'day')} ago"
        if coverage.oldest_days is not None
        else ""
    )
    return (
        f"Links: {coverage.measured} of {count(coverage.pairs, 'pair')} measured so far{oldest}.",
        _audited(report),
        f"Where nothing changes, {report.false_alarms_a_month:g} false alarms a month are to be expected, over all "
        "series together: docs/howto/watch.md says how.",
        f"History: {report.history}",
    )
