"""How launches of a calibration differ: of several operations together, as each was launched a few times only.  Pure.

A variance of four launches is off by a factor of three either way. Operations whose time the CPU takes differ for the
same reasons (where processes are put, what else there is), so each tells of the others: as much as so many further
launches of it would, the more the less their variances differ (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, article 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from wulf.base.records import CellEstimate
from wulf.stats.prediction.errors import few, logs_of

#: Of fewer operations it is not told how their variances differ.
_FEWEST = 3
#: Between so many further launches and so many their number is sought.
_SOUGHT = (1e-3, 1e6)


@dataclass(frozen=True)
class Spreads:
    """What the variances of launches of several operations have in common."""

    #: Of the logarithm of a launch's time, as so many degrees of freedom tell it.
    variance: float = 0.0
    freedom: float = 0.0

    def of_launch(self, cell: CellEstimate) -> float:
        """Return the relative standard deviation of one launch, wider by what so few do not tell; NaN of but one."""
        logs = logs_of(cell)
        if len(logs) < 2:
            return math.nan
        own, freedom = float(np.var(logs, ddof=1)), self.freedom + len(logs) - 1
        variance = (self.freedom * self.variance + (len(logs) - 1) * own) / freedom
        return math.sqrt(variance) * few(freedom)


def spreads(operations: Sequence[Sequence[CellEstimate]]) -> Spreads:
    """Return what variances of operations have in common; nothing where too few were launched twice.

    Parameters
    ----------
    operations
        Cells of each. All cells of one count as once: they share their launches.
    """
    told = [
        (math.log(variance), min(len(logs_of(one)) for one in cells) - 1)
        for cells in operations
        if cells and (variance := _variance(cells)) > 0
    ]
    if len(told) < _FEWEST:
        return Spreads()
    half = np.array([freedom / 2 for _, freedom in told])
    logs = np.array([variance for variance, _ in told]) - scipy.special.digamma(half) + np.log(half)
    # By what is left of how they differ, when chance is taken off.
    beyond = float(np.var(logs, ddof=1) - np.mean(scipy.special.polygamma(1, half)))
    least, most = _SOUGHT
    if beyond >= scipy.special.polygamma(1, least):
        return Spreads()
    common = most
    if beyond > scipy.special.polygamma(1, most):
        common = float(
            scipy.optimize.brentq(lambda number: scipy.special.polygamma(1, number) - beyond, least, most)
        )
    variance = math.exp(float(np.mean(logs) + scipy.special.digamma(common)) - math.log(common))
    # All of them together do not tell more than they were launched.
    return Spreads(variance, min(2 * common, float(2 * half.sum())))


def _variance(cells: Sequence[CellEstimate]) -> float:
    """Return the mean variance of what was launched twice or more, of all cells; 0 where one was not."""
    every = [logs_of(one) for one in cells]
    return float(np.mean([np.var(logs, ddof=1) for logs in every])) if min(map(len, every)) > 1 else 0.0
