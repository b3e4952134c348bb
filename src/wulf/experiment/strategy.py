"""The course of a search, as a coroutine: it yields the next trial's request and is sent the trial.

Sent None instead, it learns that there is no time for that trial, and goes on with what must still be done:
the proof of what was found so far.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wulf.experiment import budget, power, refine
from wulf.experiment.costs import Costs, Floats
from wulf.experiment.power import Rules
from wulf.experiment.race import CLEAN_SHARE, Arm, Race
from wulf.experiment.state import State
from wulf.records import Candidate, Effect, Phase, Trial, TunePlan, Values

#: Blocks of the control in which nothing succeeded, after which the search gives up.
HOPELESS_BLOCKS = 3
#: Steps of refinement of one knob: each halves the distance.
REFINEMENTS = 3


@dataclass(frozen=True)
class TrialRequest:
    """The trial that is wanted next."""

    phase: Phase
    round: int
    block: int
    setting: Values


class OutOfTime(Exception):  # noqa: N818  (not an error: how the search ends when its time does)
    """The trial that was asked for does not fit into the time."""


class Unmeasurable(Exception):  # noqa: N818
    """The original settings cannot be measured."""


Asking = Generator[TrialRequest, Trial | None, None]


class Strategy:
    """Control, screening, forward selection, refinement, backward check, confirmation."""

    def __init__(self, plan: TunePlan) -> None:
        self.plan = plan
        self.costs = Costs(plan.metrics)
        self.state = State()
        self.race: Race | None = None
        self._candidates: list[Candidate] = list(plan.candidates)
        #: Knob and value that must not be tried again: fails, harms or is worse.
        self._out: set[tuple[str, str]] = set()
        self._round: dict[Phase, int] = {}

    @property
    def trial_s(self) -> float:
        """Length of a trial: the median of those made [s]."""
        durations = self.state.durations
        return float(np.median(durations)) if durations else self.plan.trial_s

    @property
    def candidates(self) -> list[Candidate]:
        """Candidates that fit into the time."""
        return self._candidates

    def run(self) -> Asking:
        """Go through all phases."""
        self.state.step("start", "screening", 0, reason="original settings")
        try:
            yield from self._search()
        except OutOfTime:
            self._short("the search for more was cut short")
        except Unmeasurable as error:
            self.state.ended = "failed"
            self.state.notes.append(str(error))
            return
        try:
            yield from self._backward()
        except OutOfTime:
            self._short("not every kept knob was left out once")
        try:
            yield from self._confirm()
        except OutOfTime:
            self._short("there was no time to confirm what was found: nothing is kept")
        self.race = None
        missing = [candidate.knob for candidate in self._left_out()]
        if missing:
            self._short(f"left out, the time is too short for them: {', '.join(missing)}")
        self.state.ended = self.state.ended or "complete"

    # ---- the phases

    def _search(self) -> Asking:
        yield from self._control()
        screened = self._candidates
        while screened:
            yield from self._select(screened)
            screened = self._late()
        yield from self._refine()

    def _select(self, screened: Sequence[Candidate]) -> Asking:
        """Select forward, beginning with all values of these candidates on top of what is kept."""
        kept = self.state.kept
        arms = [Arm(c.knob, value, {**kept, c.knob: value}) for c in screened for value in c.values]
        found: list[Effect] = []
        try:
            yield from self._measure(self._new_race("screening", kept, arms), found)
            again = True
            while (better := self._keep_best(found)) or again:
                # Where none is proven, those that seem to help get other blocks, once.
                again = better
                arms = self._rest(found) if better else self._undecided(found)
                found = []
                if not arms:
                    break
                yield from self._measure(self._new_race("forward", self.state.kept, arms), found)
        except OutOfTime:
            # What was proven by then counts: it was the clock that ended it, not the values.
            self._keep_best(found)
            raise

    def _late(self) -> list[Candidate]:
        """Take in the candidates that were left out, as far as it turns out that there is time for them."""
        late = budget.fitting(self._left_out(), self._rules().usual_blocks, self._left_s(), self.trial_s)
        self._candidates = [*self._candidates, *late]
        return late

    def _left_out(self) -> list[Candidate]:
        chosen = {candidate.knob for candidate in self._candidates}
        return [candidate for candidate in self.plan.candidates if candidate.knob not in chosen]

    def _control(self) -> Asking:
        blocks: list[Floats] = []
        wanted = budget.control_blocks(self.plan)
        trials: list[Trial] = []
        for block in range(wanted):
            for _ in range(2):
                trials.append((yield from self._ask(TrialRequest("control", 0, block, {}))))
            if block + 1 == HOPELESS_BLOCKS and not np.isfinite(_objectives(self.costs, trials)).any():
                raise Unmeasurable(f"the original settings gave no value in {len(trials)} trials")
        clean = [trial for trial in trials if not trial.contamination]
        used = clean if len(clean) >= len(trials) * CLEAN_SHARE else trials
        for block in range(wanted):
            logs = _objectives(self.costs, [trial for trial in used if trial.block == block])
            blocks.append(logs[np.isfinite(logs)])
        logs = np.concatenate(blocks)
        if logs.size < wanted:
            raise Unmeasurable(
                f"the original settings gave a value in {logs.size} of {len(trials)} trials only"
            )
        self._fit(logs)
        self.state.control = power.control(blocks, self._rules())
        if self.state.control is not None and self.state.control.drifting:
            self.state.notes.append("trials in a row depend on each other: blocks do not take all of it out")

    def _fit(self, logs: Floats) -> None:
        plan = self.plan
        noise = power.noise(logs, 1 + budget.arms(plan.candidates))
        self.state.rules, self._candidates = budget.fit(plan, noise, self._left_s(), self.trial_s)
        fewest = power.fewest_blocks(plan, budget.arms(self._candidates))
        if 2.0 ** (1 - fewest) * budget.arms(self._candidates) > plan.false_discovery:
            self.state.notes.append(f"{fewest} blocks at most are too few to prove one effect among so many")

    def _refine(self) -> Asking:
        """Try values between the kept one of each numeric knob and its neighbours."""
        for candidate in self._candidates:
            if candidate.numeric and candidate.knob in self.state.kept:
                yield from self._refine_knob(candidate)

    def _refine_knob(self, candidate: Candidate) -> Asking:
        knob, state = candidate.knob, self.state
        gains = self._gains(candidate)
        for _ in range(REFINEMENTS):
            best = refine.number(state.kept[knob])
            values = [] if best is None else refine.between(gains, best, self._rules().target)
            if best is None or not values:
                return
            arms = [
                Arm(knob, refine.text(value), {**state.kept, knob: refine.text(value)}) for value in values
            ]
            found: list[Effect] = []
            yield from self._measure(self._new_race("refinement", state.kept, arms), found)
            gains.update(
                {value: gains[best] + _gain(effect) for value, effect in zip(values, found, strict=True)}
            )
            winner = _best(found)
            # Where neither is better, the optimum may still be between one of them and the best.
            if winner is not None:
                state.kept = dict(winner.tried)
                state.measured("refine", knob, winner.tried[knob], winner, f"better than {refine.text(best)}")

    def _backward(self) -> Asking:
        """Leave each kept knob out; drop those that are not proven on top of the others, the weakest first."""
        state = self.state
        unproven = list(state.kept)
        again = True
        while len(state.kept) >= 2 and unproven:
            arms = [Arm(knob, state.kept[knob], _without(state.kept, knob)) for knob in unproven]
            race = self._new_race("backward", state.kept, arms, seeking=1)
            found: list[Effect] = []
            yield from self._measure(race, found)
            # A set that cannot be measured without a knob needs it.
            needed = {arm.knob for arm in race.arms if arm.fails}
            harm = {effect.knob: names for effect in found if (names := self._relieved(effect))}
            weak = [
                effect
                for effect in found
                if effect.knob in harm or (effect.verdict != "worse" and effect.knob not in needed)
            ]
            if not weak:
                return
            doubtful = [e.knob for e in weak if e.knob not in harm and self._seems(e, e.ratio.value)]
            if again and len(doubtful) == len(weak) and self._is_time_for(len(doubtful)):
                again, unproven = False, doubtful
                continue
            weakest = min(weak, key=lambda effect: (effect.knob not in harm, effect.ratio.value))
            state.kept = _without(state.kept, weakest.knob)
            reason = f"without it: {weakest.verdict}"
            if weakest.knob in harm:
                reason = f"makes {', '.join(harm[weakest.knob])} worse"
            state.measured("drop", weakest.knob, weakest.value, weakest, reason)
            unproven = [effect.knob for effect in weak if effect is not weakest]

    def _relieved(self, effect: Effect) -> list[str]:
        """Guards that are better without the knob that was left out."""
        guards = {metric.name for metric in self.plan.metrics if metric.guard}
        highs = {name: found.high for name, found in effect.metrics.items() if name in guards}
        return [name for name, high in highs.items() if high is not None and high < 1 - self.plan.margin]

    def _confirm(self) -> Asking:
        """Compare the whole set with the original settings; drop the weakest knob until it is proven."""
        state = self.state
        again = True
        while state.kept:
            race = self._new_race("confirmation", {}, [Arm("", "", state.kept)])
            found: list[Effect] = []
            try:
                yield from self._measure(race, found)
            except OutOfTime:
                if not self._is_proven(found[0]):
                    raise
            if self._is_proven(found[0]):
                state.confirm(found[0])
                return
            state.confirmation = found[0]
            if again and self._is_promising(found[0]):
                # Both attempts are one family: the second must be twice as sure.
                state.notes.append("the first confirmation left it open; it was repeated in fresh blocks")
                again = False
                continue
            again = True
            self._fall_back(found[0], race.round)

    def _is_promising(self, effect: Effect) -> bool:
        """Undecided, with time for another attempt."""
        undecided = effect.verdict == "no decision" and not effect.harmed and effect.ratio.value < 1
        return undecided and self._is_time_for(1)

    def _is_proven(self, effect: Effect) -> bool:
        return effect.verdict == "better" and not effect.harmed

    def _fall_back(self, effect: Effect, round_: int) -> None:
        state = self.state
        why = f"makes worse: {', '.join(effect.harmed)}" if effect.harmed else effect.verdict
        weakest = min(state.kept, key=lambda knob: (-self._harm(knob, effect.harmed), self._strength(knob)))
        what = f"{weakest} is dropped" if len(state.kept) > 1 else "nothing is kept"
        state.notes.append(f"the set was not confirmed in fresh blocks ({why}): {what}")
        value = state.kept[weakest]
        state.kept = _without(state.kept, weakest)
        state.step("revert", "confirmation", round_, weakest, value, reason=why)

    # ---- choosing

    def _keep_best(self, found: Sequence[Effect]) -> bool:
        """Keep the best of the settings that are proven to be better; say whether there was one."""
        winner = _best(found)
        for effect in found:
            if effect.harmed or effect.verdict == "worse" or not effect.blocks:
                self._out.add((effect.knob, effect.value))
            if effect.verdict == "better" and effect.harmed:
                names = ", ".join(effect.harmed)
                self.state.notes.append(f"{effect.knob}={effect.value} is not kept: it makes {names} worse")
        if winner is None:
            return False
        added = [knob for knob in winner.tried if knob not in winner.base]
        self.state.kept = dict(winner.tried)
        reason = "" if len(added) == 1 else f"together: {', '.join(added)}"
        # What they do together is known of the last one's step only.
        for knob in added[:-1]:
            self.state.step("keep", winner.phase, winner.round, knob, winner.tried[knob], reason=reason)
        self.state.measured("keep", added[-1], winner.tried[added[-1]], winner, reason)
        return True

    def _rest(self, found: Sequence[Effect]) -> list[Arm]:
        """Knobs that are not kept, each with its best value, on top of what is; and all proven ones at once."""
        kept = self.state.kept
        values = {
            candidate.knob: value
            for candidate in self._candidates
            if candidate.knob not in kept and (value := self._best_value(candidate)) is not None
        }
        arms = [Arm(knob, value, {**kept, knob: value}) for knob, value in values.items()]
        proven = {
            effect.knob
            for effect in found
            if effect.verdict == "better" and effect.knob in values and not effect.harmed
        }
        if len(proven) > 1:
            # Saves a round for each where effects add up; where they do not, a single one wins.
            arms.append(Arm("", "", {**kept, **{knob: values[knob] for knob in values if knob in proven}}))
        return arms

    def _undecided(self, found: Sequence[Effect]) -> list[Arm]:
        """List settings that seem worth finding but are not proven, where there is time for them."""
        promising = [
            effect for effect in found if not effect.harmed and self._seems(effect, 1 / effect.ratio.value)
        ]
        best = {effect.knob: effect for effect in sorted(promising, key=lambda e: -e.ratio.value)}
        return [
            Arm(effect.knob, effect.value, effect.tried)
            for effect in best.values()
            if self._is_time_for(len(best))
        ]

    def _seems(self, effect: Effect, ratio: float) -> bool:
        """Whether an undecided effect is at least half of what is worth finding."""
        measured = effect.verdict == "no decision" and effect.blocks >= self._rules().usual_blocks
        return measured and math.log(ratio) > self._rules().target / 2

    def _is_time_for(self, settings: int) -> bool:
        """Whether so many settings can be measured against a base, and the result be confirmed."""
        blocks = self._rules().usual_blocks
        return self._left_s() > (1 + settings + budget.CONFIRMATION_SETTINGS) * blocks * self.trial_s

    def _best_value(self, candidate: Candidate) -> str | None:
        """Value of a knob that did best in the screening, of those that may be tried."""
        known = {
            effect.value: effect.ratio.value
            for effect in self.state.effects
            if effect.phase == "screening" and effect.knob == candidate.knob and effect.blocks
        }
        allowed = [value for value in known if (candidate.knob, value) not in self._out]
        return min(allowed, key=lambda value: known[value]) if allowed else None

    def _gains(self, candidate: Candidate) -> dict[float, float]:
        """Value → gain in the screening, of a numeric knob; the original, where it is a number, gains nothing."""
        original = refine.number(candidate.original)
        gains = {} if original is None else {original: 0.0}
        for effect in self.state.effects:
            value = refine.number(effect.value)
            if (
                effect.phase == "screening"
                and effect.knob == candidate.knob
                and effect.blocks
                and value is not None
            ):
                gains[value] = _gain(effect)
        return gains

    def _harm(self, knob: str, guards: Sequence[str]) -> float:
        """How much worse a knob was last seen to make guards, as a logarithm; 0 without guards."""
        for effect in reversed(self.state.effects):
            if effect.knob == knob and guards:
                sign = -1 if effect.phase == "backward" else 1
                return sign * sum(
                    math.log(effect.metrics[name].value) for name in guards if name in effect.metrics
                )
        return 0.0

    def _strength(self, knob: str) -> float:
        """How much a knob was last seen to gain, as a logarithm."""
        for effect in reversed(self.state.effects):
            if effect.knob == knob:
                return math.log(effect.ratio.value) if effect.phase == "backward" else _gain(effect)
        return 0.0

    # ---- measuring

    def _ask(self, request: TrialRequest) -> Generator[TrialRequest, Trial | None, Trial]:
        trial = yield request
        if trial is None:
            raise OutOfTime
        self.state.durations.append(trial.duration_s)
        return trial

    def _measure(self, race: Race, found: list[Effect]) -> Asking:
        """Run a race; its effects are added to `found`, also when the time runs out."""
        self.race = race
        family = _family(race.phase)
        earlier = [effect.p_value for effect in self.state.effects if _family(effect.phase) == family]
        try:
            while race.active():
                for setting in race.next_order():
                    race.take(
                        (yield from self._ask(TrialRequest(race.phase, race.round, race.block, setting)))
                    )
                race.end_block(earlier)
        except OutOfTime:
            for arm in race.active():
                arm.left = "the time ran out"
            self._conclude(race, earlier, found)
            raise
        self._conclude(race, earlier, found)

    def _conclude(self, race: Race, earlier: Sequence[float], found: list[Effect]) -> None:
        found.extend(race.effects(earlier))
        self.state.effects.extend(found)
        if race.phase not in ("backward", "confirmation"):
            self._give_up([arm for arm in race.arms if arm.fails])

    def _give_up(self, arms: Sequence[Arm]) -> None:
        """Never try settings again that fail."""
        for arm in arms:
            self._out.add((arm.knob, arm.value))
            self.state.notes.append(
                f"{arm.knob}={arm.value}: {arm.left}" if arm.knob else f"a set {arm.left}"
            )

    def _new_race(self, phase: Phase, base: Values, arms: Iterable[Arm], seeking: int = -1) -> Race:
        round_ = self._round.get(phase, 0)
        self._round[phase] = round_ + 1
        tried = list(arms)
        blocks = budget.affordable_blocks(self._rules(), phase, len(tried), self._left_s(), self.trial_s)
        return Race(replace(self._rules(), blocks=blocks), self.costs, phase, round_, base, tried, seeking)

    def _left_s(self) -> float:
        """Time that the plan has left by the trials' own durations [s]: the same when the search is continued."""
        return self.plan.budget_s - sum(self.state.durations)

    def _rules(self) -> Rules:
        assert self.state.rules is not None, "the control comes first"
        return self.state.rules

    def _short(self, note: str) -> None:
        self.state.ended = "budget"
        self.state.notes.append(f"out of time: {note}")


def _family(phase: Phase) -> Phase | Literal["search"]:
    """Comparisons among which the false-discovery rate is controlled.

    What the search finds is one family. Backward check and confirmation test with fresh blocks what was found
    already: they are families of their own, or the many useless knobs would count a second time.
    """
    return phase if phase in ("backward", "confirmation") else "search"


def _objectives(costs: Costs, trials: Sequence[Trial]) -> Floats:
    return np.array([costs.of(trial)[0] for trial in trials if trial.status == "ok"])


def _gain(effect: Effect) -> float:
    return -math.log(effect.ratio.value)


def _best(found: Sequence[Effect]) -> Effect | None:
    """Best of the settings that are proven to be better and harm no guard."""
    better = [effect for effect in found if effect.verdict == "better" and not effect.harmed]
    return min(better, key=lambda effect: effect.ratio.value, default=None)


def _without(setting: Values, knob: str) -> Values:
    return {other: value for other, value in setting.items() if other != knob}
