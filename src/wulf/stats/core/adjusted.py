"""The median of values at a stated value of what they depend on."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from wulf.stats.core import intervals
from wulf.stats.core.covariates import Fit
from wulf.stats.core.trend import inflation

METHOD = "order statistics of values adjusted by regression (Huber)"


def median(
    values: ArrayLike, distances: ArrayLike, slopes: Fit, confidence: float = 0.95, *, tested: bool = False
) -> intervals.Interval:
    """Median that values would have if all covariates were where they are wanted.

    Every value is moved along the slopes; the bounds are order statistics of what that gives, so nothing is assumed
    about the distribution. What the slopes are uncertain by is added in quadrature, as far as the middle of the values
    is away from what is wanted, and the bounds are widened by the freedom that the slopes have taken.

    Parameters
    ----------
    values
        Shape (n,), in time order.
    distances
        Shape (n, q): covariates less their wanted values.
    slopes
        Of a regression whose last q coefficients belong to the covariates, fitted to these values, or to them among
        others.
    confidence
        Of the interval; bounds are None where n is too small for it.
    tested
        Widen the interval where neighbours still resemble each other (`wulf.stats.core.trend.inflation`).
    """
    y, away = np.asarray(values, dtype=np.float64), np.asarray(distances, dtype=np.float64)
    n, q = away.shape
    slope, covariance = slopes.coefficients[-q:], slopes.covariance[-q:, -q:]
    moved = y - away @ slope
    found = intervals.median(moved, confidence, float(inflation(moved)) if tested else 1.0)
    if found.low is None or found.high is None:
        return intervals.Interval(found.value, None, None, confidence, METHOD, n)
    # Of the freedom that the regression has used up for its slopes, the part that these values have paid.
    taken = q * (n - 1) / (slopes.freedom + q)
    loss = math.sqrt((n - 1) / max(n - 1 - taken, 1.0))
    middle = np.median(away, axis=0)
    reach = scipy.stats.t.ppf((1 + confidence) / 2, slopes.freedom) * math.sqrt(
        max(float(middle @ covariance @ middle), 0.0)
    )
    low, high = (
        math.hypot(loss * bound, reach) for bound in (found.value - found.low, found.high - found.value)
    )
    return intervals.Interval(found.value, found.value - low, found.value + high, confidence, METHOD, n)
