"""From all that was measured to the levels that have just changed.

Three levels of series: the cluster (what all pairs have in common), each node, each pair of nodes (beside its nodes).
The chance of a false alarm is shared: every level has a part of the false alarms a month that there may be, and divides
it among all the looks that it takes in a month.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wulf.stats.core import changes as statistics
from wulf.tools.watch.history.decompose import FEWEST_NODES, NOBODY, Groups, Numbers, Values, decompose

Level = Literal["cluster", "node", "link"]
#: Level → false alarms of steps that it may have, of any number of series [1/month].
FALSE_STEPS_A_MONTH: dict[Level, float] = {"cluster": 0.1, "node": 0.15, "link": 0.15}
#: The same of what changes slowly.
FALSE_DRIFTS_A_MONTH: dict[Level, float] = {"cluster": 0.02, "node": 0.04, "link": 0.04}
#: Of all kinds and levels together.
FALSE_ALARMS_A_MONTH = sum(FALSE_STEPS_A_MONTH.values()) + sum(FALSE_DRIFTS_A_MONTH.values())
DAYS_A_MONTH = 30.44
#: Runs that are looked back at for a step, and days for a drift.
LOOK_BACK, DRIFT_LOOK_BACK_DAYS = 120, 400
#: Earlier runs of the same kind of day and part of the day, without which a run is not judged.
FEWEST_ALIKE = 2
#: A pair this far from its level is measured again in the next run [standard deviations].
SUSPICIOUS = 2.5
#: What all evidence that it takes is worth beside standard deviations: who was strange more than once comes first.
_EVIDENT = 10.0
_DAY_S = 86400.0
_WEEK_S = 7 * _DAY_S
_PART_OF_DAY_S = 6 * 3600.0


@dataclass(frozen=True)
class Way:
    """How it is looked for a kind of changes."""

    kind: Literal["step", "drift"]
    windows: tuple[int, ...]
    #: Values at the beginning of a level that the window is held against; None for those just before it.
    anchor: int | None
    #: Values from which on anything is judged; of a new level, and of pairs beside their nodes, fewer are enough, as
    #: the noise is known.
    fewest: int
    fewest_after: int
    #: Smaller changes are none [ratio − 1].
    margin: float
    rates: Mapping[Level, float]


STEP = Way("step", statistics.WINDOWS, None, 14, 3, 0.03, FALSE_STEPS_A_MONTH)
#: Values are the medians of weeks.
DRIFT = Way("drift", (3, 5, 8), 8, 6, 3, 0.05, FALSE_DRIFTS_A_MONTH)


@dataclass(frozen=True)
class Key:
    """What a series is of."""

    level: Level
    op: str
    size_bytes: int
    #: Names; none for the cluster.
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What was measured of one operation at one size, in any number of runs."""

    op: str
    size_bytes: int
    nodes: tuple[str, ...]
    #: Shape (entries,): place of the run in the timeline.
    runs: Numbers
    #: Places in `nodes`; the second is `NOBODY` where a node is alone.
    first: Numbers
    second: Numbers
    #: Logarithms of times [s].
    logs: Values


@dataclass(frozen=True)
class Timeline:
    """When runs were made."""

    #: Number of each run, ascending.
    numbers: Numbers
    #: Local time, in seconds since the midnight with which some Monday began.
    local_s: Values

    @property
    def keys(self) -> Numbers:
        """Kind of time of each run: the weekend or not, and which quarter of the day."""
        day = np.floor(self.local_s / 86400.0) % 7
        quarter = np.floor(self.local_s % 86400.0 / _PART_OF_DAY_S)
        return np.asarray((day >= 5) * 4 + quarter, dtype=np.int64)

    @property
    def runs_a_month(self) -> float:
        """How many runs there are in a month, by the usual time between two."""
        if self.local_s.size < 2:
            return DAYS_A_MONTH
        return DAYS_A_MONTH * 86400.0 / max(float(np.median(np.diff(self.local_s))), 60.0)


@dataclass(frozen=True)
class Change:
    """A level that has changed."""

    key: Key
    kind: Literal["step", "drift"]
    #: Number of the last run before it and of the first one after it.
    before_run: int
    after_run: int
    #: Of the logarithm, and its standard error.
    change: float
    error: float
    #: What is left of the change before it: this level against the one before that, in logarithms; None without one.
    left: float | None = None


@dataclass(frozen=True)
class Packed:
    """Series of one level, right-aligned: the newest value is in the last column."""

    keys: list[Key]
    #: Shape (s, w): place of the run in the timeline, -1 where there is no value.
    runs: Numbers
    values: Values

    @property
    def level(self) -> Level:
        """What all of them are of."""
        return self.keys[0].level


@dataclass(frozen=True)
class Verdict:
    """What a look at the history says."""

    changes: list[Change] = field(default_factory=list)
    #: Pairs to measure again in the next run, the strangest first.
    suspects: list[tuple[str, ...]] = field(default_factory=list)
    #: (level, operation, size) → change that the median series shows within three runs with a chance of 95 %.
    smallest: dict[tuple[Level, str, int], float] = field(default_factory=dict)


#: Series → numbers of the first runs after each of its changes.
Known = Mapping[Key, Sequence[int]]


def judge(measured: Sequence[Measured], timeline: Timeline, known: Known, way: Way = STEP) -> Verdict:
    """Say which levels have changed by the last run of the timeline, and which have not been known to.

    Parameters
    ----------
    known
        Changes that were found before: the level is what came after the last one.
    """
    verdict = Verdict()
    if not _comparable(timeline, way):
        return verdict
    kinds = [(packed, one) for one in measured for packed in packed_series(one)]
    looks = {
        level: sum(int(np.sum(_current(packed, timeline))) for packed, _ in kinds if packed.level == level)
        for level in way.rates
    }
    suspects: list[tuple[float, tuple[str, ...]]] = []
    for packed, one in kinds:
        now = _current(packed, timeline)
        if not np.any(now):
            continue
        alpha = way.rates[packed.level] / timeline.runs_a_month / looks[packed.level]
        found = _found(packed, timeline, known, way, alpha, told_apart=_told_apart(one))
        segments = _segments(packed, timeline, known)
        verdict.changes.extend(_changes(packed, timeline, segments, found, now, way))
        usual = found.smallest[now & np.isfinite(found.smallest)]
        if usual.size:
            verdict.smallest[packed.level, one.op, one.size_bytes] = math.expm1(float(np.median(usual)))
        if packed.level == "link":
            odd = np.flatnonzero(now & (np.abs(found.latest) >= SUSPICIOUS) & (found.evidence < 1))
            suspects += [
                (
                    _EVIDENT * float(found.evidence[row]) + abs(float(found.latest[row])),
                    packed.keys[row].nodes,
                )
                for row in odd
            ]
    verdict.suspects.extend(dict.fromkeys(nodes for _, nodes in sorted(suspects, reverse=True)))
    return verdict


def _found(
    packed: Packed, timeline: Timeline, known: Known, way: Way, alpha: float, *, told_apart: bool
) -> statistics.Found:
    segments = _segments(packed, timeline, known)
    values = packed.values
    pure = packed.level == "link" and told_apart
    if not pure:
        keys = np.where(packed.runs >= 0, timeline.keys[packed.runs], -1)
        values = statistics.without_pattern(values, segments, keys)
    settled = np.any(segments > 0, axis=1) | pure
    fewest = np.where(settled, way.fewest_after, way.fewest)
    return statistics.changes(values, segments, fewest, alpha, windows=way.windows, anchor=way.anchor)


def by_week(measured: Sequence[Measured], timeline: Timeline) -> tuple[list[Measured], Timeline]:
    """Return the medians of all weeks that are over, and a timeline of these: the first run of each.

    The last week of the timeline is not over.
    """
    weeks = np.floor(timeline.local_s / _WEEK_S).astype(np.int64)
    distinct, firsts, week_of = np.unique(weeks, return_index=True, return_inverse=True)
    over = Timeline(timeline.numbers[firsts][:-1], np.asarray(distinct[:-1] * _WEEK_S, dtype=np.float64))
    return [_by_week(one, week_of, distinct.size - 1) for one in measured], over


def _by_week(measured: Measured, week_of: Numbers, weeks: int) -> Measured:
    count = len(measured.nodes) + 1
    week = week_of[measured.runs]
    code = (week * count + measured.first) * count + measured.second + 1
    distinct, groups = np.unique(code[week < weeks], return_inverse=True)
    logs = Groups(groups, distinct.size).medians(measured.logs[week < weeks])
    return Measured(
        measured.op,
        measured.size_bytes,
        measured.nodes,
        distinct // count // count,
        distinct // count % count,
        distinct % count - 1,
        logs,
    )


def week_is_over(timeline: Timeline) -> bool:
    """Whether the last run is the first one of its week."""
    weeks = np.floor(timeline.local_s[-2:] / _WEEK_S)
    return weeks.size == 2 and bool(weeks[0] < weeks[1])


def _comparable(timeline: Timeline, way: Way) -> bool:
    """Whether there are enough runs before the last one, also of its kind of time."""
    keys = timeline.keys
    return keys.size > way.fewest and int(np.sum(keys[:-1] == keys[-1])) >= FEWEST_ALIKE


def _told_apart(measured: Measured) -> bool:
    used = np.concatenate([measured.first, measured.second])
    return len(np.unique(used[used != NOBODY])) >= FEWEST_NODES


def packed_series(measured: Measured) -> list[Packed]:
    """Return the series of the levels that there are; none of a level that is not told apart."""
    count = len(measured.nodes)
    codes = measured.first * (count + 1) + measured.second + 1
    distinct, places = np.unique(codes, return_inverse=True)
    ends = np.column_stack([distinct // (count + 1), distinct % (count + 1) - 1])
    parts = decompose(measured.runs, places, ends, measured.logs)
    op, size = measured.op, measured.size_bytes
    packed = []
    if np.any(np.isfinite(parts.cluster)):
        runs = np.flatnonzero(np.isfinite(parts.cluster))
        packed.append(_pack([Key("cluster", op, size, ())], np.zeros_like(runs), runs, parts.cluster[runs]))
    rows, runs = np.nonzero(np.isfinite(parts.nodes))
    if rows.size:
        keys = [Key("node", op, size, (name,)) for name in measured.nodes]
        packed.append(_pack(keys, rows, runs, parts.nodes[rows, runs]))
    alone = bool(np.all(ends[:, 1] == NOBODY))
    if not alone or not rows.size:
        level: Level = "node" if alone else "link"
        keys = [
            Key(level, op, size, tuple(measured.nodes[end] for end in pair if end != NOBODY)) for pair in ends
        ]
        some = np.isfinite(parts.left)
        packed.append(_pack(keys, places[some], measured.runs[some], parts.left[some]))
    return packed


def _pack(keys: list[Key], rows: Numbers, runs: Numbers, values: Values) -> Packed:
    order = np.lexsort((runs, rows))
    rows, runs, values = rows[order], runs[order], values[order]
    sizes = np.bincount(rows, minlength=len(keys))
    width = int(sizes.max()) if sizes.size else 0
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = width - sizes[rows] + np.arange(rows.size) - starts[rows]
    packed_runs = np.full((len(keys), width), -1, dtype=np.int64)
    packed_values = np.full((len(keys), width), np.nan)
    packed_runs[rows, columns], packed_values[rows, columns] = runs, values
    return Packed(keys, packed_runs, packed_values)


def _current(packed: Packed, timeline: Timeline) -> NDArray[np.bool_]:
    """Whether each series has a value of the last run."""
    return np.asarray(packed.runs[:, -1] == timeline.numbers.size - 1)


def _segments(packed: Packed, timeline: Timeline, known: Known) -> Numbers:
    """Return for each value how many changes came after it."""
    segments = np.zeros_like(packed.runs)
    rows = {key: row for row, key in enumerate(packed.keys)} if known else {}
    for key, afters in known.items():
        row = rows.get(key)
        if row is not None:
            for after in afters:
                segments[row] += timeline.numbers[packed.runs[row]] < after
    return np.where(packed.runs >= 0, segments, -1)


def _changes(
    packed: Packed,
    timeline: Timeline,
    segments: Numbers,
    found: statistics.Found,
    now: NDArray[np.bool_],
    way: Way,
) -> list[Change]:
    result = []
    for row in np.flatnonzero(now & (found.evidence >= 1) & (np.abs(found.change) >= math.log1p(way.margin))):
        runs = timeline.numbers[packed.runs[row]]
        after = int(found.since[row])
        before_run, after_run = int(runs[-after - 1]), int(runs[-after])
        change, error = float(found.change[row]), float(found.error[row])
        earlier = packed.values[row][segments[row] == 1][-statistics.BASE :]
        level = float(np.median(packed.values[row][-after:]))
        left = level - float(np.median(earlier)) if earlier.size else None
        result.append(Change(packed.keys[row], way.kind, before_run, after_run, change, error, left))
    return result
