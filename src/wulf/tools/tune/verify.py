"""Whether what a tuning run promised still holds, in figures."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from wulf.base.errors import AnalysisError
from wulf.base.must_see import MUST_SEE
from wulf.base.records import Control, Effect, Estimate
from wulf.base.store.tuning import TuningRun
from wulf.node.trials.bench import TrialRunner
from wulf.node.trials.experiment import power
from wulf.node.trials.experiment.costs import Costs
from wulf.node.trials.experiment.objective import figures_of
from wulf.stats.core.linear import fit

#: Trials that are measured now.
TRIALS = 10
CONFIDENCE = 0.95


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The objective now, against what the run had measured."""

    #: Now ÷ with the kept settings then; 1 or below is as good as promised.
    against_kept: Estimate
    #: Now ÷ with the original settings then.
    against_original: Estimate
    #: Difference that this cluster cannot show, as a share.
    smallest_effect: float
    #: The objective of each trial now: the weighted geometric mean of its metrics' costs.
    costs: list[float]
    holds: bool
    #: Loss that would have been seen, as a share; null where there is no interval.
    visible: float | None = None

    @property
    def untold(self) -> bool:
        """Whether a loss that matters would have gone unseen."""
        return self.holds and not (self.visible is not None and self.visible <= MUST_SEE[0])


def confirmed(run: TuningRun) -> tuple[Effect, Control] | None:
    """Return what a run has confirmed, with the control that says what could be seen; None where it kept nothing."""
    result = run.result
    if result is None or result.confirmation is None or result.control is None:
        return None
    return result.confirmation, result.control


def measure(run: TuningRun, bench: TrialRunner, progress: Callable[[int, int], None]) -> Figures:
    """Measure some trials as the nodes are, and compare them with those of the run's confirmation.

    Raises
    ------
    AnalysisError
        The run has no confirmation to compare with.
    TrialError
        The nodes cannot be measured.
    """
    found = confirmed(run)
    if found is None:
        raise AnalysisError(
            f"{run.path} has no confirmed settings whose figures could be verified; "
            "without a RUN, 'wulf settings verify' looks at values and files"
        )
    confirmation, control = found
    costs = Costs(run.manifest.plan.metrics)
    figures = figures_of(run.manifest.plan.metrics)
    now = []
    for number in range(TRIALS):
        reading = bench.measure(run.manifest.workload, figures, run.manifest.plan.seed + 10_000 + number)
        now.append(_cost(costs, reading.values))
        progress(number + 1, TRIALS)
    kept = _confirming(run, costs, confirmation.tried)
    original = _confirming(run, costs, confirmation.base)
    smallest = control.smallest_effect
    against = ratio(kept, now)
    return Figures(
        against_kept=against,
        against_original=ratio(original, now),
        smallest_effect=smallest,
        costs=now,
        # Worse than promised, beyond what the cluster does by itself, is what must not be.
        holds=against.low is not None and against.low <= 1 + smallest,
        visible=_visible(against, smallest),
    )


def _visible(against: Estimate, smallest: float) -> float | None:
    """Return the loss whose interval, as wide as this one, begins where losses begin to count."""
    if not against.low or not math.isfinite(against.value / against.low):
        return None
    return (1 + smallest) * against.value / against.low - 1


def _confirming(run: TuningRun, costs: Costs, setting: dict[str, str]) -> list[float]:
    return [
        float(np.exp(costs.of(trial)[0]))
        for trial in run.trials
        if trial.phase == "confirmation" and trial.status == "ok" and trial.setting == setting
    ]


def _cost(costs: Costs, values: dict[str, float]) -> float:
    cost = math.exp(float(costs.of_values(values)[0]))
    if not math.isfinite(cost):
        raise AnalysisError("a figure of the objective is missing or not above zero")
    return cost


def ratio(base: list[float], now: list[float]) -> Estimate:
    """Return now ÷ base of two independent samples, with its interval: few trials of then are enough."""
    values = np.log([*base, *now])
    causes = np.column_stack([np.ones(values.size), np.arange(values.size) >= len(base)])
    return power.ratio(fit(causes, values).contrast([0.0, 1.0]), CONFIDENCE, values.size)
