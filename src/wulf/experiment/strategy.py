"""The course of a search, as a coroutine: it yields the next trial's request and is sent the trial.

Sent None instead, it learns that there is no time for that trial, and goes on with what comes after.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from wulf.experiment import choice, design, power, refine
from wulf.experiment.clock import Clock
from wulf.experiment.costs import Costs
from wulf.experiment.design import Fold
from wulf.experiment.evidence import OBJECTIVE, ROOMY, Arm, Evidence, Model
from wulf.experiment.failing import Failing
from wulf.experiment.state import State
from wulf.records import Candidate, Estimate, Phase, Trial, TunePlan, Values
from wulf.stats.linear import Contrast

#: Blocks of two trials of the control: fewer where they already agree within the margin.
CONTROL_BLOCKS, CALM_CONTROL_BLOCKS = 3, 2
#: The same where some of them were disturbed.
MOST_CONTROL_BLOCKS = 4
#: Pairs of the control within launches.
WITHIN_BLOCKS = 4
#: Trials must seem to say so many times more than differences within launches to be preferred: usually these say
#: several times more, a few pairs of either are little to tell by, and those of the control have no change between.
DOUBTFUL = 3.0
#: Share of the budget that the first of two groups of knobs leaves to the screening of the other.
SHARED = 0.25
#: A time below which none is told from another [s].
LEAST_S = 1e-3
#: Knobs that go on to the second factorial, and values of each.
SURVIVORS, SURVIVING_VALUES = 6, 2
#: Pairs after which it is looked at first whether anything is still open, and by how much they grow to the next look.
LOOK, LATER = 2, 1.15
#: Screening is taken up again so often.
ROUNDS = 3
#: Blocks of four trials in which a knob is compared alone, at least.
FEWEST_ALONE = 2
#: One-sided chance at which a guard is suspected, and the blocks after which such a set is judged.
SUSPICIOUS, SUSPECTED = 0.1, 6
#: Trials of the confirmation of a setting that fail before it is not trusted.
UNRELIABLE = 2
#: Steps of refinement of one knob (each halves the distance), and trials of each value in one.
REFINEMENTS, REFINING = 3, 4
#: One-sided chance at which an effect is no longer looked for.
FUTILE = 0.02
#: Standard errors within the margin with which a value that does nothing is no longer looked for.
NOTHING = 3.0
#: Scatter below which none is told from another.
LEAST_SCATTER = 1e-5
#: Effect that the test of the confirmation is most sensitive to, in scatters of a trial.
TYPICAL = 1.0
#: A confirmed effect is measured on until its interval is so wide, as a share of it.
PRECISE = 0.25


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


class Unmeasurable(Exception):  # noqa: N818  (how a search ends that cannot begin)
    """The original settings cannot be measured."""


Asking = Generator[TrialRequest, Trial | None, None]
Asked = Generator[TrialRequest, Trial | None, Trial | None]
Going = Generator[TrialRequest, Trial | None, bool]


class Strategy:
    """Control, screening, the best ones again, single knobs, refinement, confirmation."""

    def __init__(self, plan: TunePlan) -> None:
        self.plan = plan
        self.clock = Clock(plan)
        self.evidence = Evidence(Costs(plan.metrics), frozenset(c.knob for c in plan.candidates if c.local))
        self.failing = Failing()
        self.state = State()
        self.candidates = {candidate.knob: candidate for candidate in plan.candidates}
        self.arms: list[Arm] = [(c.knob, value) for c in plan.candidates for value in c.values]
        #: Values tried in the second factorial, or alone.
        self.again: dict[str, list[str]] = {}
        #: Trials of each phase, and whether two shared their launches.
        self.made: Counter[tuple[Phase, bool]] = Counter()
        #: Log objectives of the blocks of the control, and whether nothing disturbed them.
        self._blocks: list[list[float]] = []
        self._clean: list[bool] = []
        #: The same within launches: differences.
        self._differences: list[float] = []
        #: Whether what acts on established connections is compared within launches.
        self.within = False
        #: Knobs that were switched within launches that measured, and those that probably end the connections.
        self._switched: set[str] = set()
        self._severing: set[str] = set()
        self._rng = np.random.default_rng(plan.seed)

    @property
    def error(self) -> float:
        """One-sided chance to keep a useless value, of each one: what is allowed is shared by all."""
        return self.plan.false_discovery / 2 / max(len(self.arms), 1)

    def run(self) -> Asking:
        """Go through all phases."""
        state = self.state
        state.step("start", "screening", {}, reason="original settings")
        try:
            yield from self._control()
        except Unmeasurable as error:
            state.ended = "failed"
            state.notes.append(str(error))
            return
        yield from self._search()
        self._note_harm()
        yield from self._confirm()
        state.ended = state.ended or "complete"

    # ---- the phases

    def _control(self) -> Asking:
        for block in range(MOST_CONTROL_BLOCKS):
            clean = sum(self._clean)
            if clean >= CONTROL_BLOCKS or (clean >= CALM_CONTROL_BLOCKS and self._is_calm()):
                break
            pair: list[Trial] = []
            for _ in range(2):
                trial = yield from self._ask(TrialRequest("control", 0, block, {}))
                if trial is None:
                    self._short("there was no time to measure the original settings often enough")
                    return
                pair.append(trial)
            self._blocks.append([cost for trial in pair for cost in self._objective(trial)])
            self._clean.append(not any(trial.contamination for trial in pair))
        if not any(self._blocks):
            raise Unmeasurable(f"the original settings gave no value in {2 * len(self._blocks)} trials")
        yield from self._control_within()
        self.foresee()

    def _control_within(self) -> Asking:
        """Find out whether differences within launches say more in the same time than those between them."""
        if not self.plan.dwells or not any(c.established for c in self.plan.candidates):
            return
        for block in range(WITHIN_BLOCKS):
            request = TrialRequest("control", 1, block, {}, beside={})
            pair = yield from self._ask_both(request)
            if len(pair) < 2 or pair[0].within is None:
                return
            first, second = (self._objective(trial) for trial in pair)
            if not first or not second:
                why = pair[0].error or "no value"
                self.state.notes.append(
                    f"settings are compared from launch to launch, as within one nothing was measured: {why}"
                )
                return
            self._differences.append(second[0] - first[0])
        within = self._says(self.within_scatter(), self.clock.within_s)
        between = self._says(power.scatter(self._blocks), self.clock.pair_s / 2)
        self.within = between < DOUBTFUL * within

    def _says(self, scatter: float, seconds: float) -> float:
        """Return what trials of this scatter and length say in a second."""
        return 1 / (max(scatter, LEAST_SCATTER) ** 2 * max(seconds, LEAST_S))

    def within_scatter(self) -> float:
        """Scatter of one of two trials within the same launches, from the control."""
        return power.scatter([[0.0, difference] for difference in self._differences])

    def _is_calm(self) -> bool:
        return power.scatter(self._blocks) < self.plan.margin / 2

    def _search(self) -> Asking:
        """Screen all, look at the best ones again, and try alone what is dear to change; while there is time."""
        for round_ in range(ROUNDS):
            for within in (True, False):
                yield from self._screen(round_, within)
            for within in (True, False):
                yield from self._forward(round_, within)
            if round_ == 0:
                yield from self._alone()
            self._choose()
            if not self._open(self.screened()):
                break
        self._note_kept()
        yield from self._refine()

    def is_live(self, knob: str) -> bool:
        """Whether values of a knob are compared within launches."""
        return self.within and self.candidates[knob].established and knob not in self._severing

    def _group(self, within: bool) -> dict[str, list[str]]:
        """Values that are tried together: those that are compared within launches, or the others."""
        return {knob: values for knob, values in self.levels().items() if self.is_live(knob) == within}

    def _screen(self, round_: int, within: bool) -> Asking:
        """Try knobs at once, half of them in each trial, until nothing is open or the time for it is over."""
        spare = SHARED if within and self._group(False) else 0.0
        pairs = 0
        while levels := self._group(within):
            for fold in design.screening(levels, self._rng):
                request = TrialRequest("screening", round_, pairs, {}, spare=spare)
                if not (yield from self._fold(request, fold)):
                    if round_ == 0 and pairs < len(levels):
                        self._short("the values could not all be told apart")
                    return
                pairs += 1
                if (
                    2 * pairs > len(levels) + 2
                    and _is_look(pairs)
                    and not self._open({arm: one for arm, one in self.screened().items() if arm[0] in levels})
                ):
                    return
                if levels.keys() != self._group(within).keys():
                    break

    def _forward(self, round_: int, within: bool) -> Asking:
        """Try those that seem to help again, in all combinations."""
        levels = {knob: values for knob, values in self._survivors().items() if self.is_live(knob) == within}
        for knob, values in levels.items():
            self.again[knob] = list(dict.fromkeys([*self.again.get(knob, []), *values]))
        if not levels or (len(levels) == 1 and not self._open(self._seen(levels))):
            return
        for pairs, fold in enumerate(design.factorial(levels, self._rng)):
            if not (yield from self._fold(TrialRequest("forward", round_, pairs, {}), fold)):
                return
            if _is_look(pairs + 1) and not self._open(self._seen(levels)):
                return

    def _alone(self) -> Asking:
        """Compare knobs whose change is dear by themselves, in turn, in blocks: without, with, with, without."""
        self._choose()
        dear = [c for c in self.plan.candidates if self._is_dear(c)]
        arms = self.failing.working((c.knob, value) for c in dear for value in c.values)
        for knob, value in arms:
            self.again.setdefault(knob, []).append(value)
        for block in itertools.count():
            if block >= FEWEST_ALONE:
                found = self._seen(self.again)
                arms = [arm for arm in arms if arm not in found or self._open({arm: found[arm]})]
            arms = self.failing.working(arms)
            if not arms:
                return
            for number, (knob, value) in enumerate(arms):
                base = choice.without(self.state.kept, knob)
                tried = {**base, knob: value}
                inner, outer = (tried, base) if block % 2 == 0 else (base, tried)
                for setting in (outer, inner, inner, outer):
                    request = TrialRequest("forward", ROUNDS + number, block, setting)
                    if (yield from self._try(request)) is None:
                        return
                    if (knob, value) in self.failing.out:
                        break

    def _refine(self) -> Asking:
        """Try values between the kept one of each numeric knob and its neighbours."""
        for number, knob in enumerate(list(self.state.kept)):
            if self.candidates[knob].numeric:
                yield from self._refine_knob(knob, number * REFINEMENTS)

    def _refine_knob(self, knob: str, round_: int) -> Asking:
        for step in range(REFINEMENTS):
            kept = self.state.kept
            gains = self._gains(knob)
            best = refine.number(kept.get(knob, ""))
            between = [] if best is None else refine.between(gains, best, math.log1p(self.plan.margin))
            values = [refine.text(value) for value in between]
            if not values:
                return
            self.again[knob] = [*self.again[knob], *values]
            settings = [kept, *({**kept, knob: value} for value in values)]
            for block in range(REFINING):
                for index in self._rng.permutation(len(settings)):
                    request = TrialRequest("refinement", round_ + step, block, settings[index])
                    if (yield from self._try(request)) is None:
                        self._choose()
                        self._note_kept()
                        return
            self._choose()
            self._note_kept()

    def _confirm(self) -> Asking:
        """Compare the whole set with the original settings in fresh trials; drop what harms, and try again."""
        state = self.state
        for round_ in range(len(state.kept)):
            state.tested = dict(state.kept)
            in_time = yield from self._compare(round_)
            if self._is_unreliable(state.tested):
                worst = max(state.kept, key=lambda knob: self.failing.share((knob, state.kept[knob])))
                self._drop(worst, "gave no value in some trials")
                continue
            found = self.confirmed()
            proven = found if in_time and found is not None and self._is_proven(found) else None
            harmed = self._harmed()
            if proven is not None and not harmed:
                state.confirmed = True
                state.step("confirm", "confirmation", state.tested, ratio=self.ratio(proven))
                return
            if proven is None:
                state.notes.append("the set was not confirmed in fresh trials: nothing is kept")
                if not in_time:
                    self._short("there was no time to confirm what was found")
                return
            worst = max(state.kept, key=lambda knob: self._harm(knob, harmed))
            self._drop(worst, f"makes {', '.join(harmed)} worse")

    def _drop(self, knob: str, reason: str) -> None:
        """Take a knob out of the set because of what the set does."""
        state = self.state
        state.notes.append(f"the set {reason}: {knob} is dropped")
        change = knob, state.kept[knob]
        state.kept = choice.without(state.kept, knob)
        state.step("revert", "confirmation", state.kept, change, reason=reason)

    def _is_unreliable(self, setting: Values) -> bool:
        """Whether the confirmation of a setting failed more than once, and not by a rare accident."""
        failed, succeeded = self.failing.confirming[False], self.failing.confirming[True]
        return bool(setting) and failed >= UNRELIABLE and failed > succeeded / 4

    def _compare(self, round_: int) -> Going:
        """Measure the set and the original in turn; say whether it ended before the time did."""
        order = [self.state.kept, {}]
        self.failing.confirming.clear()
        for block in itertools.count():
            if block % 2 == 0:
                order = [order[index] for index in self._rng.permutation(2)]
            request = TrialRequest("confirmation", round_, block, order[0], beside=order[1])
            pair = yield from self._ask_both(request)
            for trial in pair:
                if trial.setting:
                    self.failing.confirming[bool(self._objective(trial))] += 1
            if len(pair) < 2:
                return block >= FEWEST_ALONE
            if self._is_unreliable(self.state.kept):
                return True
            order = order[::-1]
            found = self.confirmed()
            enough = SUSPECTED if self._harmed(SUSPICIOUS) else FEWEST_ALONE
            if found is not None and block + 1 >= enough and self._is_known(found):
                return True
        raise AssertionError("the count has no end")

    # ---- single trials

    def _ask(self, request: TrialRequest) -> Asked:
        """Have a trial made; None where there is no time for it."""
        trial = yield request
        if trial is not None:
            self.clock.take(trial)
            self.made[trial.phase, trial.within is not None] += 1
            succeeded = self.evidence.take(trial)
            # Where a launch of two settings fails, switching may be to blame.
            if succeeded or trial.within is None:
                self.failing.take(trial.setting, succeeded)
        return trial

    def _fold(self, request: TrialRequest, fold: Fold) -> Going:
        """Have both trials of a pair made; False where there is no time."""
        settings = [dict(self.failing.working(part.items())) for part in fold]
        if all(map(self.is_live, {**settings[0], **settings[1]})):
            pair = yield from self._ask_both(replace(request, setting=settings[0], beside=settings[1]))
            if len(pair) < 2:
                return False
            if pair[0].within is None or all(self._objective(trial) for trial in pair):
                return True
            # Which value is to blame shows where each is alone.
        for setting in settings:
            if (yield from self._try(replace(request, setting=setting))) is None:
                return False
        return True

    def _ask_both(self, request: TrialRequest) -> Generator[TrialRequest, Trial | None, list[Trial]]:
        """Have two settings measured, in the same launches where that is possible; fewer trials without time."""
        pair = yield from self._pair(request)
        if len(pair) == 2 and pair[0].within is not None:
            yield from self._learn_switching(request, pair)
        return pair

    def _pair(self, request: TrialRequest) -> Generator[TrialRequest, Trial | None, list[Trial]]:
        within = all(map(self.is_live, {**request.setting, **(request.beside or {})}))
        first = yield from self._ask(request if within else replace(request, beside=None))
        if first is None:
            return []
        second = yield from self._ask(_other(request, first))
        return [first] if second is None else [first, second]

    def _learn_switching(self, request: TrialRequest, pair: Sequence[Trial]) -> Asking:
        """Where a launch in which knobs were switched gave nothing, find the one that ends the connections."""
        first, second = (trial.setting for trial in pair)
        knobs = {knob for knob, _ in first.items() ^ second.items()}
        if all(self._objective(trial) for trial in pair):
            self._switched |= knobs
            return
        suspects = sorted((knobs - self._switched) or knobs)
        while len(suspects) > 1 and request.phase != "confirmation":
            half = suspects[: len(suspects) // 2]
            values = {knob: value for knob, value in {**first, **second}.items() if knob in half}
            tried = yield from self._pair(replace(request, setting=values, beside={}))
            if len(tried) < 2:
                break
            suspects = suspects[len(half) :] if all(self._objective(trial) for trial in tried) else half
        self._severing.update(suspects)
        if suspects:
            self.state.notes.append(
                f"{', '.join(suspects)}: compared from launch to launch, as a launch in which "
                f"{'it was' if len(suspects) == 1 else 'they were'} switched gave no value: "
                f"{pair[0].error or 'unknown'}"
            )

    def _try(self, request: TrialRequest) -> Asked:
        """Have a trial made; where it fails, find out which value is to blame."""
        trial = yield from self._ask(request)
        if trial is None or self._objective(trial) or not trial.setting:
            return trial
        suspects = self.failing.suspects(trial.setting)
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            tried = yield from self._ask(
                TrialRequest(request.phase, request.round, request.block, dict(half))
            )
            if tried is None:
                return None
            suspects = suspects[len(half) :] if self._objective(tried) else half
        if suspects:
            alone = yield from self._ask(
                TrialRequest(request.phase, request.round, request.block, dict(suspects))
            )
            if alone is None:
                return None
            if not self._objective(alone):
                self._blame(suspects[0])
        elif (arm := self.failing.unreliable(trial.setting)) is not None:
            self._blame(arm)
        return trial

    def _blame(self, arm: Arm) -> None:
        self.failing.blame(arm)
        self.state.notes.append(f"{arm[0]}={arm[1]} is not tried any more: {self.failing.out[arm]}")

    def _objective(self, trial: Trial) -> list[float]:
        """Return the log cost of a trial; nothing where it has none."""
        if trial.status != "ok":
            return []
        cost = float(self.evidence.costs.of(trial)[0])
        return [cost] if math.isfinite(cost) else []

    # ---- what is known

    def working(self) -> list[Arm]:
        """Values that may be tried."""
        return self.failing.working(self.arms)

    def _is_dear(self, candidate: Candidate) -> bool:
        """Whether a change of a knob takes longer than a trial; within launches the nodes switch it themselves."""
        return self.clock.is_dear(candidate) and not self.is_live(candidate.knob)

    def levels(self) -> dict[str, list[str]]:
        """Values that are tried together with others."""
        return {
            c.knob: values
            for c in self.plan.candidates
            if not self._is_dear(c)
            and (values := [value for _, value in self.failing.working((c.knob, v) for v in c.values)])
        }

    def screened(self, figure: Sequence[int] = OBJECTIVE) -> dict[Arm, Contrast]:
        """Effect of every value that is tried together with others."""
        arms = [(knob, value) for knob, values in self.levels().items() for value in values]
        return self.evidence.screen(arms, figure)

    def _open(self, found: dict[Arm, Contrast]) -> bool:
        """Whether an effect may matter and is not proven, however often it is looked at; or nothing is known."""
        worth = -math.log1p(self.plan.margin)
        return not found or any(
            one.evidence(TYPICAL) < 1 / self.error and one.lower(FUTILE) < worth for one in found.values()
        )

    def _survivors(self) -> dict[str, list[str]]:
        """Return the knobs that seem to help, the plainest first, each with its best values."""
        found = {arm: one for arm, one in self.screened().items() if one.t < -power.SURVIVES}
        levels: dict[str, list[str]] = {}
        for knob, value in sorted(found, key=lambda arm: found[arm].t):
            if knob in levels or len(levels) < SURVIVORS:
                levels.setdefault(knob, []).append(value)
        return {knob: values[:SURVIVING_VALUES] for knob, values in levels.items()}

    def model(self, figure: Sequence[int] = OBJECTIVE) -> Model | None:
        """Return the effects of all values that were tried again, with those of the others where there is room."""
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

    def _seen(self, levels: dict[str, list[str]]) -> dict[Arm, Contrast]:
        """Effect of each value alone."""
        model = self.model()
        arms = self.failing.working((knob, value) for knob, values in levels.items() for value in values)
        return (
            {}
            if model is None
            else {arm: model.contrast(dict([arm]), {}) for arm in arms if arm in model.columns}
        )

    def _choose(self) -> None:
        """Keep what is proven by all trials so far."""
        model = self.model()
        if model is None:
            self.state.kept = {}
            return
        survivors = {
            knob: values
            for knob, all_values in self.again.items()
            if (
                values := [
                    v for v in all_values if (knob, v) in model.columns and (knob, v) not in self.failing.out
                ]
            )
        }
        guards = self._guards()
        self.state.kept = choice.best(
            model,
            survivors,
            self.error,
            self.plan.margin,
            lambda setting: not _worse(guards, setting, self.plan),
        )

    def _guards(self) -> dict[str, Model]:
        models = {
            metric.name: self.model((column,))
            for column, metric in enumerate(self.plan.metrics, start=1)
            if metric.guard
        }
        return {name: model for name, model in models.items() if model is not None}

    def _harmed(self, chance: float = choice.HARM) -> list[str]:
        """Guard metrics that the tested set makes worse, by the trials of the confirmation."""
        found = {
            metric.name: self.confirmed((column,))
            for column, metric in enumerate(self.plan.metrics, start=1)
            if metric.guard
        }
        return [name for name, one in found.items() if one is not None and is_harm(one, self.plan, chance)]

    def _harm(self, knob: str, harmed: Sequence[str]) -> float:
        """How much a kept knob adds to the guards that are harmed, in standard errors."""
        guards = {name: model for name, model in self._guards().items() if name in harmed}
        kept = self.state.kept
        return sum(model.contrast(kept, choice.without(kept, knob)).t for model in guards.values())

    def confirmed(self, figure: Sequence[int] = OBJECTIVE) -> Contrast | None:
        """Effect of the tested set by the trials of the confirmation; None where there are too few."""
        tested = self.state.tested
        arms = [arm for arm in tested.items() if self.evidence.count(arm)]
        model = self.evidence.model(arms, (), figure, confirming=tested)
        return None if model is None else model.confirmed(tested)

    def _is_proven(self, found: Contrast) -> bool:
        """Whether an effect that matters is proven: by the whole confirmation, or at any of the looks at it."""
        proven = found.p_value() <= power.UNCONFIRMED or found.evidence(TYPICAL) >= 2 / power.UNCONFIRMED
        return proven and found.value < -math.log1p(self.plan.margin)

    def _is_known(self, found: Contrast) -> bool:
        """Whether an effect is proven whenever it is looked at, and known well enough to be told."""
        low, high = found.interval(self.plan.confidence)
        wide = max(PRECISE * abs(found.value), self.plan.margin)
        return found.evidence(TYPICAL) >= 2 / power.UNCONFIRMED and high - low <= 2 * wide

    def _gains(self, knob: str) -> dict[float, float]:
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

    def _note_kept(self) -> None:
        """Note the way from the last noted setting to the one that is kept, the strongest first."""
        model, state = self.model(), self.state
        if model is None:
            return
        so_far = dict(state.path[-1].setting)
        for knob in [name for name in so_far if name not in state.kept]:
            change = knob, so_far.pop(knob)
            ratio = self.ratio(model.contrast(so_far, {}))
            state.step("drop", "refinement", so_far, change, ratio, "not proven any more")
        rest = {knob: value for knob, value in state.kept.items() if so_far.get(knob) != value}
        while rest:
            knob = min(rest, key=lambda name: model.effect({**so_far, name: rest[name]}))
            refined = knob in so_far
            so_far = {**so_far, knob: rest.pop(knob)}
            ratio = self.ratio(model.contrast(so_far, {}))
            if refined:
                state.step("refine", "refinement", so_far, (knob, so_far[knob]), ratio)
            else:
                state.step("keep", "forward", so_far, (knob, so_far[knob]), ratio)

    def _note_harm(self) -> None:
        """Say of values that help that they are not kept because they harm."""
        model, guards = self.model(), self._guards()
        for knob, values in self.again.items():
            for value in values:
                setting = {knob: value}
                if model is None or (knob, value) not in model.columns or knob in self.state.kept:
                    continue
                found = model.contrast(setting, {})
                harmed = _worse(guards, setting, self.plan)
                if harmed and found.value < 0 and found.p_value() / 2 <= self.error:
                    self.state.notes.append(f"{knob}={value} is not kept: it makes {', '.join(harmed)} worse")

    def ratio(self, found: Contrast) -> Estimate:
        """Return an effect as a ratio with its interval."""
        return power.ratio(found, self.plan.confidence, len(self.evidence.rows))

    def needed(self) -> int:
        """Trials that are probably still needed until nothing is open."""
        knobs = len(self.levels())
        noise = power.scatter(self._blocks)
        if not math.isfinite(noise):
            noise = self.plan.margin
        closing = (2 * NOTHING * noise / math.log1p(self.plan.margin)) ** 2
        later = 2 * LOOK + 4 * FEWEST_ALONE * len([c for c in self.plan.candidates if self._is_dear(c)])
        screening = max(2 * (knobs + 2), closing) if knobs else 0.0
        return max(round(screening) - self._made("screening"), 0) + max(later - self._made("forward"), 4)

    def _made(self, phase: Phase) -> int:
        return self.made[phase, False] + self.made[phase, True]

    def foresee(self, *, at_end: bool = False) -> None:
        """Say what this cluster can show: before the search by what is planned, at its end by what was done."""
        blocks = [block for block, clean in zip(self._blocks, self._clean, strict=True) if clean]
        blocks = blocks if len(blocks) >= 2 else self._blocks
        scale = power.scatter(blocks)
        if not math.isfinite(scale):
            return
        model = self.model() if at_end else None
        each_s = self.clock.trial_s + self.clock.cost_s(frozenset(self.levels())) / 2
        kinds = {within for within in (True, False) if self._group(within)} or {self.within}
        shares = {
            within: self._smallest(
                self.within_scatter() if within else scale,
                self._trials(within, (self.clock.within_s if within else each_s) * len(kinds), at_end=at_end),
                model,
                within=within,
            )
            for within in kinds
        }
        smallest, trials = shares[min(kinds)]
        control = power.control(blocks, smallest, trials)
        if control is not None and len(kinds) > 1:
            control = msgspec.structs.replace(control, smallest_within=shares[True][0])
        self.state.control = control

    def _trials(self, within: bool, each_s: float, *, at_end: bool) -> tuple[int, int, int]:
        """Trials of screening, second factorial and confirmation that what is to be found has."""
        trials = max(int(self.plan.budget_s / each_s), 8)
        planned = trials // 2, trials // 4, trials // 5
        if not at_end:
            return planned
        phases: tuple[Phase, ...] = "screening", "forward", "confirmation"
        first, again, last = (self.made[phase, within] for phase in phases)
        # It ends as soon as a plain effect is known; a small one would have had all its time.
        return first, again or planned[1], max(last, planned[2])

    def _smallest(
        self, scale: float, trials: tuple[int, int, int], model: Model | None, *, within: bool
    ) -> tuple[float, int]:
        """Return the smallest effect that is found, as a share, and the trials of each kind behind it."""
        if model is not None:
            found = model.within_scale if within else model.scale
            scale = found or scale
        most = max((len(values) for values in self.levels().values()), default=1)
        smallest = power.smallest_effect(
            max(round(scale, 5), LEAST_SCATTER),
            *(max(number // most, 2) for number in trials),
            len(self.arms),
            self.plan.false_discovery / 2,
        )
        return max(smallest, -math.expm1(-math.log1p(self.plan.margin))), sum(trials) // 2

    def _short(self, what: str) -> None:
        self.state.ended = "budget"
        self.state.notes.append(f"the time was used up: {what}")


def _other(request: TrialRequest, first: Trial) -> TrialRequest:
    """Return the request for the other trial of a pair, when the first one is there."""
    assert request.beside is not None, "a pair has two settings"
    if first.within is None:
        return replace(request, setting=request.beside, beside=None)
    return replace(request, setting=request.beside, beside=request.setting, made=True)


def _is_look(pairs: int) -> bool:
    """Whether it is time to look at what is known after so many pairs: first often, then seldom."""
    number = math.floor(math.log(pairs / LOOK, LATER)) if pairs > LOOK else 0
    return pairs == LOOK or (pairs > LOOK and pairs == math.ceil(LOOK * LATER**number))


def _worse(guards: dict[str, Model], setting: Values, plan: TunePlan) -> list[str]:
    if not setting:
        return []
    return [name for name, model in guards.items() if is_harm(model.contrast(setting, {}), plan)]


def is_harm(found: Contrast, plan: TunePlan, chance: float = choice.HARM) -> bool:
    """Whether a guard metric is worse, beyond what does not matter."""
    return found.value > math.log1p(plan.margin) and found.p_value() / 2 <= chance
