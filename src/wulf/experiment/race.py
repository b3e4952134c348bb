"""Several settings against a base that they share, in randomised blocks; those that cannot win leave early."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wulf.experiment import verdicts
from wulf.experiment.blocks import key, random_order
from wulf.experiment.costs import Costs, Floats
from wulf.experiment.power import PSEUDO_MEDIAN, Rules, estimate, scale
from wulf.records import Effect, Phase, Trial, Values
from wulf.stats.paired import pseudo_median
from wulf.stats.shift import Shift

#: Pairs at the first look, and standard errors that an arm may be below what is worth finding at it …
FIRST_LOOK = 3
FIRST_FUTILE = 3.0
#: … and at the later ones: of arms whose effect can just be shown, 5 % are given up at each.
FUTILE = 1.645
#: Residuals from which the race's own noise is better known than the control's.
OWN_NOISE = 12
#: Contaminated pairs are left out where at least this share is clean.
CLEAN_SHARE = 0.5
#: Scales from the median beyond which a pair is an outlier to a look that may send an arm away.
OUTLIER = 4.0
#: An arm stays while it has outliers and fewer other pairs than this.
FEW = 5


@dataclass(frozen=True)
class Row:
    """What a trial contributes to a block."""

    costs: Floats
    clean: bool


@dataclass(eq=False)
class Arm:
    """A setting that is tried."""

    knob: str
    value: str
    setting: Values
    #: Block → what was measured.
    rows: dict[int, Row] = field(default_factory=dict)
    failed: int = 0
    #: Why it left the race; None while it is in it.
    left: str | None = None

    @property
    def fails(self) -> bool:
        """It fails repeatedly: always, twice or more, or in more than a third of at least nine trials."""
        succeeded = len(self.rows)
        return self.failed >= 2 and (succeeded == 0 or (self.failed >= 3 and self.failed > succeeded / 2))


class Race:
    """One round of a phase.

    Parameters
    ----------
    seeking
        −1 where arms are looked for that are better than the base, +1 where those that are worse are.
    """

    def __init__(
        self,
        rules: Rules,
        costs: Costs,
        phase: Phase,
        round_: int,
        base: Values,
        arms: Sequence[Arm],
        seeking: int = -1,
    ) -> None:
        self.rules = rules
        self.phase: Phase = phase
        self.round = round_
        self.base = Arm("", "", base)
        self.arms = list(arms)
        self._costs = costs
        self._seeking = seeking
        #: What was found once is given all its pairs when it is checked.
        self._patient = phase in ("backward", "confirmation")
        self._blocks = 0
        self._order: list[Values] = []

    @property
    def block(self) -> int:
        """Number of the block that is being measured."""
        return self._blocks

    def active(self) -> list[Arm]:
        """Arms that are still measured."""
        return [arm for arm in self.arms if arm.left is None]

    def next_order(self) -> list[Values]:
        """Order of the next block: random, and every second time the reverse of the block before.

        A pair of blocks is then balanced (ABBA): a steady drift cancels, and the setting at the seam need not be
        changed.
        """
        settings = [self.base.setting, *(arm.setting for arm in self.active())]
        if self._blocks % 2:
            wanted = {key(setting) for setting in settings}
            self._order = [setting for setting in reversed(self._order) if key(setting) in wanted]
        else:
            self._order = random_order(self.rules.plan, self.phase, self.round, self._blocks, settings)
        return self._order

    def take(self, trial: Trial) -> None:
        """Take a trial of the present block."""
        arm = next(arm for arm in [self.base, *self.arms] if key(arm.setting) == key(trial.setting))
        if trial.status == "failed":
            arm.failed += 1
        else:
            arm.rows[self._blocks] = Row(self._costs.of(trial), not trial.contamination)

    def end_block(self, earlier: Sequence[float]) -> None:
        """Look at what is known after a block; `earlier` are the p values of the search's other comparisons."""
        self._blocks += 1
        for arm in self.active():
            arm.left = self._leaves(arm)
        if self.rules.interim and self._blocks >= self.rules.interim:
            self._interim(earlier)
        if self._blocks >= self.rules.most_blocks or self.base.fails:
            for arm in self.active():
                arm.left = "what it is compared with fails" if self.base.fails else ""

    def differences(self, arm: Arm) -> Floats:
        """Arm − base of the pairs that count, shape (pairs, 1 + metrics)."""
        blocks = [block for block in arm.rows if block in self.base.rows]
        if not blocks:
            return np.empty((0, 1 + len(self._costs.metrics)))
        pairs = [(arm.rows[block], self.base.rows[block]) for block in blocks]
        differences = np.array([tried.costs - base.costs for tried, base in pairs])
        clean = np.array([tried.clean and base.clean for tried, base in pairs])
        return verdicts.usable(differences, clean, max(FIRST_LOOK, math.ceil(len(pairs) * CLEAN_SHARE)))

    def gain(self, arm: Arm) -> float | None:
        """Logarithm of the effect in the direction that is looked for; None without pairs."""
        objective = self.differences(arm)[:, 0]
        return self._seeking * pseudo_median(objective) if objective.size else None

    def best(self) -> Arm | None:
        """Most promising arm so far."""
        gains = [(gain, arm) for arm in self.active() or self.arms if (gain := self.gain(arm)) is not None]
        return max(gains, key=lambda pair: pair[0])[1] if gains else None

    def noise(self) -> float:
        """Scale of the differences, from this race's own residuals where there are enough."""
        residuals = []
        for arm in self.arms:
            values = self.differences(arm)[:, 0]
            if values.size >= FIRST_LOOK:
                # The median is fitted: n residuals are worth n − 1.
                residuals.append((values - np.median(values)) * math.sqrt(values.size / (values.size - 1)))
        pooled = np.concatenate(residuals) if residuals else np.empty(0)
        return scale(pooled) if pooled.size >= OWN_NOISE else self.rules.noise

    def _leaves(self, arm: Arm) -> str | None:
        """Why an arm leaves the race now; None when it stays, "" when it has all its pairs."""
        pairs = len(self.differences(arm))
        if arm.fails:
            return f"fails: {arm.failed} of {arm.failed + len(arm.rows)} trials"
        if not pairs and len(arm.rows) >= FIRST_LOOK:
            return f"no usable value in {len(arm.rows)} trials"
        if pairs >= self.rules.blocks:
            return ""
        return None if self._patient or pairs < FIRST_LOOK else self._futile(arm, pairs)

    def _futile(self, arm: Arm, pairs: int) -> str | None:
        """Why an arm need not be measured any more; None when it must be."""
        noise = self.noise()
        calm = self._calm(arm, noise)
        if len(calm) < min(pairs, FEW):
            return None
        factor = FIRST_FUTILE if pairs == FIRST_LOOK else FUTILE
        doubt = factor * noise * PSEUDO_MEDIAN / math.sqrt(pairs)
        gain = self._seeking * pseudo_median(calm)
        # The control may have seen more noise than there is now: what is worth finding is then smaller.
        if gain + doubt < min(self.rules.target, self.rules.target_at(noise)):
            return f"left after {pairs} pairs: what is worth finding is out of reach"
        if self._sibling_gain(arm, noise) - gain > doubt:
            return f"left after {pairs} pairs: another value of the knob is better"
        return None

    def _calm(self, arm: Arm, noise: float) -> Floats:
        """Differences of the objective without outliers.

        One of three pairs would move even a pseudo-median. Only what leaves is decided so; what is proven is so
        with all pairs.
        """
        values = self.differences(arm)[:, 0]
        return values[np.abs(values - np.median(values)) <= OUTLIER * max(noise, self.rules.noise)]

    def _sibling_gain(self, arm: Arm, noise: float) -> float:
        """Best gain of the other values of the arm's knob."""
        others = [other for other in self.active() if other.knob == arm.knob and other is not arm]
        known = [calm for other in others if len(calm := self._calm(other, noise)) >= FIRST_LOOK]
        return max((self._seeking * pseudo_median(calm) for calm in known), default=-math.inf)

    def _interim(self, earlier: Sequence[float]) -> None:
        """Decide arms whose effect is proven already."""
        due = [arm for arm in self.active() if len(self.differences(arm)) == self.rules.interim]
        if not due:
            return
        for arm, effect in zip(self.arms, self.effects(earlier), strict=True):
            if arm in due and effect.verdict in ("better", "worse") and not self._unsettled(effect):
                arm.left = f"proven after {self.rules.interim} pairs"

    def _unsettled(self, effect: Effect) -> bool:
        """Whether a guard looks worse, but is not proven to be."""
        limit = max(math.log1p(self.rules.plan.margin), self.rules.limit(max(effect.blocks, 1)))
        guards = [metric.name for metric in self.rules.plan.metrics if metric.guard]
        suspects = [name for name in guards if name in effect.metrics and name not in effect.harmed]
        return any(math.log(effect.metrics[name].value) > limit for name in suspects)

    def effects(self, earlier: Sequence[float]) -> list[Effect]:
        """Effects of all arms, Benjamini–Hochberg with the p values of the comparisons before."""
        rows = [self.differences(arm) for arm in self.arms]
        shifts = [verdicts.shift(values[:, 0], self.rules) for values in rows]
        p_values = [1.0 if found is None else found.p_value for found in shifts]
        adjusted = verdicts.adjusted([*earlier, *p_values])[len(earlier) :]
        return [
            self._effect(arm, values, found, p)
            for arm, values, found, p in zip(self.arms, rows, shifts, adjusted, strict=True)
        ]

    def _effect(self, arm: Arm, differences: Floats, found: Shift | None, p_adjusted: float) -> Effect:
        metrics, harmed = verdicts.of_metrics(self._costs, differences, self.rules)
        lost = len(arm.rows) - len(differences)
        notes = [arm.left or "", f"{lost} trials without a usable pair" if lost > 0 else ""]
        failing = arm.fails or found is None
        return Effect(
            phase=self.phase,
            round=self.round,
            knob=arm.knob,
            value=arm.value,
            base=self.base.setting,
            tried=arm.setting,
            ratio=verdicts.nothing(self.rules.plan.confidence) if found is None else estimate(found.ratio),
            p_value=1.0 if found is None else found.p_value,
            p_adjusted=p_adjusted,
            verdict="no decision"
            if failing or found is None
            else verdicts.verdict(found, p_adjusted, self.rules),
            blocks=len(differences),
            trials=len(arm.rows),
            failed=arm.failed,
            metrics=metrics,
            patterns=verdicts.of_patterns(self._costs, differences, self.rules),
            harmed=harmed,
            note="; ".join(note for note in notes if note),
        )
