"""From a history to its alarms and to what is said of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from wulf.base.must_see import must_see
from wulf.base.records import SCHEMA_VERSION
from wulf.base.records.watched import Alarm, Coverage, Shown, WatchedSeries, WatchReport, WatchRun
from wulf.base.store.history import History, Rows
from wulf.base.text import HAS, count, printable
from wulf.base.units import format_bytes, format_share
from wulf.stats.core.changes import SOON
from wulf.tools.watch.history import alarms as alarming
from wulf.tools.watch.history import judge
from wulf.tools.watch.history.decompose import NOBODY
from wulf.tools.watch.observations import CONTROLLER, FINDING, UNJUDGED

#: Closed alarms are shown for so long.
_CLOSED_FOR = timedelta(days=90)
#: Some Monday.
_MONDAY = datetime(1900, 1, 1)
#: Facts that are kept with an alarm at most: the rarest.
_FACTS = 40
#: Runs that are drawn.
_DRAWN_RUNS = 400
#: Where more than this share of all that was measured was under other load, that is what is usual.
_USUALLY_DISTURBED = 0.5
#: After so many runs that have measured nothing a step would have been found, and nobody can say that there is none.
SILENT = SOON
#: Characters of why a run has measured nothing.
_REASON = 200
_LEVELS = {"cluster": "all nodes together", "node": "one node", "link": "one link"}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the last run has brought."""

    new: list[Alarm]
    suspects: list[tuple[str, str]]
    shown: list[Shown]


def update(history: History, now: datetime) -> Judged:
    """Judge the last run of a history, keep the alarms that follow, and say what to measure again."""
    runs = [run for run in history.runs() if run.status == "measured"]
    verdict, drifts = look(history, runs)
    if not runs:
        return Judged(new=[], suspects=[], shown=[])
    new, over = alarming.take(
        [*verdict.changes, *drifts],
        history.alarms(),
        [run.number for run in runs],
        now.astimezone(UTC),
    )
    history.put_alarms([*new, *over])
    suspects = [(nodes[0], nodes[1]) for nodes in verdict.suspects]
    history.put_suspects(suspects)
    return Judged(new=new, suspects=suspects, shown=_shown(verdict))


def look(history: History, runs: Sequence[WatchRun]) -> tuple[judge.Verdict, list[judge.Change]]:
    """Return what the last of these runs says: steps, and where it is the first one of a week drifts."""
    recent = runs[-judge.LOOK_BACK :]
    known = alarming.known(history.alarms(), [run.number for run in runs])
    ignored = _ignored(history)
    timeline = timeline_of(recent)
    verdict = judge.judge(measured(history, recent, ignored), timeline, known)
    if not judge.week_is_over(timeline):
        return verdict, []
    since = now_of(runs[-1]) - timedelta(days=judge.DRIFT_LOOK_BACK_DAYS)
    long = [run for run in runs if now_of(run) >= since]
    weekly, weeks = judge.by_week(measured(history, long, ignored), timeline_of(long))
    return verdict, judge.judge(weekly, weeks, known, judge.DRIFT).changes


def _ignored(history: History) -> set[tuple[int, str, int, str, str]]:
    """Return what was measured under other load, unless that is usual here."""
    disturbed = history.disturbed()
    return disturbed if len(disturbed) <= _USUALLY_DISTURBED * history.count_times() else set()


def now_of(run: WatchRun) -> datetime:
    """Return when a run was made."""
    return datetime.fromisoformat(run.at)


def timeline_of(runs: Sequence[WatchRun]) -> judge.Timeline:
    """Return when runs were made, in local time."""
    local = [(now_of(run).replace(tzinfo=None) - _MONDAY).total_seconds() + run.utc_offset_s for run in runs]
    return judge.Timeline(np.array([run.number for run in runs], dtype=np.int64), np.array(local))


def measured(
    history: History, runs: Sequence[WatchRun], ignored: set[tuple[int, str, int, str, str]]
) -> list[judge.Measured]:
    """Return what these runs have measured, without what is ignored."""
    if not runs:
        return []
    place = {run.number: number for number, run in enumerate(runs)}
    return [
        found
        for rows in history.times(runs[0].number - 1)
        if (found := _measured(rows, place, ignored)) is not None
    ]


def _measured(
    rows: Rows, place: dict[int, int], ignored: set[tuple[int, str, int, str, str]]
) -> judge.Measured | None:
    kept = [
        entry
        for entry in zip(rows.run, rows.node, rows.peer, rows.time_s, strict=True)
        if entry[0] in place and (entry[0], rows.op, rows.size_bytes, entry[1], entry[2]) not in ignored
    ]
    if not kept:
        return None
    names = sorted({name for _, node, peer, _ in kept for name in (node, peer) if name})
    number = {name: index for index, name in enumerate(names)} | {"": NOBODY}
    runs, nodes, peers, times_s = zip(*kept, strict=True)
    return judge.Measured(
        rows.op,
        rows.size_bytes,
        tuple(names),
        np.array([place[run] for run in runs], dtype=np.int64),
        np.array([number[node] for node in nodes], dtype=np.int64),
        np.array([number[peer] for peer in peers], dtype=np.int64),
        np.log(np.array(times_s, dtype=np.float64)),
    )


def _shown(verdict: judge.Verdict) -> list[Shown]:
    return [
        Shown(level=level, op=op, size_bytes=size, smallest=smallest)
        for (level, op, size), smallest in sorted(verdict.smallest.items())
    ]


def report(
    history: History, name: str, nodes: Sequence[str], now: datetime, judged: Judged | None
) -> WatchReport:
    """Return what is said of a watch.

    Parameters
    ----------
    judged
        What the last run has brought, where that was just now.
    """
    runs = history.runs()
    done = [run for run in runs if run.status == "measured"]
    alarms = [_with_facts(history, alarm, nodes) for alarm in history.alarms()]
    recent = [
        alarm
        for alarm in alarms
        if alarm.closed_at is not None and now - datetime.fromisoformat(alarm.closed_at) <= _CLOSED_FOR
    ]
    if judged is None:
        judged = Judged(new=[], suspects=[], shown=_shown(look(history, done)[0]) if done else [])
    known = {node: history.facts_of(node) for node in nodes}
    return WatchReport(
        schema_version=SCHEMA_VERSION,
        name=name,
        nodes=list(nodes),
        history=str(history.path),
        runs=dict(Counter(run.status for run in runs)),
        first_at=runs[0].at if runs else None,
        last=runs[-1] if runs else None,
        learning=_learning(done),
        unaudited=[node for node in nodes if UNJUDGED not in known[node]],
        unjudged=max((int(facts.get(UNJUDGED) or 0) for facts in known.values()), default=0),
        untold=list(_untold(runs, done, judged.shown)),
        new=[alarm.id for alarm in judged.new],
        open=[alarm for alarm in reversed(alarms) if alarm.state == "open"],
        closed=list(reversed(recent)),
        shown=judged.shown,
        coverage=_coverage(history, nodes, done, now),
        findings=_findings(known.values()),
        false_alarms_a_month=judge.FALSE_ALARMS_A_MONTH,
    )


def _learning(runs: Sequence[WatchRun]) -> str:
    if len(runs) <= judge.STEP.fewest:
        return (
            f"{len(runs)} of the {judge.STEP.fewest + 1} runs that it takes until a change is told from noise"
        )
    keys = timeline_of(runs).keys
    if int(np.sum(keys[:-1] == keys[-1])) < judge.FEWEST_ALIKE:
        return "the last run was at another time of the week than any two before it, and was not judged"
    return ""


def _with_facts(history: History, alarm: Alarm, nodes: Sequence[str]) -> Alarm:
    """Return an alarm with what changed on its nodes, and in what measures."""
    where = [*(alarm.nodes or nodes), CONTROLLER]
    changed = history.fact_changes(where, alarm.before_run, alarm.after_run)
    return msgspec.structs.replace(alarm, changed=changed[:_FACTS])


def _coverage(history: History, nodes: Sequence[str], runs: Sequence[WatchRun], now: datetime) -> Coverage:
    last = history.last_measured()
    at = {run.number: now_of(run) for run in runs}
    ages = [(now - at[number]).total_seconds() / 86400 for number in last.values() if number in at]
    return Coverage(
        pairs=math.comb(len(nodes), 2),
        measured=len({frozenset(pair) for pair in last if set(pair) <= set(nodes)}),
        oldest_days=max(ages) if ages else None,
    )


def _untold(runs: Sequence[WatchRun], done: Sequence[WatchRun], shown: Sequence[Shown]) -> Iterator[str]:
    """Yield why nobody can say that nothing has changed by now, most important first."""
    learning = _learning(done)
    if learning:
        yield learning
    silent = len(runs) - (runs.index(done[-1]) + 1) if done else 0
    if silent >= SILENT:
        why = printable(runs[-1].reason, _REASON) or runs[-1].status
        yield f"the last {count(silent, 'run', verbs=HAS)} measured nothing ({why})"
    for one in shown:
        wanted = must_see(one.size_bytes)
        if not one.smallest <= wanted:
            yield (
                f"{_LEVELS[one.level]}, {one.op} at {format_bytes(one.size_bytes)}: only a step of "
                f"{format_share(one.smallest)} or more would be found soon (it should be {format_share(wanted)})"
            )
    blind = {(one.op, one.size_bytes) for one in shown}
    if done and not learning and not blind:
        yield "the last run has measured nothing that a step could be found in soon"


def _findings(known: Iterable[Mapping[str, str | None]]) -> dict[str, int]:
    severities: dict[str, str] = {}
    for facts in known:
        for fact, value in facts.items():
            if fact.startswith(FINDING) and value is not None:
                severities[fact] = value
    return dict(Counter(severities.values()))


def series(history: History, alarms: Sequence[Alarm]) -> list[WatchedSeries]:
    """Return the levels over time: of the cluster, of all nodes, and of the pairs that alarms are about."""
    runs = [run for run in history.runs() if run.status == "measured"][-_DRAWN_RUNS:]
    if not runs:
        return []
    known = alarming.known(history.alarms(), [])
    wanted = {alarming.key_of(alarm) for alarm in alarms}
    return [
        _series(packed, row, runs, known)
        for one in measured(history, runs, _ignored(history))
        for packed in judge.packed_series(one)
        for row, key in enumerate(packed.keys)
        if key.level != "link" or key in wanted
    ]


def _series(packed: judge.Packed, row: int, runs: Sequence[WatchRun], known: judge.Known) -> WatchedSeries:
    key = packed.keys[row]
    there = packed.runs[row] >= 0
    numbers = [runs[place].number for place in packed.runs[row][there]]
    values = packed.values[row][there]
    last = max(known.get(key, ()), default=None)
    before = [value for number, value in zip(numbers, values, strict=True) if last is None or number < last]
    usual = float(np.median(before if before else values)) if values.size else 0.0
    return WatchedSeries(
        level=key.level,
        op=key.op,
        size_bytes=key.size_bytes,
        nodes=list(key.nodes),
        runs=numbers,
        change=[float(ratio) for ratio in np.expm1(values - usual)],
    )
