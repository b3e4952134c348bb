"""How the simulated comparisons drive the tuner's search: trials whose outcome a function makes up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from wulf.base.records import Candidate, Metric, Trial, TunePlan, Values
from wulf.node.trials.experiment import Search, TrialRequest


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial gave."""

    #: Logarithm of the objective.
    cost: float
    #: Time of the node-local reference, its logarithm; None without one.
    reference: float | None = None
    #: Of the measuring, and of the change before it [s].
    trial_s: float
    change_s: float


def plan(knobs: Sequence[str], budget_s: float, trial_s: float, seed: int) -> TunePlan:
    """Return the plan of a search among knobs that are on or off."""
    return TunePlan(
        objective="simulated",
        metrics=[Metric(name="latency", pattern="ping-pong", unit="s", better="lower", weight=1.0)],
        candidates=[Candidate(knob=knob, original="off", values=["on"], toggle_s=0.3) for knob in knobs],
        budget_s=budget_s,
        trial_s=trial_s,
        margin=0.02,
        false_discovery=0.02,
        confidence=0.95,
        seed=seed,
    )


#: Measures a setting.
Measure = Callable[[Values], Outcome]
#: Measures two settings in turn within the same launches.
MeasureBoth = Callable[[Values, Values], tuple[Outcome, Outcome]]


def trials(search: Search, measure: Measure, measure_both: MeasureBoth | None = None) -> Iterator[Values]:
    """Go through a search; yield the setting of every trial after it was told."""
    left_s = search.plan.budget_s
    index = 0
    waiting: list[Trial] = []
    while (request := search.ask(left_s)) is not None:
        if not waiting and measure_both is not None and request.beside is not None:
            both = measure_both(request.setting, request.beside)
            settings = request.setting, request.beside
            waiting = [
                _trial(request, setting, index + number, found, within=index)
                for number, (setting, found) in enumerate(zip(settings, both, strict=True))
            ]
        elif not waiting:
            waiting = [_trial(request, request.setting, index, measure(request.setting))]
        trial = waiting.pop(0)
        left_s -= trial.duration_s
        search.tell(trial)
        index += 1
        yield trial.setting


def _trial(
    request: TrialRequest, setting: Values, index: int, found: Outcome, within: int | None = None
) -> Trial:
    return Trial(
        index=index,
        phase=request.phase,
        round=request.round,
        block=request.block,
        setting=setting,
        within=within,
        started_at="2026-01-01T00:00:00Z",
        duration_s=found.trial_s + found.change_s,
        change_s=found.change_s,
        status="ok",
        values={"latency": math.exp(found.cost)},
        reference=None if found.reference is None else math.exp(found.reference),
    )
