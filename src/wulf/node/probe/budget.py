"""What fits into the budget: operations, pairs and sizes that get enough launches for an interval.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from wulf.base.records import LaunchResult, Plan
from wulf.node.probe.schedule import Stream

#: Part of the time that is planned with: launches do not all take the same.
SAFE = 0.9
#: Starting and ending a launch beside what a look at its nodes takes [s]; until the first one has been timed.
START_S: dict[Literal["none", "mpi", "net", "command"], float] = {
    "none": 0.1,
    "net": 0.3,
    "mpi": 1.0,
    "command": 1.0,
}
#: Visits that warm a size up, typically.
WARMUP_VISITS = 4
#: The probe makes visits of the reference beside so many visits of a sweep at most.
REFERENCES_PER_SWEEP = 8
#: A visit has two iterations at least; a large message takes so long until it has been timed [B/s].
ASSUMED_RATE = 100e6
#: A budget is rounded up: (up to so many seconds, to a multiple of so many).
_ROUND_S = ((90, 10), (900, 60), (3600, 300), (math.inf, 600))


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch of one operation takes."""

    #: All but the visits, the looks at the nodes included [s].
    start_s: float
    #: Size [B] → time of all its visits [s]; sizes that are not here take as long as the next larger one that is.
    visits_s: dict[int, float]
    #: Whether it was timed, and not only assumed.
    timed: bool
    #: How many streams one launch measures.
    width: float = 1.0

    def launch_s(self, sizes: Sequence[int]) -> float:
        """Return a stream's part of the time of a launch that visits `sizes` [s]."""
        return (self.start_s + sum(self._size_s(size) for size in sizes)) / self.width

    def _size_s(self, size: int) -> float:
        known = self.visits_s.get(size)
        if known is not None:
            return known
        return self.visits_s[min(self.visits_s, key=lambda other: (other < size, abs(other - size)))]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long one launch took."""

    #: From before the first look at the nodes to after the last [s].
    wall_s: float
    #: Size [B] → time of all its visits [s].
    visits_s: dict[int, float]


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What can be done in the time there is."""

    #: They get their launches, in the order of the plan.
    streams: list[Stream]
    #: Operation → sizes, for each that is among the streams.
    sizes: dict[str, list[int]]
    #: Until every stream has its launches [s].
    expected_s: float
    #: They get none.
    left_out: list[Stream]
    #: Operation → how many sizes it could be measured at.
    all_sizes: dict[str, int]
    #: Time for every stream at all its sizes [s].
    whole_s: float
    #: Launches that each of the streams gets.
    launches: int

    @property
    def thinned(self) -> bool:
        """Whether some operation is measured at fewer sizes than it could be."""
        return any(len(sizes) < self.all_sizes[op] for op, sizes in self.sizes.items())

    @property
    def complete(self) -> bool:
        """Whether nothing is left out."""
        return not self.left_out and not self.thinned


def assumed(
    plan: Plan,
    transport: Literal["none", "mpi", "net", "command"],
    sizes: Sequence[int],
    look_s: float,
    width: float = 1.0,
) -> Cost:
    """Return what a launch takes before one has been timed.

    Parameters
    ----------
    look_s
        Time of one look at a pair of nodes [s]; a launch has two, and reaching the nodes to start takes as long.
    width
        How many streams one launch measures.
    """
    visits = plan.workload.sweeps + WARMUP_VISITS
    references = plan.workload.sweeps * min(len(sizes), REFERENCES_PER_SWEEP)
    # On the two sides of a pair one after the other.
    references_s = 2e-6 * references * plan.workload.reference_us
    return Cost(
        start_s=START_S[transport] + 3 * look_s + references_s,
        visits_s={
            size: visits * max(plan.workload.visit_us * 1e-6, 4 * size / ASSUMED_RATE) for size in sizes
        },
        timed=False,
        width=width,
    )


def timing(result: LaunchResult, wall_s: float) -> Timing:
    """Return what a launch says about the cost of the next ones; what a command prints is no time of a visit."""
    visits = {
        sample.cell.size_bytes: 1e-9
        * sample.batch_iterations
        * (sum(sample.batch_medians_ns) + sum(sample.warmup_medians_ns))
        for sample in result.samples
        if sample.cell.op == result.launch.op
    }
    return Timing(wall_s=wall_s, visits_s=visits)


def costs(timings: Mapping[str, Sequence[Timing]], before: Mapping[str, Cost]) -> dict[str, Cost]:
    """Return what launches take, from those of each operation that were timed.

    An operation without one is assumed to take as many times more than `before` as the others do.
    """
    timed = {op: _timed(timings.get(op, ()), cost) for op, cost in before.items()}
    ratios = [cost.start_s / before[op].start_s for op, cost in timed.items() if cost.timed]
    slower = statistics.median(ratios) if ratios else 1.0
    return {
        op: cost if cost.timed else msgspec.structs.replace(cost, start_s=slower * cost.start_s)
        for op, cost in timed.items()
    }


def _timed(timings: Sequence[Timing], before: Cost) -> Cost:
    good = [timing for timing in timings if timing.visits_s]
    if not good:
        return before
    sizes = sorted({size for timing in good for size in timing.visits_s})
    return Cost(
        # The first one on a node finds nothing in its caches.
        start_s=statistics.median(max(t.wall_s - sum(t.visits_s.values()), 0.0) for t in good),
        visits_s={
            size: statistics.fmean(t.visits_s[size] for t in good if size in t.visits_s) for size in sizes
        },
        timed=True,
        width=before.width,
    )


def fit(
    wanted: Sequence[Stream],
    ladders: Mapping[str, Sequence[Sequence[int]]],
    costs: Mapping[str, Cost],
    done: Mapping[Stream, int],
    launches: int,
    left_s: float,
    *,
    together: bool = False,
    all_needed: bool = False,
) -> Fit:
    """Choose what is measured in the time that is left, so that it gets an interval.

    First all operations, at as many sizes as there is time for; then fewer operations, in their order; then one
    operation between fewer pairs. What has begun goes on in any case. Where all are needed, fewer launches of each
    come before fewer operations, and one launch of those that there is time for before many of the first.

    Parameters
    ----------
    wanted
        What is not done yet, in order of precedence.
    ladders
        Operation → its sizes, then ever fewer of them.
    costs
        Operation → what its launches take.
    done
        Launches so far; nothing where there was none.
    launches
        That a stream needs for its interval.
    left_s
        Time left [s].
    together
        The pairs of an operation tell by standing beside each other: each gets fewer launches before any gets none.
    all_needed
        So do all operations.
    """
    question = _Question(wanted, ladders, costs, done, launches)
    room_s = SAFE * left_s
    if (
        all_needed
        and (fewer := _fewer_of_all(question, room_s) or _one_of_some(question, room_s)) is not None
    ):
        return fewer
    for count in range(len(question.ops), 0, -1):
        among = set(question.ops[:count])
        chosen = [stream for stream in wanted if stream[0] in among or done.get(stream)]
        for level in range(question.levels(chosen)):
            if 0 < question.needs_s(chosen, level) <= room_s:
                return question.answer(chosen, level)
    fewer = _fewer_launches(question, room_s) if together else None
    return _part(question, room_s) if fewer is None else fewer


class _Question:
    """What is asked, and the sums that answer it."""

    def __init__(
        self,
        wanted: Sequence[Stream],
        ladders: Mapping[str, Sequence[Sequence[int]]],
        costs: Mapping[str, Cost],
        done: Mapping[Stream, int],
        launches: int,
    ) -> None:
        self.wanted, self.done, self.launches = list(wanted), done, launches
        self.ops = list(dict.fromkeys(op for op, _ in wanted))
        self._ladders, self._costs = ladders, costs

    def with_launches(self, launches: int) -> _Question:
        """Return the same question about fewer launches."""
        return _Question(self.wanted, self._ladders, self._costs, self.done, launches)

    def levels(self, streams: Sequence[Stream]) -> int:
        """How many choices of sizes there are."""
        return max((len(self._ladders[op]) for op, _ in streams), default=1)

    def sizes(self, op: str, level: int) -> list[int]:
        """Sizes of an operation at a level; the fewest beyond its last."""
        ladders = self._ladders[op]
        return list(ladders[min(level, len(ladders) - 1)])

    def missing(self, stream: Stream) -> int:
        """Return the launches that a stream lacks."""
        return max(self.launches - self.done.get(stream, 0), 0)

    def needs_s(self, streams: Sequence[Stream], level: int) -> float:
        """Time until all of `streams` have their launches [s]."""
        each = {op: self._costs[op].launch_s(self.sizes(op, level)) for op in {op for op, _ in streams}}
        return sum(self.missing(stream) * each[stream[0]] for stream in streams)

    def answer(self, streams: Sequence[Stream], level: int) -> Fit:
        """Return the answer: these streams, at the sizes of this level."""
        chosen = set(streams)
        ops = [op for op in self.ops if any(op == other for other, _ in streams)]
        return Fit(
            streams=list(streams),
            sizes={op: self.sizes(op, level) for op in ops},
            expected_s=self.needs_s(streams, level),
            left_out=[stream for stream in self.wanted if stream not in chosen],
            all_sizes={op: len(self.sizes(op, 0)) for op in self.ops},
            whole_s=self.needs_s(self.wanted, 0),
            launches=self.launches,
        )


def _fewer_launches(question: _Question, room_s: float) -> Fit | None:
    """Return all streams of the first operation with as many launches as fit; None where not even one does."""
    level = question.levels(question.wanted) - 1
    first = [stream for stream in question.wanted if stream[0] == question.ops[0]] if question.ops else []
    for launches in range(question.launches - 1, 0, -1):
        fewer = question.with_launches(launches)
        needs_s = fewer.needs_s(first, level)
        if 0 < needs_s <= room_s:
            answer = fewer.answer(first, level)
            return msgspec.structs.replace(answer, whole_s=question.needs_s(question.wanted, 0))
    return None


def _fewer_of_all(question: _Question, room_s: float) -> Fit | None:
    """Return all streams with as many launches as fit; None where not even one of each does, or nothing is wanted."""
    level = question.levels(question.wanted) - 1
    for launches in range(question.launches, 0, -1) if question.wanted else ():
        fewer = question.with_launches(launches)
        if fewer.needs_s(question.wanted, level) <= room_s:
            answer = fewer.answer(question.wanted, level)
            return msgspec.structs.replace(answer, whole_s=question.needs_s(question.wanted, 0))
    return None


def _one_of_some(question: _Question, room_s: float) -> Fit | None:
    """Return one launch of what there is time for, beside what has begun; None where there is time for nothing new."""
    once, level = question.with_launches(1), question.levels(question.wanted) - 1
    chosen = []
    for stream in question.wanted:
        needs_s = once.needs_s([stream], level)  # of what has begun nothing
        if needs_s <= room_s:
            chosen.append(stream)
            room_s -= needs_s
    if all(question.done.get(stream) for stream in chosen):
        return None
    answer = once.answer(chosen, level)
    return msgspec.structs.replace(answer, whole_s=question.needs_s(question.wanted, 0))


def _part(question: _Question, room_s: float) -> Fit:
    """Return what to do where not even one operation fits whole."""
    level = question.levels(question.wanted) - 1
    begun = [stream for stream in question.wanted if question.done.get(stream)]
    halfway = sorted((s for s in begun if question.missing(s)), key=question.missing)
    if halfway:
        return question.answer(_as_many(question, halfway, level, room_s) or halfway[:1], level)
    new = [stream for stream in question.wanted if stream not in begun]
    first = [stream for stream in new if stream[0] == new[0][0]]
    count = len(_as_many(question, first, level, room_s))
    if not question.done:
        count = max(count, 1)
    return question.answer([*begun, *_spread(first, count)], level)


def _as_many(question: _Question, streams: Sequence[Stream], level: int, room_s: float) -> list[Stream]:
    chosen: list[Stream] = []
    for stream in streams:
        if question.needs_s([*chosen, stream], level) > room_s:
            break
        chosen.append(stream)
    return chosen


def _spread(streams: Sequence[Stream], count: int) -> list[Stream]:
    """Return so many of them, evenly: neighbours often share what would be found out."""
    return [streams[index * len(streams) // count] for index in range(min(count, len(streams)))]


def budget_for(needs_s: float, spent_s: float = 0.0) -> float:
    """Budget into which so much fits beside what has been spent, as a round number [s]."""
    wanted = needs_s / SAFE + spent_s
    step = next(step for limit, step in _ROUND_S if wanted <= limit)
    return float(math.ceil(wanted / step) * step)
