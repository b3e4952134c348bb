"""The search as the procedure sees it: ask for the next trial, tell what came out, read the conclusion."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from wulf.base.errors import AnalysisError
from wulf.base.records import SCHEMA_VERSION, Estimate, Phase, Trial, TunePlan, Tuning
from wulf.node.trials.experiment import conclude
from wulf.node.trials.experiment.strategy import Strategy
from wulf.node.trials.experiment.trial_requests import TrialRequest

Status = Literal["complete", "budget", "interrupted", "failed", "search"]
#: Phase → share of the budget that it leaves to those that come after it.
_RESERVE: dict[Phase, float] = {"screening": 0.45, "forward": 0.2, "refinement": 0.2}
#: The same of a screening that is taken up again.
_AGAIN = 0.25


@dataclass(frozen=True)
class Forecast:
    """For the display while a search runs."""

    phase: Phase | None
    #: What is being tested: knob and value of all that is set.
    testing: list[str]
    #: Trials probably still needed, and their time [s].
    trials_left: int
    time_left_s: float
    #: The most promising value so far, and its effect.
    leader: str
    effect: Estimate | None
    #: Smallest effect that is found in nine cases out of ten, as a share; None where that is not known yet.
    smallest: float | None


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
        When no metric has a weight.
    """

    def __init__(self, plan: TunePlan) -> None:
        self._strategy = Strategy(plan)
        self._steps = self._strategy.run()
        self._request: TrialRequest | None = next(self._steps, None)
        self._used = 0
        self._left_s = plan.budget_s

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
            better settings, it must leave the time to look again at what it has, and to confirm it.
        """
        self._left_s = left_s
        while self._request is not None and not self._request.made and left_s < self._needed_s(self._request):
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
        if self._request is None:
            self._strategy.control.foresee(at_end=True)
        return Tuning(
            schema_version=SCHEMA_VERSION,
            run_id=run_id,
            status=status,
            control=state.control,
            effects=conclude.effects(self._strategy.known),
            path=list(state.path),
            kept=dict(state.tested) if state.confirmed else {},
            confirmation=conclude.confirmation(self._strategy.known),
            trials_used=self._used,
            trials_factorial=prod(1 + len(candidate.values) for candidate in self.plan.candidates),
            notes=list(state.notes),
        )

    def forecast(self) -> Forecast:
        """Say what is being tested, how far it is, and what is probably still to come."""
        strategy, request = self._strategy, self._request
        found = strategy.known.screened()
        leader = min(found, key=lambda arm: found[arm].t, default=None)
        each_s = (
            strategy.asker.clock.trial_s + strategy.asker.clock.cost_s(frozenset(strategy.known.levels())) / 2
        )
        trials = min(strategy.needed(), int(self._left_s / each_s)) if request else 0
        return Forecast(
            phase=request.phase if request else None,
            testing=[_name(*arm) for arm in request.setting.items()] if request else [],
            trials_left=trials,
            time_left_s=min(trials * each_s, self._left_s),
            leader=_name(*leader) if leader else "",
            effect=strategy.known.ratio(found[leader]) if leader else None,
            smallest=strategy.state.control.smallest_effect if strategy.state.control else None,
        )

    def _advance(self, trial: Trial | None) -> None:
        try:
            self._request = self._steps.send(trial)
        except StopIteration:
            self._request = None

    def _needed_s(self, request: TrialRequest) -> float:
        """Time for a trial and for what must come after it [s]."""
        clock = self._strategy.asker.clock
        share = _RESERVE.get(request.phase, 0.0)
        if request.phase == "screening" and request.round:
            share = _AGAIN
        share += request.spare
        if request.beside is not None:
            return 2 * clock.within_s + share * self.plan.budget_s
        return clock.trial_s + clock.change_s(request.setting) + share * self.plan.budget_s


def _answers(trial: Trial, request: TrialRequest) -> bool:
    return (trial.phase, trial.round, trial.block, trial.setting) == (
        request.phase,
        request.round,
        request.block,
        request.setting,
    )


def _name(knob: str, value: str) -> str:
    return f"{knob}={value}"
