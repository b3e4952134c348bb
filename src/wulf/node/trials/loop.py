"""The search on real nodes: one trial after the other, each stored before the next, and the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from wulf.base.errors import ProbeError
from wulf.base.records import Metric, ProbeFigure, Trial, Tuning, Values, Workload
from wulf.base.store.files import timestamp
from wulf.base.store.tuning import TuningWriter
from wulf.base.units import format_share
from wulf.node.change.transaction import StepError
from wulf.node.trials.bench import Reading, TrialError, TrialRunner
from wulf.node.trials.experiment import concurrency
from wulf.node.trials.experiment.costs import Costs
from wulf.node.trials.experiment.objective import figures_of
from wulf.node.trials.experiment.search import Forecast, Search
from wulf.node.trials.experiment.trial_requests import TrialRequest

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


def settle_company(
    bench: TrialRunner,
    workload: Workload,
    metrics: list[Metric],
    margin: float,
    seed: int,
    say: Callable[[str], None],
) -> Workload:
    """Return the workload with its pairs at the same time, where that is proven not to move the objective.

    Both ways are measured in turn, under the original settings.
    """
    together = msgspec.structs.replace(workload, at_once=True)
    if not bench.can_share(workload):
        return workload
    costs, figures = Costs(metrics), figures_of(metrics)
    differences: list[float] = []
    disturb = None
    while (disturb := concurrency.disturb(differences, margin)) is None:
        number = len(differences)
        ways = (workload, together) if number % 2 else (together, workload)
        try:
            found = {way.at_once: bench.measure(way, figures, seed + number).values for way in ways}
        except TrialError as error:
            say(f"pairs are measured one after the other: at the same time {error}")
            return workload
        differences.append(float(costs.of_values(found[True])[0] - costs.of_values(found[False])[0]))
    middle = format_share(math.expm1(sum(differences) / len(differences)))
    if disturb:
        say(
            f"pairs are measured one after the other: at the same time the objective was {middle}, "
            "not proven to be the same"
        )
        return workload
    say(
        f"pairs that have no node in common are measured at the same time: that moved the objective by {middle}"
    )
    return together


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
    waiting: list[Trial] = []
    try:
        while (request := known.ask(plan.budget_s - (time.monotonic() - begin))) is not None:
            if not waiting:
                waiting = _trials(request, index, writer, bench)
                index += len(waiting)
                for trial in waiting:
                    writer.append(trial)
            trial = waiting.pop(0)
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


def _trials(request: TrialRequest, index: int, writer: TuningWriter, bench: TrialRunner) -> list[Trial]:
    """Make one trial, or two whose settings are measured in turn within the same launches."""
    # The second of two whose first one alone was stored is made by itself.
    if request.made or request.beside is None or not bench.can_alternate(request.setting, request.beside):
        return [_trial(request, index, writer, bench)]
    return _both(request, request.beside, index, writer, bench)


def _both(
    request: TrialRequest, beside: Values, index: int, writer: TuningWriter, bench: TrialRunner
) -> list[Trial]:
    begun = _begun(request, index)
    begin = time.monotonic()
    error = None
    readings: tuple[Reading | None, Reading | None] = None, None
    plan, workload = writer.manifest.plan, writer.manifest.workload
    try:
        readings = bench.alternate(
            request.setting, beside, workload, figures_of(plan.metrics), plan.dwells, plan.seed + index
        )
    except (TrialError, StepError) as failure:
        error = str(failure)
        bench.restore()
    duration_s = (time.monotonic() - begin) / 2
    both = begun, msgspec.structs.replace(begun, index=index + 1, setting=beside)
    return [
        msgspec.structs.replace(_ended(one, reading, error), duration_s=duration_s, within=index)
        for one, reading in zip(both, readings, strict=True)
    ]


def _trial(request: TrialRequest, index: int, writer: TuningWriter, bench: TrialRunner) -> Trial:
    """Make one trial; that a setting cannot be measured is a result."""
    begun = _begun(request, index)
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
    found = _ended(begun, reading, error)
    return msgspec.structs.replace(found, duration_s=time.monotonic() - begin, change_s=change_s)


def _begun(request: TrialRequest, index: int) -> Trial:
    return Trial(
        index=index,
        phase=request.phase,
        round=request.round,
        block=request.block,
        setting=request.setting,
        started_at=timestamp("milliseconds"),
        duration_s=0.0,
        status="failed",
    )


def _ended(trial: Trial, reading: Reading | None, error: str | None) -> Trial:
    if reading is None:
        return msgspec.structs.replace(trial, error=error)
    return msgspec.structs.replace(
        trial,
        status="ok",
        values=reading.values,
        by_place=reading.by_place,
        reference=reading.reference,
        contamination=reading.contamination,
    )


def _conclude(writer: TuningWriter, result: Tuning, message: str) -> Tuning:
    writer.conclude(result)
    status = "budget" if result.status == "search" else result.status
    writer.update(status=status, message=message or None)
    return result
