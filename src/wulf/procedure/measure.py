"""A measured run from the first launch to the last: scouts, blocks, stopping, budget, interruption."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from wulf import estimate
from wulf.errors import ProbeError
from wulf.measure import execute, schedule
from wulf.procedure.analysis import analyze, measuring
from wulf.records import Analysis, Launch, LaunchResult, Operation, Plan
from wulf.store import Run, Writer, load, save_analysis

#: Part of the budget that finding the sizes may take.
SCOUT_SHARE = 0.35


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher is told after each launch."""

    last: LaunchResult
    launches: int
    streams: int
    streams_done: int
    spent_s: float
    left_s: float


class Watcher(Protocol):
    """Shows progress to a person."""

    def stage(self, text: str) -> None:
        """Announce a new part of the work."""

    def launched(self, state: State) -> None:
        """Report a finished launch."""


RunLaunch = Callable[[schedule.LaunchPlan], LaunchResult]


def launcher(site: execute.Site, observe: execute.Observation, judge: execute.Judge) -> RunLaunch:
    """Return the function that runs one launch on a site."""
    return lambda plan: execute.run_launch(plan, site, observe, judge)


class Session:
    """The state of a run while it is measured; made anew from the records when it is resumed."""

    def __init__(
        self, writer: Writer, earlier: list[LaunchResult], launch: RunLaunch, watcher: Watcher
    ) -> None:
        self.plan: Plan = writer.manifest.plan
        self.operations: dict[str, Operation] = {op.name: op for op in writer.manifest.operations}
        self.results = list(earlier)
        self._writer = writer
        self._launch = launch
        self._watcher = watcher
        self._medians = {result.launch.id: estimate.medians(result) for result in measuring(earlier)}
        self._begin = time.monotonic()

    def spent_s(self) -> float:
        """Time used of this session's budget [s]; a run that is resumed has its budget anew."""
        return time.monotonic() - self._begin

    def scout(self) -> None:
        """Find the sizes of every operation on the first pair: all pairs are measured at the same sizes."""
        base = schedule.base_ladders(self.plan, self.operations)
        for op in self.plan.ops:
            while self.spent_s() < SCOUT_SHARE * self.plan.budget_s:
                sizes = schedule.next_scout_sizes(self.plan, base[op], op, self.results)
                if sizes is None:
                    break
                self._run(op, self.plan.pairs[0], sizes, "scout")

    def measure(self) -> bool:
        """Launch blocks until all is precise; False when the budget ended it before."""
        sizes = schedule.ladders(self.plan, self.operations, self.results)
        while streams := schedule.next_block(
            self.plan, self._progress(), [result.launch for result in self.results], len(self.results)
        ):
            for op, pair in streams:
                if self.spent_s() >= self.plan.budget_s:
                    return False
                # A node may have gone since the block was drawn.
                if schedule.given_up((op, pair), [result.launch for result in self.results]):
                    continue
                self._run(op, pair, sizes[op], "measure")
        return True

    def _run(self, op: str, pair: tuple[str, str], sizes: list[int], purpose: schedule.Purpose) -> None:
        plan = schedule.launch_plan(self.plan, self.operations[op], pair, sizes, len(self.results), purpose)
        result = self._launch(plan)
        self._writer.append(result)
        self.results.append(result)
        self._medians[result.launch.id] = estimate.medians(result)
        self._watcher.launched(self._state(result))

    def _progress(self) -> dict[schedule.Stream, schedule.Progress]:
        groups: dict[schedule.Stream, list[Launch]] = defaultdict(list)
        for result in measuring(self.results):
            if result.launch.status == "ok":
                groups[result.launch.op, result.launch.pair].append(result.launch)
        return {
            stream: schedule.Progress(
                launches=len(group),
                clean=sum(not launch.contamination for launch in group),
                missing=estimate.launches_needed([self._medians[launch.id] for launch in group], self.plan),
            )
            for stream, group in groups.items()
        }

    def _state(self, result: LaunchResult) -> State:
        progress = self._progress()
        launches = [r.launch for r in self.results]
        still_open = schedule.next_block(self.plan, progress, launches, 0)
        durations = {(launch.op, launch.pair): launch.duration_s for launch in launches}
        streams = len(self.plan.ops) * len(self.plan.pairs)
        return State(
            last=result,
            launches=len(self.results),
            streams=streams,
            streams_done=streams - len(still_open),
            spent_s=self.spent_s(),
            left_s=schedule.time_left(self.plan, progress, durations, self.spent_s()),
        )


def measure(
    writer: Writer, earlier: list[LaunchResult], launch: RunLaunch, watcher: Watcher
) -> tuple[Run, Analysis]:
    """Measure a run to its end (or its budget's), and analyse it.

    Raises
    ------
    ProbeError
        Not a single launch succeeded; the text says why the last one failed.
    KeyboardInterrupt
        After the run has been marked as interrupted; what was measured is kept.
    """
    session = Session(writer, earlier, launch, watcher)
    try:
        if session.plan.ladder == "adaptive":
            watcher.stage("finding the sizes at which the curve bends")
            session.scout()
        watcher.stage("measuring")
        complete = session.measure()
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


def _finish(writer: Writer, status: str, message: str | None) -> None:
    changed = {
        "status": status,
        "message": message,
        "updated_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    writer.update(msgspec.structs.replace(writer.manifest, **changed))
