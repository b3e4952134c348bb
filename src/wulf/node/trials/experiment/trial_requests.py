"""How a search asks for trials: singly, for two settings in the same launches, and again where one fails."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from wulf.base.records import Phase, Trial, TunePlan, Values
from wulf.node.trials.experiment.clock import Clock
from wulf.node.trials.experiment.costs import Costs
from wulf.node.trials.experiment.design import Fold
from wulf.node.trials.experiment.evidence import Arm, Evidence
from wulf.node.trials.experiment.failures import Failing


@dataclass(frozen=True)
class TrialRequest:
    """The trial that is wanted next."""

    phase: Phase
    round: int
    block: int
    setting: Values
    #: The other setting of a pair, where both are to be measured in turn within the same launches.
    beside: Values | None = None
    #: Whether it was measured with the trial before.
    made: bool = False
    #: Share of the budget that is left to others beyond what the phase leaves.
    spare: float = 0.0


Asking = Generator[TrialRequest, Trial | None, None]
Asked = Generator[TrialRequest, Trial | None, Trial | None]
Going = Generator[TrialRequest, Trial | None, bool]
Both = Generator[TrialRequest, Trial | None, list[Trial]]


class Asker:
    """Has trials made, and keeps what they give: evidence, what they cost, and what fails.

    Its methods are coroutines that yield requests and are sent trials; None instead of one where there is no time.

    Parameters
    ----------
    plan
        What to do.
    notes
        Where remarks for the user go.
    """

    def __init__(self, plan: TunePlan, notes: list[str]) -> None:
        self.clock = Clock(plan)
        self.evidence = Evidence(Costs(plan.metrics), frozenset(c.knob for c in plan.candidates if c.local))
        self.failing = Failing()
        self.notes = notes
        #: Trials of each phase, and whether two shared their launches.
        self.made: Counter[tuple[Phase, bool]] = Counter()
        #: Whether what acts on established connections is compared within launches.
        self.within = False
        #: Whether a trial that changes the setting is made twice, and the first one not counted.
        self.settling = False
        self._last: Values | None = None
        self._established = {c.knob for c in plan.candidates if c.established}
        #: Knobs that were switched within launches that measured, and those that probably end the connections.
        self._switched: set[str] = set()
        self._severing: set[str] = set()

    def is_live(self, knob: str) -> bool:
        """Whether values of a knob are compared within launches."""
        return self.within and knob in self._established and knob not in self._severing

    def ask(self, request: TrialRequest) -> Asked:
        """Have a trial made; None where there is no time for it."""
        if self.settling and request.beside is None and request.setting != self._last:
            settled = yield request
            if settled is None:
                return None
            self.clock.take(settled)
        self._last = request.setting if request.beside is None else None
        trial = yield request
        if trial is not None:
            self.clock.take(trial)
            self.made[trial.phase, trial.within is not None] += 1
            succeeded = self.evidence.take(trial)
            # Where a launch of two settings fails, switching may be to blame.
            if succeeded or trial.within is None:
                self.failing.take(trial.setting, succeeded)
        return trial

    def objective(self, trial: Trial) -> list[float]:
        """Return the log cost of a trial; nothing where it has none."""
        if trial.status != "ok":
            return []
        cost = float(self.evidence.costs.of(trial)[0])
        return [cost] if math.isfinite(cost) else []

    def ask_both(self, request: TrialRequest) -> Both:
        """Have two settings measured, in the same launches where that is possible; fewer trials without time."""
        pair = yield from self._pair(request)
        if len(pair) == 2 and pair[0].within is not None:
            yield from self._learn_switching(request, pair)
        return pair

    def _pair(self, request: TrialRequest) -> Both:
        within = all(map(self.is_live, {**request.setting, **(request.beside or {})}))
        first = yield from self.ask(request if within else replace(request, beside=None))
        if first is None:
            return []
        second = yield from self.ask(_other(request, first))
        return [first] if second is None else [first, second]

    def _learn_switching(self, request: TrialRequest, pair: Sequence[Trial]) -> Asking:
        """Where a launch in which knobs were switched gave nothing, find the one that ends the connections."""
        first, second = (trial.setting for trial in pair)
        knobs = {knob for knob, _ in first.items() ^ second.items()}
        if all(self.objective(trial) for trial in pair):
            self._switched |= knobs
            return
        suspects = sorted((knobs - self._switched) or knobs)
        while len(suspects) > 1 and request.phase != "confirmation":
            half = suspects[: len(suspects) // 2]
            values = {knob: value for knob, value in {**first, **second}.items() if knob in half}
            tried = yield from self._pair(replace(request, setting=values, beside={}))
            if len(tried) < 2:
                break
            suspects = suspects[len(half) :] if all(self.objective(trial) for trial in tried) else half
        self._severing.update(suspects)
        if suspects:
            self.notes.append(
                f"{', '.join(suspects)}: compared from launch to launch, as a launch in which "
                f"{'it was' if len(suspects) == 1 else 'they were'} switched gave no value: "
                f"{pair[0].error or 'unknown'}"
            )

    def fold(self, request: TrialRequest, fold: Fold) -> Going:
        """Have both trials of a pair made; False where there is no time."""
        settings = [dict(self.failing.working(part.items())) for part in fold]
        if all(map(self.is_live, {**settings[0], **settings[1]})):
            pair = yield from self.ask_both(replace(request, setting=settings[0], beside=settings[1]))
            if len(pair) < 2:
                return False
            if pair[0].within is None or all(self.objective(trial) for trial in pair):
                return True
            # Which value is to blame shows where each is alone.
        for setting in settings:
            if (yield from self.attempt(replace(request, setting=setting))) is None:
                return False
        return True

    def attempt(self, request: TrialRequest) -> Asked:
        """Have a trial made; where it fails, find out which value is to blame."""
        trial = yield from self.ask(request)
        if trial is None or self.objective(trial) or not trial.setting:
            return trial
        suspects = self.failing.suspects(trial.setting)
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            tried = yield from self.ask(TrialRequest(request.phase, request.round, request.block, dict(half)))
            if tried is None:
                return None
            suspects = suspects[len(half) :] if self.objective(tried) else half
        if suspects:
            alone = yield from self.ask(
                TrialRequest(request.phase, request.round, request.block, dict(suspects))
            )
            if alone is None:
                return None
            if not self.objective(alone):
                self._blame(suspects[0])
        elif (arm := self.failing.unreliable(trial.setting)) is not None:
            self._blame(arm)
        return trial

    def _blame(self, arm: Arm) -> None:
        self.failing.blame(arm)
        self.notes.append(f"{arm[0]}={arm[1]} is not tried any more: {self.failing.out[arm]}")


def _other(request: TrialRequest, first: Trial) -> TrialRequest:
    """Return the request for the other trial of a pair, when the first one is there."""
    assert request.beside is not None, "a pair has two settings"
    if first.within is None:
        return replace(request, setting=request.beside, beside=None)
    return replace(request, setting=request.beside, beside=request.setting, made=True)
