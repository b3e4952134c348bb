"""Alarms and runs in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from wulf.base.nodeset import fold
from wulf.base.records.watched import Alarm, FactChange, WatchReport
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_change, format_changes, format_fact
from wulf.page.words import name

#: Facts that are named in one line.
_FACTS = 4
_WORDS = 60


def what(op: str, size_bytes: int) -> str:
    """Return what is measured: ``mpi_pingpong 64 B``."""
    return f"{name(op)} {format_bytes(size_bytes)}" if size_bytes else name(op)


def where(alarms: Sequence[Alarm]) -> str:
    """Return whom alarms are about that have all else in common."""
    if alarms[0].level == "cluster":
        return "all nodes"
    if alarms[0].level == "link":
        return ", ".join("–".join(map(name, alarm.nodes)) for alarm in alarms)
    return printable(fold(node for alarm in alarms for node in alarm.nodes), _WORDS)


def change(alarms: Sequence[Alarm]) -> str:
    """Return by how much."""
    if len(alarms) == 1:
        return format_change(alarms[0].change)
    values = [alarm.change.value for alarm in alarms]
    return format_changes(min(values), max(values))


def together(alarms: Sequence[Alarm]) -> list[list[Alarm]]:
    """Return alarms in groups that differ in nothing but whom they are about."""
    groups: dict[tuple[object, ...], list[Alarm]] = {}
    for alarm in alarms:
        key = (
            alarm.level,
            alarm.op,
            alarm.size_bytes,
            alarm.kind,
            alarm.direction,
            alarm.after_run,
            alarm.state,
        )
        groups.setdefault(key, []).append(alarm)
    return list(groups.values())


def at(text: str, report: WatchReport) -> str:
    """Return a time as a person reads it, in the local time of the watch."""
    offset = report.last.utc_offset_s if report.last is not None else 0
    return f"{datetime.fromisoformat(text) + timedelta(seconds=offset):%a %d %b %Y %H:%M}"


def facts(alarms: Sequence[Alarm], most: int = _FACTS) -> str:
    """Return what else changed then, the rarest first."""
    changed: dict[tuple[str, str | None, str | None], list[FactChange]] = {}
    for alarm in alarms:
        for one in alarm.changed:
            changed.setdefault((one.fact, one.before, one.after), []).append(one)
    if not changed:
        return "no fact that wulf reads changed then"
    said = [_fact(several) for several in list(changed.values())[:most]]
    more = len(changed) - len(said)
    return "; ".join(said) + (f"; and {count(more, 'more fact')}" if more else "")


def _fact(several: Sequence[FactChange]) -> str:
    one = several[0]
    nodes = sorted({node for each in several for node in each.nodes if node})
    on = f" on {printable(fold(nodes), _WORDS)}" if nodes else " (what measures)"
    return f"{name(one.fact)}: {value(one.fact, one.before)} → {value(one.fact, one.after)}{on}"


def value(fact: str, raw: str | None) -> str:
    """Return the value of a fact, with its unit."""
    if raw is None:
        return "none"
    try:
        number = float(raw)
    except ValueError:
        return printable(raw, _WORDS) or "(empty)"
    return format_fact(fact, int(number) if number.is_integer() else number)


def sentence(alarms: Sequence[Alarm], report: WatchReport) -> str:
    """Return all of it in one sentence."""
    first = alarms[0]
    since = f"since {at(first.after_at, report)}" if first.after_at else "since the last run"
    kind = "drifted" if first.kind == "drift" else "stepped"
    said = f"{what(first.op, first.size_bytes)} has {kind} by {change(alarms)} {since}"
    return f"{where(alarms)}: {said}; {facts(alarms)}"
