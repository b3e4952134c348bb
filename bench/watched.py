"""A simulated cluster under watch: what its runs would measure, with noise as real clusters have it.

Logarithm of a time between two nodes = what is usual for the pair + what all have in common in the run + what each of
both nodes adds in it + what only this pair has. Each of the last three is an offset from run to run, as
docs/explanation/method.md describes it: half of its variance depends on the run before (an autoregression), half is
heavy-tailed (Student's t). All together they make times differ by 2 to 5 % from one run to another. Beside these there
are runs in which a node is much slower, for no reason that lasts, and a weekend on which all is different, some nodes
more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.records.watched import Alarm
from wulf.tools.watch.history import alarms as alarming
from wulf.tools.watch.history import judge, rotation

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]
DAY_S = 86400.0
#: Two sizes of one operation.
SIZES_BYTES = (64, 1 << 20)
_AUTOREGRESSION = 0.5
#: A Monday.
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
#: Rounds of a run: what fits into 5 minutes, the usual budget, if a round of three launches takes 20 s (an assumption).
ROUNDS = 12
#: When a run begins: 02:30.
_BEGIN_S = 2.5 * 3600


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How a cluster's times differ from run to run."""

    name: str
    #: Standard deviation of each of the four offsets of a time (run, both nodes, pair), as a share.
    spread: float
    #: Degrees of freedom of the heavy-tailed half.
    freedom: float = 4.0
    #: Chance that a node is much slower in a run, and by how much on average.
    spikes: float = 0.005
    spike: float = 0.15
    #: Change at the weekend, and further change on a fifth of the nodes.
    weekend: float = 0.02
    nodes_weekend: float = 0.02


#: Times differ by twice the spread: 3, 5, 3 and 0.8 %.
NOISES = (
    Noise(name="usual", spread=0.015),
    Noise(name="noisy", spread=0.025),
    Noise(name="heavy tails", spread=0.015, freedom=3.0, spikes=0.01),
    Noise(
        name="quiet, strong weekends",
        spread=0.004,
        freedom=1000.0,
        spikes=0.0,
        weekend=0.04,
        nodes_weekend=0.01,
    ),
)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that becomes slower."""

    level: judge.Level
    #: Places of the nodes; none for all.
    nodes: tuple[int, ...]
    #: First run that sees it.
    run: int
    #: Of the logarithm; of a creep what it is after `over` runs.
    size: float
    #: Runs in which it grows evenly; 0 for a step.
    over: int = 0

    def at(self, run: int) -> float:
        """Return what it adds in a run."""
        if run < self.run:
            return 0.0
        return self.size * min((run - self.run + 1) / self.over, 1.0) if self.over else self.size


class Cluster:
    """Nodes that are measured once a day; all that is random is drawn at the beginning."""

    def __init__(
        self, noise: Noise, nodes: int, days: int, seed: int, changes: Sequence[Change] = ()
    ) -> None:
        self._rng = rng = np.random.default_rng(seed)
        self.names = tuple(f"node{number:02}" for number in range(1, nodes + 1))
        self.noise = noise
        self.days = days
        self.changes = list(changes)
        kinds = len(SIZES_BYTES)
        scale = noise.spread * np.exp(0.3 * rng.standard_normal(nodes))
        self._common = noise.spread * self._offsets((days, kinds))
        self._nodes = scale[None, :, None] * self._offsets((days, nodes, kinds))
        slow = rng.random((days, nodes, 1)) < noise.spikes
        self._nodes += slow * rng.exponential(noise.spike, (days, nodes, 1))
        self._base = 0.05 * rng.standard_normal((nodes, nodes, kinds))
        self._weekend = noise.weekend + noise.nodes_weekend * (rng.random(nodes) < 0.2)
        self._places = {name: place for place, name in enumerate(self.names)}

    def _offsets(self, shape: tuple[int, ...]) -> Values:
        """Return offsets of variance 1, runs along the first axis."""
        fresh = self._rng.standard_normal(shape)
        slow = np.empty(shape)
        slow[0] = fresh[0]
        for run in range(1, shape[0]):
            slow[run] = _AUTOREGRESSION * slow[run - 1] + np.sqrt(1 - _AUTOREGRESSION**2) * fresh[run]
        return np.asarray(np.sqrt(0.5) * slow + np.sqrt(0.5) * self._heavy(shape), dtype=np.float64)

    def _heavy(self, shape: tuple[int, ...]) -> Values:
        freedom = self.noise.freedom
        drawn = self._rng.standard_t(freedom, shape) / np.sqrt(freedom / (freedom - 2))
        return np.asarray(drawn, dtype=np.float64)

    def measure(self, run: int, pairs: Sequence[tuple[str, str]]) -> tuple[Numbers, Numbers, Values]:
        """Return the places of both nodes of each pair, and the logarithms (pairs, sizes)."""
        first, second = (np.array([self._places[pair[end]] for pair in pairs]) for end in (0, 1))
        own = self.noise.spread * (np.sqrt(0.5) * self._rng.standard_normal((len(pairs), len(SIZES_BYTES))))
        own += self.noise.spread * np.sqrt(0.5) * self._heavy((len(pairs), len(SIZES_BYTES)))
        logs = (
            self._base[first, second]
            + self._common[run]
            + self._nodes[run, first]
            + self._nodes[run, second]
            + own
        )
        if run % 7 >= 5:
            logs += ((self._weekend[first] + self._weekend[second]) / 2)[:, None]
        for change in self.changes:
            logs += (change.at(run) * _concerned(change, first, second))[:, None]
        return first, second, logs


def _concerned(change: Change, first: Numbers, second: Numbers) -> Values:
    if change.level == "cluster":
        return np.ones(first.size)
    ends = [np.isin(numbers, change.nodes) for numbers in (first, second)]
    return (ends[0] | ends[1] if change.level == "node" else ends[0] & ends[1]).astype(np.float64)


class Watch:
    """A watch over a simulated cluster: it measures, and judges as `wulf watch run` does."""

    def __init__(self, cluster: Cluster, rounds: int = ROUNDS, *, by_risk: bool = True) -> None:
        self.cluster = cluster
        #: Whether what was often bad is measured more often, as it is; else by turns.
        self.by_risk = by_risk
        self.run = -1
        self.suspects: list[tuple[str, str]] = []
        self.alarms: list[Alarm] = []
        self._rounds = rounds
        self._last: dict[tuple[str, str], int] = {}
        self._entries: list[tuple[Numbers, Numbers, Numbers, Values]] = []

    def next_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that the next run measures."""
        names = self.cluster.names
        slower = (alarm.nodes for alarm in self.alarms if alarm.direction == "slower")
        trouble = rotation.trouble_of(names, slower) if self.by_risk else {}
        return rotation.choose(names, names, self._last, self.suspects, self._rounds, trouble)

    def measure(self) -> None:
        """Make the next run."""
        pairs = self.next_pairs()
        self.run += 1
        self._last |= dict.fromkeys(pairs, self.run + 1)
        first, second, logs = self.cluster.measure(self.run, pairs)
        self._entries.append((np.full(first.size, self.run), first, second, logs))

    def look(self) -> list[Alarm]:
        """Judge the last run; return the alarms that are new."""
        since = max(0, self.run - judge.LOOK_BACK + 1)
        timeline = self.timeline(since)
        verdict = judge.judge(self.measured(since), timeline, self._known())
        self.suspects = [(nodes[0], nodes[1]) for nodes in verdict.suspects]
        drifts = self.drifts() if judge.week_is_over(timeline) else []
        now = _FIRST_DAY + timedelta(days=self.run)
        new, others = alarming.take([*verdict.changes, *drifts], self.alarms, range(self.run + 1), now)
        changed = {alarm.id: alarm for alarm in others}
        self.alarms = [changed.get(alarm.id, alarm) for alarm in self.alarms] + new
        return new

    def _known(self) -> judge.Known:
        return alarming.known(self.alarms, range(self.run + 1))

    def drifts(self) -> list[judge.Change]:
        """Return what has changed slowly by the end of the last whole week."""
        since = max(0, self.run - judge.DRIFT_LOOK_BACK_DAYS)
        weekly, weeks = judge.by_week(self.measured(since), self.timeline(since))
        return judge.judge(weekly, weeks, self._known(), judge.DRIFT).changes

    def timeline(self, since: int) -> judge.Timeline:
        """Return when runs were made, from one of them on."""
        numbers = np.arange(since, self.run + 1)
        return judge.Timeline(numbers, (numbers * DAY_S + _BEGIN_S).astype(np.float64))

    def measured(self, since: int) -> list[judge.Measured]:
        """Return what runs have measured, from one of them on."""
        columns = [np.concatenate(column) for column in zip(*self._entries[since:], strict=True)]
        runs, first, second, logs = columns
        return [
            judge.Measured(
                "mpi_pingpong", size, self.cluster.names, runs - since, first, second, logs[:, place]
            )
            for place, size in enumerate(SIZES_BYTES)
        ]

    def days(self) -> Iterator[list[Alarm]]:
        """Measure and judge to the end of the simulation; yields what each run has found."""
        while self.run + 1 < self.cluster.days:
            self.measure()
            yield self.look()


def key_of(change: Change, cluster: Cluster, size_bytes: int) -> judge.Key:
    """Return the series in which a change is to be found."""
    names = tuple(cluster.names[place] for place in sorted(change.nodes))
    return judge.Key(change.level, "mpi_pingpong", size_bytes, names)
