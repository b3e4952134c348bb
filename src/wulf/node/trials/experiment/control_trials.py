"""The control: how much trials scatter, how two settings are best compared, and what can be found so."""

from __future__ import annotations

import math

import msgspec

from wulf.base.records import Phase, Trial, TunePlan
from wulf.base.text import count
from wulf.node.trials.experiment import power
from wulf.node.trials.experiment.evidence import Model
from wulf.node.trials.experiment.results import Known
from wulf.node.trials.experiment.trial_requests import Asking, Going, TrialRequest

#: Blocks of two trials of the control: fewer where they already agree within the margin.
CONTROL_BLOCKS, CALM_CONTROL_BLOCKS = 3, 2
#: The same where some of them were disturbed.
MOST_CONTROL_BLOCKS = 4
#: Pairs of the control within launches.
WITHIN_BLOCKS = 4
#: Trials must seem to say so many times more than differences within launches to be preferred: usually these say
#: several times more, a few pairs of either are little to tell by, and those of the control have no change between.
DOUBTFUL = 3.0
#: A time below which none is told from another [s].
LEAST_S = 1e-3
#: Scatter below which none is told from another.
LEAST_SCATTER = 1e-5


class Unmeasurable(Exception):  # noqa: N818  (how a search ends that cannot begin)
    """The original settings cannot be measured."""


class ControlTrials:
    """The original settings against themselves, from launch to launch and within launches."""

    def __init__(self, plan: TunePlan, known: Known) -> None:
        self.plan = plan
        self.known = known
        self.asker = known.asker
        #: Log objectives of its blocks, and whether nothing disturbed them.
        self._blocks: list[list[float]] = []
        self._clean: list[bool] = []
        #: The same within launches: differences.
        self._differences: list[float] = []

    def measure(self) -> Going:
        """Measure the original settings against themselves; say whether there was time for it."""
        for block in range(MOST_CONTROL_BLOCKS):
            clean = sum(self._clean)
            if clean >= CONTROL_BLOCKS or (clean >= CALM_CONTROL_BLOCKS and self._is_calm()):
                break
            pair: list[Trial] = []
            for _ in range(2):
                trial = yield from self.asker.ask(TrialRequest("control", 0, block, {}))
                if trial is None:
                    return False
                pair.append(trial)
            self._blocks.append([cost for trial in pair for cost in self.asker.objective(trial)])
            self._clean.append(not any(trial.contamination for trial in pair))
        if not any(self._blocks):
            raise Unmeasurable(
                f"the original settings gave no value in {count(2 * len(self._blocks), 'trial')}"
            )
        yield from self._measure_within()
        self.foresee()
        return True

    def _measure_within(self) -> Asking:
        """Find out whether differences within launches say more in the same time than those between them."""
        if not self.plan.dwells or not any(c.established for c in self.plan.candidates):
            return
        for block in range(WITHIN_BLOCKS):
            request = TrialRequest("control", 1, block, {}, beside={})
            pair = yield from self.asker.ask_both(request)
            if len(pair) < 2 or pair[0].within is None:
                return
            first, second = (self.asker.objective(trial) for trial in pair)
            if not first or not second:
                why = pair[0].error or "no value"
                self.asker.notes.append(
                    f"settings are compared from launch to launch, as within one nothing was measured: {why}"
                )
                return
            self._differences.append(second[0] - first[0])
        within = self._says(self.within_scatter(), self.asker.clock.within_s)
        between = self._says(self.scatter(), self.asker.clock.pair_s / 2)
        self.asker.within = between < DOUBTFUL * within

    def _is_calm(self) -> bool:
        return self.scatter() < self.plan.margin / 2

    def _says(self, scatter: float, seconds: float) -> float:
        """Return what trials of this scatter and length say in a second."""
        return 1 / (max(scatter, LEAST_SCATTER) ** 2 * max(seconds, LEAST_S))

    def scatter(self) -> float:
        """Scatter of a trial, from the control: of the logarithm of the objective."""
        return power.scatter(self._blocks)

    def within_scatter(self) -> float:
        """Scatter of one of two trials within the same launches, from the control."""
        return power.scatter([[0.0, difference] for difference in self._differences])

    def foresee(self, *, at_end: bool = False) -> None:
        """Say what this cluster can show: before the search by what is planned, at its end by what was done."""
        blocks = [block for block, clean in zip(self._blocks, self._clean, strict=True) if clean]
        blocks = blocks if len(blocks) >= 2 else self._blocks
        scale = power.scatter(blocks)
        if not math.isfinite(scale):
            return
        model = self.known.model() if at_end else None
        each_s = self.asker.clock.trial_s + self.asker.clock.cost_s(frozenset(self.known.levels())) / 2
        kinds = {within for within in (True, False) if self.known.group(within)} or {self.asker.within}
        shares = {
            within: self._smallest(
                self.within_scatter() if within else scale,
                self._trials(
                    within, (self.asker.clock.within_s if within else each_s) * len(kinds), at_end=at_end
                ),
                model,
                within=within,
            )
            for within in kinds
        }
        smallest, trials = shares[min(kinds)]
        control = power.control(blocks, smallest, trials)
        if control is not None and len(kinds) > 1:
            control = msgspec.structs.replace(control, smallest_within=shares[True][0])
        self.known.state.control = control

    def _trials(self, within: bool, each_s: float, *, at_end: bool) -> tuple[int, int, int]:
        """Trials of screening, second factorial and confirmation that what is to be found has."""
        trials = max(int(self.plan.budget_s / each_s), 8)
        planned = trials // 2, trials // 4, trials // 5
        if not at_end:
            return planned
        phases: tuple[Phase, ...] = "screening", "forward", "confirmation"
        first, again, last = (self.asker.made[phase, within] for phase in phases)
        # It ends as soon as a plain effect is known; a small one would have had all its time.
        return first, again or planned[1], max(last, planned[2])

    def _smallest(
        self, scale: float, trials: tuple[int, int, int], model: Model | None, *, within: bool
    ) -> tuple[float, int]:
        """Return the smallest effect that is found, as a share, and the trials of each kind behind it."""
        if model is not None:
            found = model.within_scale if within else model.scale
            scale = found or scale
        most = max((len(values) for values in self.known.levels().values()), default=1)
        smallest = power.smallest_effect(
            max(round(scale, 5), LEAST_SCATTER),
            *(max(number // most, 2) for number in trials),
            len(self.known.arms),
            self.plan.false_discovery / 2,
        )
        return max(smallest, -math.expm1(-math.log1p(self.plan.margin))), sum(trials) // 2
