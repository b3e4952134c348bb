"""The search on real nodes: one trial after the other, each stored before the next, and the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from wulf.change.transaction import StepError
from wulf.errors import ProbeError
from wulf.experiment.objective import figures_of
from wulf.experiment.search import Forecast, Search
from wulf.experiment.strategy import TrialRequest
from wulf.procedure.tuning.runner import Reading, TrialError, TrialRunner
from wulf.records import ProbeFigure, Trial, Tuning, Workload
from wulf.store.files import timestamp
from wulf.store.tuning import TuningWriter

#: The first trials after a start are not measured: caches, connections and clocks settle.
WARM_UP = 2


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher is told after each trial."""

    last: Trial
    forecast: Forecast
    spent_s: float
    left_s: float


class Watcher(Protocol):
    """Shows progress to a person."""

    def stage(self, text: str) -> None:
        """Announce a new part of the work."""

    def tried(self, state: State) -> None:
        """Report a trial."""


def pilot(bench: TrialRunner, workload: Workload, figures: Sequence[ProbeFigure], seed: int) -> float:
    """Measure the original settings without keeping the figures; return how long one trial takes [s].

    Raises
    ------
    ProbeError
        They cannot be measured: says why.
    """
    duration = 0.0
    for number in range(WARM_UP):
        begin = time.monotonic()
        try:
            bench.measure(workload, figures, seed + number)
        except TrialError as error:
            raise ProbeError(f"the original settings cannot be measured: {error}") from None
        duration = time.monotonic() - begin
    return duration


def search(writer: TuningWriter, earlier: Sequence[Trial], bench: TrialRunner, watcher: Watcher) -> Tuning:
    """Search to the end, or to the end of the budget.

    Raises
    ------
    KeyboardInterrupt
        After what is known so far has been concluded and stored.
    """
    plan = writer.manifest.plan
    known = Search(plan)
    for trial in earlier:
        known.tell(trial)
    begin = time.monotonic()
    index = len(earlier)
    try:
        while (request := known.ask(plan.budget_s - (time.monotonic() - begin))) is not None:
            trial = _trial(request, index, writer, bench)
            index += 1
            writer.append(trial)
            known.tell(trial)
            spent = time.monotonic() - begin
            watcher.tried(
                State(
                    last=trial,
                    forecast=known.forecast(),
                    spent_s=spent,
                    left_s=max(plan.budget_s - spent, 0.0),
                )
            )
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        _conclude(
            writer, known.tuning(writer.manifest.id, "interrupted" if interrupted else "failed"), str(error)
        )
        raise
    return _conclude(writer, known.tuning(writer.manifest.id, "complete"), "")


def _trial(request: TrialRequest, index: int, writer: TuningWriter, bench: TrialRunner) -> Trial:
    """Make one trial; that a setting cannot be measured is a result."""
    started_at = timestamp("milliseconds")
    begin = time.monotonic()
    change_s = 0.0
    error = None
    reading: Reading | None = None
    try:
        bench.set(request.setting)
        change_s = time.monotonic() - begin
        manifest = writer.manifest
        figures = figures_of(manifest.plan.metrics)
        reading = bench.measure(manifest.workload, figures, manifest.plan.seed + index)
    except (TrialError, StepError) as failure:
        error = str(failure)
        # Where nothing could be measured nothing may stay set.
        bench.restore()
    return Trial(
        index=index,
        phase=request.phase,
        round=request.round,
        block=request.block,
        setting=request.setting,
        started_at=started_at,
        duration_s=time.monotonic() - begin,
        change_s=change_s,
        status="failed" if error else "ok",
        error=error,
        values=reading.values if reading else {},
        by_place=reading.by_place if reading else {},
        reference=reading.reference if reading else None,
        contamination=reading.contamination if reading else [],
    )


def _conclude(writer: TuningWriter, result: Tuning, message: str) -> Tuning:
    writer.conclude(result)
    status = "budget" if result.status == "search" else result.status
    writer.update(status=status, message=message or None)
    return result
