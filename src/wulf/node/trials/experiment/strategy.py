"""The course of a search, as a coroutine: it yields the next trial's request and is sent the trial.

Sent None instead, it learns that there is no time for that trial, and goes on with what comes after.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from wulf.base.records import Phase, TunePlan, Values
from wulf.base.units import format_share
from wulf.node.trials.experiment import choice, design, power, refine
from wulf.node.trials.experiment.control_trials import ControlTrials, Unmeasurable
from wulf.node.trials.experiment.evidence import Arm
from wulf.node.trials.experiment.results import Known
from wulf.node.trials.experiment.state import State
from wulf.node.trials.experiment.trial_requests import Asker, Asking, Going, TrialRequest

#: Share of the budget that the first of two groups of knobs leaves to the screening of the other.
SHARED = 0.25
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
#: Why a knob is dropped whose gain not all trials show.
DENIED = "gains nothing by one knob where every trial counts in full, or the reference not at all"
#: Steps of refinement of one knob (each halves the distance), and trials of each value in one.
REFINEMENTS, REFINING = 3, 4
#: Trials of each value by itself where none seems to help among others, those that are tried together then, and the
#: number of the first of these rounds.
PASSES, TOGETHER, SINGLY = 2, 3, 1000
#: Standard errors by which one of them helps plainly.
PLAINLY_ALONE = 3.0
#: Share of the budget that they may take of what is else left to the phases after them.
LAST = 0.1
#: Standard errors within the margin with which a value that does nothing is no longer looked for.
NOTHING = 3.0


class Strategy:
    """Control, screening, the best ones again, single knobs, refinement, confirmation."""

    def __init__(self, plan: TunePlan) -> None:
        self.plan = plan
        self.state = State()
        self.asker = Asker(plan, self.state.notes)
        self.known = Known(plan, self.asker, self.state)
        self.control = ControlTrials(plan, self.known)
        self._rng = np.random.default_rng(plan.seed)

    def run(self) -> Asking:
        """Go through all phases."""
        state = self.state
        state.step("start", "screening", {}, reason="original settings")
        try:
            in_time = yield from self.control.measure()
        except Unmeasurable as error:
            state.ended = "failed"
            state.notes.append(str(error))
            return
        if not in_time:
            self._short("there was no time to measure the original settings often enough")
        yield from self._search()
        self._note_harm()
        yield from self._confirm()
        state.ended = state.ended or "complete"

    def _search(self) -> Asking:
        """Screen all, look at the best ones again, and try alone what is dear to change; while there is time."""
        for round_ in range(ROUNDS):
            for within in (True, False):
                yield from self._screen(round_, within)
            for within in (True, False):
                yield from self._forward(round_, within)
            if round_ == 0:
                yield from self._alone()
            self.state.kept = self.known.best()
            if round_ == 0 and not self.state.kept:
                yield from self._singly()
                self.state.kept = self.known.best()
            if not self.known.is_open(self.known.screened()):
                break
        self._note_kept()
        yield from self._refine()

    def _screen(self, round_: int, within: bool) -> Asking:
        """Try knobs at once, half of them in each trial, until nothing is open or the time for it is over."""
        spare = SHARED if within and self.known.group(False) else 0.0
        pairs = begun = 0
        while levels := self.known.group(within):
            for fold in design.screening(levels, self._rng):
                request = TrialRequest("screening", round_, pairs, {}, spare=spare)
                if not (yield from self.asker.fold(request, fold)):
                    if round_ == 0 and pairs < len(levels):
                        self._short("the values could not all be told apart")
                    return
                pairs += 1
                if _is_look(pairs) and self._settle():
                    begun = pairs
                if (
                    2 * (pairs - begun) > len(levels) + 2
                    and _is_look(pairs)
                    and not self.known.is_open(
                        {arm: one for arm, one in self.known.screened().items() if arm[0] in levels}
                    )
                ):
                    return
                if levels.keys() != self.known.group(within).keys():
                    break

    def _settle(self) -> bool:
        """Where what was set before matters, say so, begin anew, and let every change have a trial to settle."""
        if self.asker.settling:
            return False
        carried = self.asker.evidence.carried(self.known.working())
        if not carried:
            return False
        names = ", ".join(f"{knob}={value}" for knob, value in carried)
        self.state.notes.append(
            f"the setting of the previous trial matters ({names}): the first trial after a change is not counted"
        )
        self.asker.settling = True
        self.asker.evidence.forget()
        return True

    def _forward(self, round_: int, within: bool) -> Asking:
        """Try those that seem to help again, in all combinations."""
        levels = {
            knob: values
            for knob, values in self.known.survivors().items()
            if self.asker.is_live(knob) == within
        }
        for knob, values in levels.items():
            self.known.again[knob] = list(dict.fromkeys([*self.known.again.get(knob, []), *values]))
        if not levels or (len(levels) == 1 and not self.known.is_open(self.known.seen(levels))):
            return
        for pairs, fold in enumerate(design.factorial(levels, self._rng)):
            if not (yield from self.asker.fold(TrialRequest("forward", round_, pairs, {}), fold)):
                return
            if _is_look(pairs + 1) and not self.known.is_open(self.known.seen(levels)):
                return

    def _alone(self) -> Asking:
        """Compare knobs whose change is dear by themselves, in turn, in blocks: without, with, with, without."""
        self.state.kept = self.known.best()
        dear = [c for c in self.plan.candidates if self.known.is_dear(c)]
        arms = self.asker.failing.working((c.knob, value) for c in dear for value in c.values)
        for knob, value in arms:
            self.known.again.setdefault(knob, []).append(value)
        for block in itertools.count():
            if block >= FEWEST_ALONE:
                found = self.known.seen(self.known.again)
                arms = [arm for arm in arms if arm not in found or self.known.is_open({arm: found[arm]})]
            arms = self.asker.failing.working(arms)
            if not arms:
                return
            for number, (knob, value) in enumerate(arms):
                base = choice.without(self.state.kept, knob)
                tried = {**base, knob: value}
                inner, outer = (tried, base) if block % 2 == 0 else (base, tried)
                for setting in (outer, inner, inner, outer):
                    request = TrialRequest("forward", ROUNDS + number, block, setting)
                    if (yield from self.asker.attempt(request)) is None:
                        return
                    if (knob, value) in self.asker.failing.out:
                        break

    def _singly(self) -> Asking:
        """Try each value by itself, as none seems to help among others: two may help alone, and not together."""
        arms = [arm for arm in self.known.working() if not self.known.is_dear(self.known.candidates[arm[0]])]
        gains: dict[Arm, list[float]] = {arm: [] for arm in arms}
        helping: list[Arm] = []
        for block in range(PASSES):
            if not (yield from self._each(arms, block, gains)):
                return
            helping = self._helping(gains, PLAINLY_ALONE if block + 1 < PASSES else power.SURVIVES)
            if helping:
                break
        levels: dict[str, list[str]] = {}
        for knob, value in helping[:TOGETHER]:
            levels.setdefault(knob, []).append(value)
            self.known.again[knob] = list(dict.fromkeys([*self.known.again.get(knob, []), value]))
        for pairs, fold in enumerate(design.factorial(levels, self._rng) if levels else ()):
            request = TrialRequest("forward", SINGLY + len(arms), pairs, {}, spare=-LAST)
            if not (yield from self.asker.fold(request, fold)):
                return
            if pairs >= 2 ** len(levels) and _is_look(pairs + 1) and self.known.best():
                return

    def _each(self, arms: Sequence[Arm], block: int, gains: Mapping[Arm, list[float]]) -> Going:
        """Measure the original setting and every value by itself in turn; say whether there was time for it."""
        for number, arm in enumerate(arms):
            pair: list[float] = []
            for setting in ({}, dict([arm])):
                request = TrialRequest("forward", SINGLY + number, block, setting)
                trial = yield from self.asker.attempt(request)
                if trial is None:
                    return False
                pair += self.asker.objective(trial)
            if len(pair) == 2:
                gains[arm].append(pair[1] - pair[0])
        return True

    def _helping(self, gains: Mapping[Arm, Sequence[float]], least: float) -> list[Arm]:
        """Return the arms that seem to help by themselves, by so many standard errors, the best first."""
        errors = {
            arm: self.control.scatter() * math.sqrt(2 / len(some)) for arm, some in gains.items() if some
        }
        found = {arm: float(np.mean(gains[arm])) for arm in errors}
        return sorted((arm for arm in found if found[arm] < -least * errors[arm]), key=found.__getitem__)

    def _refine(self) -> Asking:
        """Try values between the kept one of each numeric knob and its neighbours."""
        for number, knob in enumerate(list(self.state.kept)):
            if self.known.candidates[knob].numeric:
                yield from self._refine_knob(knob, number * REFINEMENTS)

    def _refine_knob(self, knob: str, round_: int) -> Asking:
        for step in range(REFINEMENTS):
            kept = self.state.kept
            gains = self.known.gains(knob)
            best = refine.number(kept.get(knob, ""))
            between = [] if best is None else refine.between(gains, best, math.log1p(self.plan.margin))
            values = [refine.text(value) for value in between]
            if not values:
                return
            self.known.again[knob] = [*self.known.again[knob], *values]
            settings = [kept, *({**kept, knob: value} for value in values)]
            for block in range(REFINING):
                for index in self._rng.permutation(len(settings)):
                    request = TrialRequest("refinement", round_ + step, block, settings[index])
                    if (yield from self.asker.attempt(request)) is None:
                        self.state.kept = self.known.best()
                        self._note_kept()
                        return
            self.state.kept = self.known.best()
            self._note_kept()

    def _confirm(self) -> Asking:
        """Compare the whole set with the original settings in fresh trials; drop what harms, and try again."""
        state = self.state
        for round_ in range(len(state.kept)):
            state.tested = dict(state.kept)
            in_time = yield from self._compare(round_)
            if self._is_unreliable(state.tested):
                worst = max(state.kept, key=lambda knob: self.asker.failing.share((knob, state.kept[knob])))
                self._drop(worst, "gave no value in some trials")
                continue
            found = self.known.confirmed()
            proven = found if in_time and found is not None and self.known.is_proven(found) else None
            unguarded = self.known.unguarded()
            # There is no time to know better, and harm is likely.
            harmed = self.known.harmed(SUSPICIOUS if unguarded else choice.HARM)
            if proven is not None and (denied := self.known.denied()):
                self._drop(denied, DENIED)
                continue
            if proven is not None and not harmed:
                state.confirmed = True
                state.step("confirm", "confirmation", state.tested, ratio=self.known.ratio(proven))
                self._note_unguarded(unguarded)
                return
            if proven is None:
                state.notes.append("the set was not confirmed in fresh trials: nothing is kept")
                if not in_time:
                    self._short("there was no time to confirm what was found")
                return
            worst = max(state.kept, key=lambda knob: self.known.harm(knob, harmed))
            self._drop(worst, f"makes {', '.join(harmed)} worse")

    def _note_unguarded(self, unguarded: Mapping[str, float]) -> None:
        """Say which guards are not known to be as good as before."""
        if unguarded:
            most = ", ".join(f"{name} up to {format_share(share)}" for name, share in unguarded.items())
            self.state.notes.append(
                f"what is kept may make these worse: {most} (95 %); a larger --budget tells more"
            )

    def _drop(self, knob: str, reason: str) -> None:
        """Take a knob out of the set because of what the set does."""
        state = self.state
        state.notes.append(f"the set {reason}: {knob} is dropped")
        change = knob, state.kept[knob]
        state.kept = choice.without(state.kept, knob)
        state.step("revert", "confirmation", state.kept, change, reason=reason)

    def _is_unreliable(self, setting: Values) -> bool:
        """Whether the confirmation of a setting failed more than once, and not by a rare accident."""
        failed, succeeded = self.asker.failing.confirming[False], self.asker.failing.confirming[True]
        return bool(setting) and failed >= UNRELIABLE and failed > succeeded / 4

    def _compare(self, round_: int) -> Going:
        """Measure the set and the original in turn; say whether it ended before the time did."""
        order = [self.state.kept, {}]
        self.asker.failing.confirming.clear()
        for block in itertools.count():
            if block % 2 == 0:
                order = [order[index] for index in self._rng.permutation(2)]
            request = TrialRequest("confirmation", round_, block, order[0], beside=order[1])
            pair = yield from self.asker.ask_both(request)
            for trial in pair:
                if trial.setting:
                    self.asker.failing.confirming[bool(self.asker.objective(trial))] += 1
            if len(pair) < 2:
                return block >= FEWEST_ALONE
            if self._is_unreliable(self.state.kept):
                return True
            order = order[::-1]
            found = self.known.confirmed()
            enough = SUSPECTED if self.known.harmed(SUSPICIOUS) else FEWEST_ALONE
            if (
                found is not None
                and block + 1 >= enough
                and self.known.is_known(found)
                and self.known.is_clear()
                and not self.known.unguarded()
            ):
                return True
        raise AssertionError("the count has no end")

    def _note_kept(self) -> None:
        """Note the way from the last noted setting to the one that is kept, the strongest first."""
        model, state = self.known.model(), self.state
        if model is None:
            return
        so_far = dict(state.path[-1].setting)
        for knob in [name for name in so_far if name not in state.kept]:
            change = knob, so_far.pop(knob)
            ratio = self.known.ratio(model.contrast(so_far, {}))
            state.step("drop", "refinement", so_far, change, ratio, "no longer proven")
        rest = {knob: value for knob, value in state.kept.items() if so_far.get(knob) != value}
        while rest:
            knob = min(rest, key=lambda name: model.effect({**so_far, name: rest[name]}))
            refined = knob in so_far
            so_far = {**so_far, knob: rest.pop(knob)}
            ratio = self.known.ratio(model.contrast(so_far, {}))
            if refined:
                state.step("refine", "refinement", so_far, (knob, so_far[knob]), ratio)
            else:
                state.step("keep", "forward", so_far, (knob, so_far[knob]), ratio)

    def _note_harm(self) -> None:
        """Say of values that help that they are not kept because they harm."""
        model = self.known.model()
        for knob, values in self.known.again.items():
            for value in values:
                setting = {knob: value}
                if model is None or (knob, value) not in model.columns or knob in self.state.kept:
                    continue
                found = model.contrast(setting, {})
                harmed = self.known.worsened(setting)
                if harmed and found.value < 0 and found.p_value() / 2 <= self.known.error:
                    self.state.notes.append(f"{knob}={value} is not kept: it makes {', '.join(harmed)} worse")

    def _short(self, what: str) -> None:
        self.state.ended = "budget"
        self.state.notes.append(f"the time was used up: {what}")

    def needed(self) -> int:
        """Trials that are probably still needed until nothing is open."""
        knobs = len(self.known.levels())
        noise = self.control.scatter()
        if not math.isfinite(noise):
            noise = self.plan.margin
        closing = (2 * NOTHING * noise / math.log1p(self.plan.margin)) ** 2
        later = 2 * LOOK + 4 * FEWEST_ALONE * len([c for c in self.plan.candidates if self.known.is_dear(c)])
        screening = max(2 * (knobs + 2), closing) if knobs else 0.0
        return max(round(screening) - self._made("screening"), 0) + max(later - self._made("forward"), 4)

    def _made(self, phase: Phase) -> int:
        return self.asker.made[phase, False] + self.asker.made[phase, True]


def _is_look(pairs: int) -> bool:
    """Whether it is time to look at what is known after so many pairs: first often, then seldom."""
    number = math.floor(math.log(pairs / LOOK, LATER)) if pairs > LOOK else 0
    return pairs == LOOK or (pairs > LOOK and pairs == math.ceil(LOOK * LATER**number))
