"""A measured run from the first launch to the last: scouts, blocks, stopping, budget, interruption."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from wulf.base.errors import ProbeError
from wulf.base.records import Analysis, Cell, LaunchResult, Operation, Place, Plan
from wulf.base.store import Run, Writer, load, save_analysis
from wulf.node.measuring import series
from wulf.node.measuring.analysis import analyze
from wulf.node.measuring.fitting import assumed, choices, fit_of, one_of_each
from wulf.node.probe import budget, ladder, schedule
from wulf.node.probe.execute import RunLaunch
from wulf.stats import estimate

#: Launches of an operation that say what its next ones cost.
RECENT = 50
#: Part of the budget that finding the sizes may take.
SCOUT_SHARE = 0.35


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher is told after each launch."""

    last: LaunchResult
    launches: int
    #: Operations between pairs that are being measured.
    streams: int
    #: Those of them that have an interval.
    streams_with_interval: int
    #: Those of them that are done.
    streams_done: int
    spent_s: float
    left: schedule.Forecast


class Watcher(series.Watcher, Protocol):
    """Shows progress to a person."""

    def launched(self, state: State) -> None:
        """Report a finished launch."""

    def fits(self, plan: Plan, fit: budget.Fit, spent_s: float) -> None:
        """Say what fits into the budget, or what a block of a series is; called again when that has changed."""


class Session:
    """The state of a run while it is measured; made anew from the records when it is resumed."""

    def __init__(
        self,
        writer: Writer,
        earlier: list[LaunchResult],
        launch: RunLaunch,
        watcher: Watcher,
        look_s: float = 0.0,
    ) -> None:
        self.plan: Plan = writer.manifest.plan
        self.operations: dict[str, Operation] = {op.name: op for op in writer.manifest.operations}
        self.results: list[LaunchResult] = []
        self._writer = writer
        self._launch = launch
        self._watcher = watcher
        self._look_s = look_s
        self._streams = schedule.streams(self.plan)
        self._width = {op: schedule.width(self.plan, op) for op in self.plan.workload.ops}
        # What follows from the launches is kept as they end: a large run has tens of thousands.
        self._endings = schedule.Endings()
        self._outlook = schedule.Outlook(self.plan)
        self._medians: dict[schedule.Stream, list[dict[Cell, estimate.Median]]] = defaultdict(list)
        self._clean: Counter[schedule.Stream] = Counter()
        self._progress_of: dict[schedule.Stream, schedule.Progress] = {}
        self._done: set[schedule.Stream] = set()
        #: Streams that have had a launch since their progress was determined.
        self._stale: set[schedule.Stream] = set()
        #: Other streams are given up than when the outlook was made.
        self._given_up_changed = False
        #: Streams that have nobody left to be measured at once with; None where that is not known.
        self._deserted: set[schedule.Stream] | None = None
        self._timings: dict[str, deque[budget.Timing]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._scouts: list[LaunchResult] = []
        #: Sizes of each operation that is being measured: they stay the same from its first launch on.
        self._sizes: dict[str, list[int]] = {}
        for result in earlier:
            # A launch's own time is without the looks at its nodes, before and after.
            self._take(result, result.launch.duration_s + 2 * look_s)
        self._chosen: budget.Fit | None = None
        over_s = 0.0 if self.plan.series is None else series.spent_s(self.plan.series)
        self._begin = time.monotonic() - over_s

    def spent_s(self) -> float:
        """Time used of this session's budget [s]; a run that is resumed has its budget anew, but not a series."""
        return time.monotonic() - self._begin

    def announce(self) -> None:
        """Say what fits, as far as that is known before the first launch."""
        self._say(self._fit())

    def scout(self) -> None:
        """Find the sizes of every operation on its first pair: all pairs are measured at the same sizes.

        One scout of each shows what its launches take; more only take time that nothing else needs.
        """
        for op in self.plan.workload.ops:
            self._scout(op, lambda op: not self._timed(op))
        for op in self.plan.workload.ops:
            self._scout(op, self._has_spare)

    def _scout(self, op: str, may: Callable[[str], bool]) -> None:
        base = self.plan.workload.part(op).sizes_bytes
        if len(base) == 1:
            return  # there is no curve
        pair = next((pair for name, pair in self._fit().streams if name == op), None)
        while pair is not None and op not in self._sizes and may(op):
            sizes = schedule.next_scout_sizes(self.plan, base, op, self.results)
            if sizes is None or self.spent_s() >= SCOUT_SHARE * self.plan.budget_s:
                break
            self._run(op, [pair], sizes, "scout")

    def _timed(self, op: str) -> bool:
        return op in self._timings

    def _has_spare(self, op: str) -> bool:
        """Whether one more scout of an operation leaves everything its launches."""
        fit = self._fit()
        return fit.complete and fit.whole_s + self._launch_s()[op] < budget.SAFE * self._left_s()

    def measure(self) -> bool:
        """Launch blocks until all is precise; False when the budget ended it before."""
        while self._left_s() > 0:
            fit = self._fit()
            self._say(fit)
            block = self._next_block(fit)
            if not block:
                return not fit.left_out
            company = self._possible(self._streams)
            for job in schedule.jobs(self.plan, block, company, self._endings.failing):
                if self._left_s() <= 0:
                    return self._complete()
                # A node may have gone since the block was drawn.
                self._measure(self._possible(job), fit.sizes)
        return self._complete()

    def block(self) -> None:
        """Launch every stream once, in random order, whatever became of it in the blocks before."""
        self._endings = schedule.Endings()
        self._deserted = None
        company = self._possible(self._streams)
        drawn = schedule.next_block(self.plan, company, {}, len(self.results))
        sizes = {op: several[0] for op, several in choices(self.plan, self._scouts, self._sizes).items()}
        for job in schedule.jobs(self.plan, drawn, company, self._endings.failing):
            self._measure(self._possible(job), sizes)

    def _complete(self) -> bool:
        """Whether all is as precise as was wanted; a test of it that the budget ended leaves nothing open."""
        return all(schedule.precise(self.plan, self._progress_of.get(stream)) for stream in self._open())

    def _next_block(self, fit: budget.Fit) -> list[schedule.Stream]:
        streams = schedule.next_block(self.plan, fit.streams, self._progress(), len(self.results))
        # What an operation costs is not known before its first launch, and decides what else fits.
        untimed = [
            stream
            for op in self.plan.workload.ops
            for stream in streams
            if stream[0] == op and not self._timed(op)
        ]
        return untimed[:1] or streams

    def _possible(self, streams: Sequence[schedule.Stream]) -> list[schedule.Stream]:
        """Return those that can still be measured; at once with others, while there are others."""
        able = [stream for stream in streams if not self._endings.give_up(stream)]
        if not self.plan.workload.at_once:
            return able
        if self._deserted is None:
            everyone = [stream for stream in self._streams if not self._endings.give_up(stream)]
            self._deserted = set(schedule.alone(everyone))
        return [stream for stream in able if stream not in self._deserted]

    def _measure(self, job: Sequence[schedule.Stream], all_sizes: Mapping[str, list[int]]) -> None:
        if not job:
            return
        op = job[0][0]
        sizes = self._sizes.setdefault(op, all_sizes[op])
        # Without others it says whether it can be measured, and nothing of what is asked for.
        alone = self.plan.workload.at_once and len(job) == 1
        self._run(op, [place for _, place in job], sizes, "scout" if alone else "measure")

    def _run(self, op: str, places: list[Place], sizes: list[int], purpose: schedule.Purpose) -> None:
        printed = [one for one in self.operations.values() if one.printed_by == op]
        plan = schedule.launch_plan(
            self.plan, self.operations[op], places, sizes, len(self.results), purpose, printed
        )
        begin = time.monotonic()
        result = self._launch(plan)
        wall_s = time.monotonic() - begin
        self._writer.append(result)
        self._take(result, wall_s)
        self._watcher.launched(self._state(result))

    def _take(self, result: LaunchResult, wall_s: float) -> None:
        """Keep a launch and what follows from it."""
        launch = result.launch
        self.results.append(result)
        if self._endings.add(launch):
            self._given_up_changed = True
            self._deserted = None
        self._timings[launch.op].append(budget.timing(result, wall_s))
        if launch.purpose == "scout":
            self._scouts.append(result)
            return
        self._sizes[launch.op] = launch.sizes_bytes
        if launch.status == "ok":
            by_place: dict[Place, dict[Cell, estimate.Median]] = defaultdict(dict)
            for cell, median in estimate.medians(result).items():
                by_place[cell.place][cell] = median
            for place in launch.measured:
                stream = launch.op, place
                self._medians[stream].append(by_place[place])
                self._clean[stream] += not launch.contamination
                self._stale.add(stream)

    def _left_s(self) -> float:
        return self.plan.budget_s - self.spent_s()

    def _open(self) -> list[schedule.Stream]:
        self._progress()
        return self._possible([stream for stream in self._streams if stream not in self._done])

    def _fit(self) -> budget.Fit:
        ladders = choices(self.plan, self._scouts, self._sizes)
        costs = self._costs(ladders)
        if self.plan.series is not None:
            return one_of_each(self._possible(self._streams), ladders, costs)
        done = {stream: progress.launches for stream, progress in self._progress().items()}
        return fit_of(self.plan, self._open(), ladders, costs, done, self._left_s())

    def _costs(self, ladders: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, budget.Cost]:
        before = assumed(self.plan, self.operations, ladders, self._look_s, self._width)
        return budget.costs(self._timings, before)

    def _launch_s(self) -> dict[str, float]:
        ladders = choices(self.plan, self._scouts, self._sizes)
        chosen = self._chosen.sizes if self._chosen is not None else {}
        return {op: c.launch_s(chosen.get(op, ladders[op][0])) for op, c in self._costs(ladders).items()}

    def _say(self, fit: budget.Fit) -> None:
        """Say what fits, at first and when it has become less."""
        before, self._chosen = self._chosen, fit
        self._look_ahead()
        if before is None or _is_less(fit, before, self.plan.min_launches):
            self._watcher.fits(self.plan, fit, self.spent_s())

    def _progress(self) -> dict[schedule.Stream, schedule.Progress]:
        while self._stale:
            stream = self._stale.pop()
            progress = schedule.Progress(
                launches=len(self._medians[stream]),
                clean=self._clean[stream],
                missing=estimate.launches_needed(self._medians[stream], self.plan),
                untested=estimate.launches_untested(self._medians[stream], self.plan),
            )
            self._progress_of[stream] = progress
            done = schedule.enough(self.plan, progress)
            (self._done.add if done else self._done.discard)(stream)
            self._outlook.put(stream, progress, done=done)
        return self._progress_of

    def _look_ahead(self) -> None:
        """Take stock of all streams; between two such times each launch only changes its own."""
        progress = self._progress()
        still_open = set(self._open())
        chosen = set(self._chosen.streams if self._chosen else self._streams)
        self._outlook = schedule.Outlook(self.plan)
        for stream in self._streams:
            # What is done is no longer chosen, and counts.
            if stream in progress or stream in chosen:
                self._outlook.put(stream, progress.get(stream), done=stream not in still_open)
        self._given_up_changed = False

    def _state(self, result: LaunchResult) -> State:
        self._progress()
        if self._given_up_changed:
            self._look_ahead()
        return State(
            last=result,
            launches=len(self.results),
            streams=self._outlook.streams,
            streams_with_interval=self._outlook.with_interval,
            streams_done=self._outlook.done,
            spent_s=self.spent_s(),
            left=self._forecast(),
        )

    def _forecast(self) -> schedule.Forecast:
        left_s = max(self._left_s(), 0.0)
        if self.plan.series is not None:
            return schedule.Forecast(intervals_s=0.0, least_s=left_s, most_s=left_s)
        return self._outlook.forecast(self._launch_s(), left_s)


def _is_less(fit: budget.Fit, before: budget.Fit, launches: int) -> bool:
    """Whether less fits than before: something gets none, or not as many launches as an interval takes."""
    return not set(fit.left_out) <= set(before.left_out) or fit.launches < launches == before.launches


def measure(
    writer: Writer,
    earlier: list[LaunchResult],
    launch: RunLaunch,
    watcher: Watcher,
    look_s: float = 0.0,
) -> tuple[Run, Analysis]:
    """Measure a run to its end (or its budget's), and analyse it.

    Parameters
    ----------
    look_s
        Time of one look at a pair of nodes [s], of which a launch has two.

    Raises
    ------
    ProbeError
        Not a single launch succeeded; the text says why the last one failed.
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    session = Session(writer, earlier, launch, watcher, look_s)
    try:
        session.announce()
        varied = any(len(part.sizes_bytes) > 1 for part in session.plan.workload.parts)
        if session.plan.ladder == ladder.ADAPTIVE and varied:
            watcher.stage("finding the sizes at which the curve bends")
            session.scout()
        complete = _measure(session, watcher, begun=bool(earlier))
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        _finish(writer, "interrupted" if interrupted else "failed", str(error) or None)
        raise
    good = [result for result in session.results if result.launch.status == "ok"]
    if not good:
        last = session.results[-1].launch.error if session.results else None
        reason = last or "the budget was spent before the first"
        _finish(writer, "failed", reason)
        raise ProbeError(f"no launch succeeded: {reason}")
    _finish(writer, "complete" if complete else "budget", None)
    run = load(writer.path)
    analysis = analyze(run)
    save_analysis(writer.path, analysis)
    return run, analysis


def _measure(session: Session, watcher: Watcher, *, begun: bool) -> bool:
    """Measure to the end; False when the budget ended it before all was precise."""
    if session.plan.series is not None:
        series.measure(session.plan.series, session.block, watcher, begun=begun)
        return True
    watcher.stage("measuring")
    return session.measure()


def _finish(writer: Writer, status: str, message: str | None) -> None:
    writer.update(status=status, message=message)
