"""How launches of a program differ, from the run times of several traces of it.  Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

#: Fewer do not say how launches differ, …
FEWEST = 3
#: … and fewer not whether they resemble each other.
TESTED = 6
#: Standard errors of the resemblance that are added to it: it is as likely to be more as to be less.
_CAUTION = 0.5
#: Largest resemblance of neighbours that is reckoned with.
_MOST = 0.9
#: Standard deviation of a median ÷ that of a mean, of normal values.
_MEDIAN = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class Launches:
    """Run times of a program on the network as it is, one for each trace, in time order [s]."""

    times: Sequence[float]

    @property
    def median_s(self) -> float:
        """Run time of a usual launch [s]."""
        return float(np.median(self.times))

    @property
    def is_told(self) -> bool:
        """Whether there are enough to say how launches differ."""
        return len(self.times) >= FEWEST

    @property
    def spread(self) -> float:
        """Relative standard deviation of a launch; NaN where it is not told."""
        return float(np.std(np.log(self.times), ddof=1)) if self.is_told else math.nan

    def usual(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return factors by which the median may be another one, of standard normal numbers; 1 if not told."""
        if not self.is_told:
            return np.ones_like(numbers)
        return self._factors(numbers, _MEDIAN * math.sqrt(self.inflation / len(self.times)))

    @property
    def inflation(self) -> float:
        """How much more their median varies than that of as many independent launches, as far as these few tell.

        Of an autoregression, whose coefficient a few values show too small by (1 + 4 r) / n (Kendall 1954, Biometrika
        41, 403–404), and whose spread they show too small, too.
        """
        logs = np.log(self.times)
        apart, n = logs - logs.mean(), len(logs)
        square = float(np.sum(apart**2))
        if n < TESTED or not square:
            return 1.0
        found = float(np.sum(apart[1:] * apart[:-1])) / square
        resemblance = min(found + (1 + 4 * found) / n + _CAUTION / math.sqrt(n), _MOST)
        if resemblance <= 0:
            return 1.0
        inflated = (1 + resemblance) / (1 - resemblance)
        # What neighbours have in common is not seen in how they differ.
        return inflated / max(1 - inflated / n, 1 / n)

    def single(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return factors by which one launch more may differ from the median of these."""
        return self._factors(numbers, math.sqrt(1 + _MEDIAN**2 / len(self.times)))

    def _factors(self, numbers: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        # The spread is known from these few launches only: Student's t.
        deviates = scipy.stats.t.ppf(scipy.stats.norm.cdf(numbers), len(self.times) - 1)
        factors: NDArray[np.float64] = np.exp(self.spread * scale * deviates)
        return factors
