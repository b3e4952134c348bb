"""From changes to alarms: which are new, which are over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from wulf.base.records import Estimate
from wulf.base.records.watched import Alarm
from wulf.tools.watch.history.judge import DRIFT, STEP, Change, Key

#: An alarm that nobody has accepted for so long is what is usual now [days].
AGE_DAYS = 30
#: Runs in which the place and the size of a step are found anew, with what has been measured since: at first a few high
#: values before it may pass for its beginning.
YOUNG = 3
#: States of alarms that a change back may belong to.
_UNDONE = frozenset({"open", "noted"})
_CONFIDENCE, _WIDTH = 0.95, 1.96
#: Level and its opposite are the same level again when they differ by no more than so many standard errors.
_SAME = 2.0


def key_of(alarm: Alarm) -> Key:
    """Return the series of an alarm."""
    return Key(alarm.level, alarm.op, alarm.size_bytes, tuple(alarm.nodes))


def known(alarms: Iterable[Alarm], runs: Sequence[int]) -> dict[Key, list[int]]:
    """Return the first runs after all changes of each series, but for young ones, whose place is found anew.

    Parameters
    ----------
    runs
        Numbers of the runs that have measured something, the last one included.
    """
    found: dict[Key, list[int]] = {}
    for alarm in alarms:
        if not _is_young(alarm, runs):
            found.setdefault(key_of(alarm), []).append(alarm.after_run)
    return found


def _is_young(alarm: Alarm, runs: Sequence[int]) -> bool:
    return alarm.kind == "step" and alarm.found_run >= (runs[-1 - YOUNG] if len(runs) > YOUNG else 0)


def take(
    changes: Sequence[Change], alarms: Sequence[Alarm], runs: Sequence[int], now: datetime
) -> tuple[list[Alarm], list[Alarm]]:
    """Return the alarms that changes make, and those of before that are others by them or by their age.

    Parameters
    ----------
    changes
        Of the last run; of two of one series the first counts.
    runs, now
        Numbers of the runs that have measured something, and the time of the last one.
    """
    at = now.isoformat(timespec="seconds")
    standing = {alarm.id: alarm for alarm in alarms}
    of_key: dict[Key, list[Alarm]] = {}
    for alarm in alarms:
        of_key.setdefault(key_of(alarm), []).append(alarm)
    new: dict[Key, Alarm] = {}
    for change in changes:
        if change.key in new:
            continue
        fresh = _alarm(max(standing, default=0) + len(new) + 1, change, runs[-1], at)
        before = of_key.get(change.key, [])
        same = next(
            (one for one in before if _is_young(one, runs) and one.direction == fresh.direction), None
        )
        if same is not None:
            standing[same.id] = _found_anew(standing[same.id], fresh)
            continue
        undone = next(
            (
                one
                for one in reversed(before)
                if one.state in _UNDONE and _undoes(change, one, newest=one is before[-1])
            ),
            None,
        )
        if undone is not None:
            fresh = _closed(fresh, "noted", at)
            if undone.state == "open":
                standing[undone.id] = _closed(undone, "returned", at)
        new[change.key] = fresh
    for alarm in list(standing.values()):
        if alarm.state == "open" and now - datetime.fromisoformat(alarm.found_at) > timedelta(days=AGE_DAYS):
            standing[alarm.id] = _closed(alarm, "aged", at)
    return list(new.values()), [standing[alarm.id] for alarm in alarms if standing[alarm.id] is not alarm]


def _found_anew(alarm: Alarm, fresh: Alarm) -> Alarm:
    """Return a young alarm with place and size as they are seen now.

    One that has become clearly smaller is on its way back: then its size is what it was.
    """
    if _far(fresh) < _far(alarm) - _SAME * _error(fresh):
        return alarm
    return msgspec.structs.replace(
        alarm, before_run=fresh.before_run, after_run=fresh.after_run, change=fresh.change
    )


def accept(alarms: Iterable[Alarm], now: datetime, note: str) -> list[Alarm]:
    """Return open alarms as a person has accepted them."""
    at = now.isoformat(timespec="seconds")
    return [
        msgspec.structs.replace(_closed(alarm, "accepted", at), note=note)
        for alarm in alarms
        if alarm.state == "open"
    ]


def _closed(alarm: Alarm, state: Literal["accepted", "returned", "aged", "noted"], at: str) -> Alarm:
    return msgspec.structs.replace(alarm, state=state, closed_at=at)


def _far(alarm: Alarm) -> float:
    return abs(math.log(alarm.change.value))


def _error(alarm: Alarm) -> float:
    """Return the standard error of a change, as `_alarm` has made its interval of it."""
    return math.log((alarm.change.high or 1.0) / (alarm.change.low or 1.0)) / 2 / _WIDTH


def _undoes(change: Change, before: Alarm, *, newest: bool) -> bool:
    """Whether a level is what it was before an alarm; of the newest one that is seen directly, too."""
    lefts = [change.change + math.log(before.change.value)]
    if newest and change.left is not None:
        lefts.append(change.left)
    margin = math.log1p((DRIFT if before.kind == "drift" else STEP).margin)
    within = max(margin, _SAME * change.error)
    return change.change * math.log(before.change.value) < 0 and min(map(abs, lefts)) <= within


def _alarm(number: int, change: Change, run: int, at: str) -> Alarm:
    slower = change.change > 0
    return Alarm(
        id=number,
        level=change.key.level,
        op=change.key.op,
        size_bytes=change.key.size_bytes,
        nodes=list(change.key.nodes),
        kind=change.kind,
        direction="slower" if slower else "faster",
        change=Estimate(
            value=math.exp(change.change),
            low=math.exp(change.change - _WIDTH * change.error),
            high=math.exp(change.change + _WIDTH * change.error),
            confidence=_CONFIDENCE,
            unit="ratio",
            n=max(run - change.after_run + 1, 1),
            method="median of the window ÷ median before",
        ),
        before_run=change.before_run,
        before_at="",
        after_run=change.after_run,
        after_at="",
        found_run=run,
        found_at=at,
        # What became faster calls for nobody; it is kept and shown.
        state="open" if slower else "noted",
        closed_at=None if slower else at,
    )
