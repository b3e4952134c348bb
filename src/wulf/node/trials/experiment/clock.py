"""What trials and changes cost, as measured while the search runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy

from wulf.base.records import Candidate, Trial, TunePlan, Values

#: Measured changes that an assumed cost counts as much as.
PRIOR = 0.5
#: A change that takes so many times as long as a trial is made seldom.
DEAR = 1.25


class Clock:
    """Learns from the trials how long a trial takes, and a change of each knob."""

    def __init__(self, plan: TunePlan) -> None:
        self._assumed = {candidate.knob: candidate.toggle_s for candidate in plan.candidates}
        self._trial_s = plan.trial_s
        self._measuring: list[float] = []
        #: Of trials that share their launches with another.
        self._within: list[float] = []
        self._changes: list[tuple[frozenset[str], float]] = []
        self._before: Values = {}
        self._median_s: float | None = None
        self._learnt: tuple[float, Mapping[str, float]] | None = None

    def take(self, trial: Trial) -> None:
        """Learn from a trial."""
        knobs = changed(self._before, trial.setting)
        self._before = trial.setting if trial.status == "ok" else {}
        if trial.status != "ok":
            return
        if trial.within is not None:
            self._within.append(trial.duration_s)
            return
        self._measuring.append(trial.duration_s - trial.change_s)
        self._median_s = None
        if knobs:
            self._changes.append((knobs, trial.change_s))
            self._learnt = None

    @property
    def trial_s(self) -> float:
        """Measuring time of a trial: the median of those made [s]."""
        if not self._measuring:
            return self._trial_s
        if self._median_s is None:
            self._median_s = float(np.median(self._measuring))
        return self._median_s

    @property
    def within_s(self) -> float:
        """Time of two settings that are measured in turn within the same launches, each: median [s]."""
        return float(np.median(self._within)) if self._within else 2 * self.trial_s

    @property
    def pair_s(self) -> float:
        """Time of two trials of different settings, with the changes [s]."""
        return 2 * self.trial_s + self.cost_s(frozenset(self._assumed)) / max(len(self._assumed), 1) * 2

    def change_s(self, after: Values) -> float:
        """Time that changing from the last setting takes [s]."""
        return self.cost_s(changed(self._before, after))

    def cost_s(self, knobs: frozenset[str]) -> float:
        """Time that one change of these knobs takes [s]."""
        always, each = self._costs()
        return always + sum(each.get(knob, 0.0) for knob in knobs) if knobs else 0.0

    def is_dear(self, candidate: Candidate) -> bool:
        """Whether a change of this knob takes longer than a trial."""
        return self._costs()[1].get(candidate.knob, 0.0) > DEAR * self.trial_s

    def _costs(self) -> tuple[float, Mapping[str, float]]:
        """Return what every change costs, and what each knob adds; never below zero."""
        if self._learnt is None:
            knobs = list(self._assumed)
            rows = [[1.0, *(float(knob in change) for knob in knobs)] for change, _ in self._changes]
            seen = [seconds for _, seconds in self._changes]
            prior = [[0.0, *(PRIOR * float(knob == other) for other in knobs)] for knob in knobs]
            assumed = [PRIOR * self._assumed[knob] for knob in knobs]
            if not seen:
                return 0.0, self._assumed
            found, _ = scipy.optimize.nnls(np.array([*rows, *prior]), np.array([*seen, *assumed]))
            self._learnt = float(found[0]), dict(zip(knobs, found[1:].tolist(), strict=True))
        return self._learnt


def changed(before: Values, after: Values) -> frozenset[str]:
    """Knobs in which two settings differ."""
    return frozenset(knob for knob, _ in set(before.items()) ^ set(after.items()))
