"""What the trials of a search say so far: effects of values, what is still open, what is best, and what it harms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wulf.base.records import Candidate, Estimate, TunePlan, Values
from wulf.node.trials.experiment import choice, power, refine
from wulf.node.trials.experiment.evidence import HALF, OBJECTIVE, ROOMY, Arm, Model
from wulf.node.trials.experiment.state import State
from wulf.node.trials.experiment.trial_requests import Asker
from wulf.stats.core.linear import Contrast

#: What models are made of: trials, values tried again, and values that are out.
_Basis = tuple[object, ...]
#: Knobs that go on to the second factorial, and values of each.
SURVIVORS, SURVIVING_VALUES = 6, 2
#: One-sided chance at which an effect is no longer looked for.
FUTILE = 0.02
#: Effect that the test of the confirmation is most sensitive to, in scatters of a trial.
TYPICAL = 1.0
#: A confirmed effect is measured on until its interval is so wide, as a share of it.
PRECISE = 0.25
#: Harm that a confirmation has to rule out of every guard metric, as a share, and the one-sided chance to be wrong.
GUARDED, UNGUARDED = 0.05, 0.05


class Known:
    """What is known at this point; nothing of it is kept, but what is tried again."""

    def __init__(self, plan: TunePlan, asker: Asker, state: State) -> None:
        self.plan = plan
        self.asker = asker
        self.state = state
        self.evidence, self.failing = asker.evidence, asker.failing
        self.candidates = {candidate.knob: candidate for candidate in plan.candidates}
        self.arms: list[Arm] = [(c.knob, value) for c in plan.candidates for value in c.values]
        #: Values tried in the second factorial, or alone.
        self.again: dict[str, list[str]] = {}
        #: What the models are made of, and those that were asked for since it last changed: settings without number
        #: are held against the same few.
        self._basis: _Basis = ()
        self._models: dict[tuple[int, ...], Model | None] = {}
        self._screened: dict[tuple[tuple[int, ...], tuple[Arm, ...]], dict[Arm, Contrast]] = {}

    def _renew(self) -> None:
        """Forget what was calculated from less than is known now."""
        again = tuple((knob, tuple(values)) for knob, values in self.again.items())
        basis = self.evidence.begun, len(self.evidence.rows), again, tuple(self.failing.out)
        if basis != self._basis:
            self._basis = basis
            self._models.clear()
            self._screened.clear()

    @property
    def error(self) -> float:
        """One-sided chance to keep a useless value, of each one: what is allowed is shared by all."""
        return self.plan.false_discovery / 2 / max(len(self.arms), 1)

    def working(self) -> list[Arm]:
        """Values that may be tried."""
        return self.failing.working(self.arms)

    def is_dear(self, candidate: Candidate) -> bool:
        """Whether a change of a knob takes longer than a trial; within launches the nodes switch it themselves."""
        return self.asker.clock.is_dear(candidate) and not self.asker.is_live(candidate.knob)

    def levels(self) -> dict[str, list[str]]:
        """Values that are tried together with others."""
        return {
            c.knob: values
            for c in self.plan.candidates
            if not self.is_dear(c)
            and (values := [value for _, value in self.failing.working((c.knob, v) for v in c.values)])
        }

    def group(self, within: bool) -> dict[str, list[str]]:
        """Values that are tried together: those that are compared within launches, or the others."""
        return {knob: values for knob, values in self.levels().items() if self.asker.is_live(knob) == within}

    def screened(self, figure: Sequence[int] = OBJECTIVE) -> dict[Arm, Contrast]:
        """Effect of every value that is tried together with others."""
        self._renew()
        arms = tuple((knob, value) for knob, values in self.levels().items() for value in values)
        key = tuple(figure), arms
        if key not in self._screened:
            self._screened[key] = self.evidence.screen(arms, figure)
        return self._screened[key]

    def is_open(self, found: dict[Arm, Contrast]) -> bool:
        """Whether an effect may matter and is not proven, however often it is looked at; or nothing is known."""
        worth = -math.log1p(self.plan.margin)
        return not found or any(
            one.evidence(TYPICAL) < 1 / self.error and one.lower(FUTILE) < worth for one in found.values()
        )

    def survivors(self) -> dict[str, list[str]]:
        """Return the knobs that seem to help, the plainest first, each with its best values."""
        found = {arm: one for arm, one in self.screened().items() if one.t < -power.SURVIVES}
        levels: dict[str, list[str]] = {}
        for knob, value in sorted(found, key=lambda arm: found[arm].t):
            if knob in levels or len(levels) < SURVIVORS:
                levels.setdefault(knob, []).append(value)
        return {knob: values[:SURVIVING_VALUES] for knob, values in levels.items()}

    def model(self, figure: Sequence[int] = OBJECTIVE) -> Model | None:
        """Return the effects of all values that were tried again, with those of the others where there is room."""
        self._renew()
        key = tuple(figure)
        if key not in self._models:
            self._models[key] = self._fitted(key)
        return self._models[key]

    def _fitted(self, figure: Sequence[int]) -> Model | None:
        again = [(knob, value) for knob, values in self.again.items() for value in values]
        again = self.failing.working(again)
        known = [arm for arm in dict.fromkeys([*again, *self.working()]) if self.evidence.count(arm)]
        survivors: dict[str, list[str]] = {}
        for knob, value in again:
            survivors.setdefault(knob, []).append(value)
        survivors = {
            knob: values for knob, values in survivors.items() if any((knob, v) in known for v in values)
        }
        if len(self.evidence.rows) >= ROOMY * (len(known) + 3):
            whole = choice.with_joints(self.evidence, known, survivors, figure)
            if whole is not None:
                return whole
        few = [arm for arm in again if arm in known]
        return choice.with_joints(self.evidence, few, survivors, figure)

    def seen(self, levels: dict[str, list[str]]) -> dict[Arm, Contrast]:
        """Effect of each value alone."""
        model = self.model()
        arms = self.failing.working((knob, value) for knob, values in levels.items() for value in values)
        return (
            {}
            if model is None
            else {arm: model.contrast(dict([arm]), {}) for arm in arms if arm in model.columns}
        )

    def best(self) -> Values:
        """Return what is proven by all trials so far."""
        model = self.model()
        if model is None:
            return {}
        survivors = {
            knob: values
            for knob, all_values in self.again.items()
            if (
                values := [
                    v for v in all_values if (knob, v) in model.columns and (knob, v) not in self.failing.out
                ]
            )
        }
        return choice.best(
            model,
            survivors,
            self.error,
            self.plan.margin,
            self.is_allowed,
        )

    def gains(self, knob: str) -> dict[float, float]:
        """Return the values of a numeric knob that were tried, with what each gains; 0 for the original."""
        model = self.model()
        gains: dict[float, float] = {}
        original = refine.number(self.candidates[knob].original)
        if original is not None:
            gains[original] = 0.0
        if model is not None:
            values = [key[1] for key in model.columns if isinstance(key, tuple) and key[0] == knob]
            gains.update({float(value): -model.effect({knob: value}) for value in values})
        return gains

    def guards(self) -> dict[str, Model]:
        """Return the models of the guard metrics."""
        models = {
            metric.name: self.model((column,))
            for column, metric in enumerate(self.plan.metrics, start=1)
            if metric.guard
        }
        return {name: model for name, model in models.items() if model is not None}

    def worsened(self, setting: Values, base: Values | None = None) -> list[str]:
        """Guard metrics that a setting makes worse than another one, or than the original."""
        if not setting:
            return []
        models = self.guards()
        return [
            name for name, model in models.items() if is_harm(model.contrast(setting, base or {}), self.plan)
        ]

    def is_allowed(self, setting: Values) -> bool:
        """Whether neither a setting nor any knob of it makes a guard metric worse, whatever the others heal."""
        return not self.worsened(setting) and not any(
            self.worsened(setting, choice.without(setting, knob)) for knob in setting
        )

    def harmed(self, chance: float = choice.HARM) -> list[str]:
        """Guard metrics that the tested set makes worse, by the trials of the confirmation."""
        found = {
            metric.name: self.confirmed((column,))
            for column, metric in enumerate(self.plan.metrics, start=1)
            if metric.guard
        }
        return [name for name, one in found.items() if one is not None and is_harm(one, self.plan, chance)]

    def unguarded(self) -> dict[str, float]:
        """Guard metrics that may be worse than is promised, by the trials of the confirmation, and by how much."""
        found = {
            metric.name: self.confirmed((column,))
            for column, metric in enumerate(self.plan.metrics, start=1)
            if metric.guard
        }
        upper = {name: one.upper(UNGUARDED) for name, one in found.items() if one is not None}
        return {name: math.expm1(one) for name, one in upper.items() if one > math.log1p(self.guarded)}

    @property
    def guarded(self) -> float:
        """Change for the worse of a guard metric that a confirmation has to rule out, as a share."""
        return max(GUARDED, self.plan.margin)

    def denied(self) -> str:
        """Knob of the tested set, or nothing, that all trials deny a gain, those of the confirmation among them."""
        tested, model = self.state.tested, self._every()
        if model is None:
            return next(iter(tested))
        without = {knob: choice.without(tested, knob) for knob in tested}
        denied = [knob for knob, rest in without.items() if not model.agrees(tested, rest, HALF)]
        return max(denied, key=lambda knob: model.contrast(tested, without[knob]).t, default="")

    def is_clear(self) -> bool:
        """Whether more trials would hardly change that."""
        tested, model = self.state.tested, self._every()
        return model is None or model.is_clear(tested, {})

    def _every(self) -> Model | None:
        """Return the model of all trials, those of the confirmation among them."""
        few = [arm for arm in self.state.tested.items() if self.evidence.count(arm)]
        known = [arm for arm in dict.fromkeys([*few, *self.working()]) if self.evidence.count(arm)]
        model = None
        if len(self.evidence.rows) >= ROOMY * (len(known) + 3):
            model = self.evidence.model(known, (), every=True)
        # Where there is no room for all of them, or they cannot be told apart, the others are scatter.
        return model or self.evidence.model(few, (), every=True)

    def harm(self, knob: str, harmed: Sequence[str]) -> float:
        """How much a kept knob adds to the guards that are harmed, in standard errors."""
        guards = {name: model for name, model in self.guards().items() if name in harmed}
        kept = self.state.kept
        return sum(model.contrast(kept, choice.without(kept, knob)).t for model in guards.values())

    def confirmed(self, figure: Sequence[int] = OBJECTIVE) -> Contrast | None:
        """Effect of the tested set by the trials of the confirmation; None where there are too few."""
        tested = self.state.tested
        arms = [arm for arm in tested.items() if self.evidence.count(arm)]
        model = self.evidence.model(arms, (), figure, confirming=tested)
        return None if model is None else model.confirmed(tested)

    def is_proven(self, found: Contrast) -> bool:
        """Whether an effect that matters is proven: by the whole confirmation, or at any of the looks at it."""
        proven = found.p_value() <= power.UNCONFIRMED or found.evidence(TYPICAL) >= 2 / power.UNCONFIRMED
        return proven and found.value < -math.log1p(self.plan.margin)

    def is_known(self, found: Contrast) -> bool:
        """Whether an effect is proven whenever it is looked at, and known well enough to be told."""
        low, high = found.interval(self.plan.confidence)
        wide = max(PRECISE * abs(found.value), self.plan.margin)
        return found.evidence(TYPICAL) >= 2 / power.UNCONFIRMED and high - low <= 2 * wide

    def ratio(self, found: Contrast) -> Estimate:
        """Return an effect as a ratio with its interval."""
        return power.ratio(found, self.plan.confidence, len(self.evidence.rows))


def is_harm(found: Contrast, plan: TunePlan, chance: float = choice.HARM) -> bool:
    """Whether a guard metric is worse, beyond what does not matter."""
    return found.value > math.log1p(plan.margin) and found.p_value() / 2 <= chance
