"""Which knob makes trials fail, of several that are set at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import scipy

from wulf.base.records import Values
from wulf.base.text import count
from wulf.node.trials.experiment.evidence import Arm

#: p value of "it fails as often without it" at which a value is blamed.
BLAMED = 0.02
#: Failed trials from which one can be.
FEWEST = 3


class Failing:
    """Counts the trials of each value that gave a figure, and those that did not."""

    def __init__(self) -> None:
        self.succeeded: Counter[Arm] = Counter()
        self.failed: Counter[Arm] = Counter()
        self._trials = Counter[bool]()
        #: Trials of the set that is being confirmed: whether they gave a value.
        self.confirming = Counter[bool]()
        #: Values that are not tried any more, and why.
        self.out: dict[Arm, str] = {}

    def take(self, setting: Values, succeeded: bool) -> None:
        """Take a trial."""
        (self.succeeded if succeeded else self.failed).update(setting.items())
        self._trials[succeeded] += 1

    def suspects(self, setting: Values) -> list[Arm]:
        """Values of a setting that failed under which nothing was ever measured."""
        return [arm for arm in setting.items() if not self.succeeded[arm]]

    def blame(self, arm: Arm) -> None:
        """Try a value no more."""
        failed = self.failed[arm]
        self.out[arm] = f"no value in {failed} of {count(failed + self.succeeded[arm], 'trial')}"

    def unreliable(self, setting: Values) -> Arm | None:
        """Value of a setting with which trials fail more often than without; None where none is plain."""
        p_values = {arm: self._p_value(arm) for arm in setting.items() if self.failed[arm] >= FEWEST}
        worst = min(p_values, key=lambda arm: p_values[arm], default=None)
        return worst if worst is not None and p_values[worst] <= BLAMED else None

    def _p_value(self, arm: Arm) -> float:
        failed, succeeded = self.failed[arm], self.succeeded[arm]
        others = [self._trials[False] - failed, self._trials[True] - succeeded]
        return float(
            scipy.stats.fisher_exact(np.array([[failed, succeeded], others]), alternative="greater").pvalue
        )

    def share(self, arm: Arm) -> float:
        """Share of the trials of a value that failed."""
        trials = self.failed[arm] + self.succeeded[arm]
        return self.failed[arm] / trials if trials else 0.0

    def working(self, arms: Iterable[Arm]) -> list[Arm]:
        """Return those that may still be tried."""
        return [arm for arm in arms if arm not in self.out]
