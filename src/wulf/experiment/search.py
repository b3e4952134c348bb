"""The search as the procedure sees it: ask for the next trial, tell what came out, read the conclusion."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from wulf.errors import AnalysisError, UsageError
from wulf.experiment import budget
from wulf.experiment.blocks import key, toggle_s
from wulf.experiment.power import estimate
from wulf.experiment.strategy import Strategy, TrialRequest
from wulf.experiment.verdicts import shift
from wulf.records import SCHEMA_VERSION, Estimate, Phase, Trial, TunePlan, Tuning, Values

Status = Literal["complete", "budget", "interrupted", "failed", "search"]
#: Phases that end early enough for what comes after them.
_SEARCHING = ("control", "screening", "refinement", "forward")


@dataclass(frozen=True)
class Forecast:
    """For the display while a search runs."""

    phase: Phase | None
    round: int
    #: What is being tested: knob and value of every arm, or the whole set.
    testing: list[str]
    trials_used: int
    #: Trials probably still needed, and their time [s].
    trials_left: int
    time_left_s: float
    #: The most promising setting that is being tested, and its effect so far.
    leader: str
    effect: Estimate | None


class Search:
    """A tuning run's experiment.

    Deterministic: the same plan and the same trials give the same next request. A search is continued by telling
    a new one the stored trials, in their order. Decisions that the clock made need not be stored: a stored trial
    that is not the one wanted shows that there was no time for that one.

    Parameters
    ----------
    plan
        What to do.

    Raises
    ------
    UsageError
        When no metric has a weight, or the numbers of blocks make no sense.
    """

    def __init__(self, plan: TunePlan) -> None:
        if not 2 <= plan.min_blocks <= plan.max_blocks:
            raise UsageError(f"blocks: {plan.min_blocks} to {plan.max_blocks} is no range from 2 up")
        self._strategy = Strategy(plan)
        self._candidates = {candidate.knob: candidate for candidate in plan.candidates}
        self._steps = self._strategy.run()
        self._request: TrialRequest | None = next(self._steps)
        self._last: Values = {}
        self._used = 0

    @property
    def plan(self) -> TunePlan:
        """What the search was made from."""
        return self._strategy.plan

    def ask(self, left_s: float) -> TrialRequest | None:
        """Return the next trial, or None at the end.

        Parameters
        ----------
        left_s
            Time that is left [s]. A trial is not begun when it does not fit; while the search still looks for
            better settings, it must leave the time to check and confirm what it has.
        """
        while self._request is not None and left_s < self._needed_s(self._request):
            self._advance(None)
        return self._request

    def tell(self, trial: Trial) -> None:
        """Take the outcome of a trial.

        Raises
        ------
        AnalysisError
            When it is not a trial that this search could have asked for next.
        """
        while self._request is not None and not _answers(trial, self._request):
            self._advance(None)
        if self._request is None:
            raise AnalysisError(
                f"trial {trial.index} ({trial.phase}, round {trial.round}, block {trial.block}) does not belong to "
                "this plan; start a new tuning run"
            )
        self._last = trial.setting
        self._used += 1
        self._advance(trial)

    def tuning(self, run_id: str, status: Status) -> Tuning:
        """Conclude from what is known.

        Parameters
        ----------
        status
            As the caller sees it; "complete" becomes "budget" or "failed" where the search ended so.
        """
        state = self._strategy.state
        if status == "complete":
            status = state.ended or "search"
        levels = [1 + len(candidate.values) for candidate in self.plan.candidates]
        blocks = state.rules.usual_blocks if state.rules else self.plan.min_blocks
        return Tuning(
            schema_version=SCHEMA_VERSION,
            run_id=run_id,
            status=status,
            control=state.control,
            effects=list(state.effects),
            path=list(state.path),
            kept=dict(state.kept) if state.confirmed else {},
            confirmation=state.confirmation,
            trials_used=self._used,
            trials_factorial=prod(levels) * blocks,
            notes=list(state.notes),
        )

    def forecast(self) -> Forecast:
        """Say what is being tested, how far it is, and what is probably still to come."""
        race, request = self._strategy.race, self._request
        left = self._trials_left()
        testing, leader, effect = [], "", None
        if race is not None and request is not None:
            testing = [_name(arm.knob, arm.value) for arm in race.active()]
            best = race.best()
            if best is not None:
                leader = _name(best.knob, best.value)
                found = shift(race.differences(best)[:, 0], race.rules)
                effect = estimate(found.ratio) if found else None
        return Forecast(
            phase=request.phase if request else None,
            round=request.round if request else 0,
            testing=testing,
            trials_used=self._used,
            trials_left=left,
            time_left_s=left * self._strategy.trial_s,
            leader=leader,
            effect=effect,
        )

    def _advance(self, trial: Trial | None) -> None:
        try:
            self._request = self._steps.send(trial)
        except StopIteration:
            self._request = None

    def _needed_s(self, request: TrialRequest) -> float:
        """Time for a trial and for what must come after it [s]."""
        strategy = self._strategy
        own = strategy.trial_s + toggle_s(self._candidates, self._last, request.setting)
        rules = strategy.state.rules
        if rules is None or request.phase == "confirmation":
            return own
        kept = strategy.state.kept
        trials = budget.CONFIRMATION_SETTINGS * rules.blocks
        if request.phase in _SEARCHING and kept:
            # One more may be kept before the backward check begins; what is clear ends at the first look.
            trials += (2 + len(kept)) * rules.usual_blocks
        # Every setting of a block is set once; the next block begins with the one that the last ended with.
        toggles = rules.blocks * sum(self._candidates[knob].toggle_s for knob in kept)
        return own + trials * strategy.trial_s + toggles

    def _trials_left(self) -> int:
        """Estimate the number of trials to the end."""
        request, strategy = self._request, self._strategy
        if request is None:
            return 0
        rules, race = strategy.state.rules, strategy.race
        if rules is None or race is None:
            control = 2 * budget.control_blocks(self.plan) - self._used
            return control + round(budget.expected_s(self.plan.candidates, self.plan.min_blocks, 1.0))
        blocks = rules.usual_blocks
        staying = len(race.active())
        if request.phase in _SEARCHING:
            staying = max(round(budget.STAYING * staying), 1)
        trials = max(blocks - race.block, 1) * (1 + staying)
        if request.phase == "screening":
            trials += round(budget.ROUNDS * blocks * (1 + budget.STAYING * len(strategy.candidates)))
        if request.phase in _SEARCHING:
            trials += budget.BACKWARD_SETTINGS * blocks
        if request.phase != "confirmation":
            trials += budget.CONFIRMATION_SETTINGS * blocks
        return trials


def _answers(trial: Trial, request: TrialRequest) -> bool:
    return (trial.phase, trial.round, trial.block, key(trial.setting)) == (
        request.phase,
        request.round,
        request.block,
        key(request.setting),
    )


def _name(knob: str, value: str) -> str:
    return f"{knob}={value}" if knob else "the whole set"
