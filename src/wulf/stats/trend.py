"""Drift: whether a series of values goes up or down in time, or each depends on the one before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau, norm, rankdata, theilslopes


@dataclass(frozen=True)
class Trend:
    """A monotonic trend over the whole series."""

    #: Change from the first to the last value along Theil–Sen's line, relative to the median.
    change: float
    #: Two-sided p value of the Mann–Kendall test.
    p_value: float


def trend(values: ArrayLike) -> Trend | None:
    """Trend of values in time order; None where there are fewer than 8, or all are equal.

    Sources: Mann (1945), Econometrica 13, 245–259; Sen (1968), JASA 63, 1379–1389.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.size < 8 or np.all(series == series[0]):
        return None
    index = np.arange(series.size, dtype=np.float64)
    middle = float(np.median(series))
    if middle == 0:
        return None
    slope = float(theilslopes(series, index).slope)
    return Trend(change=slope * (series.size - 1) / middle, p_value=float(kendalltau(index, series).pvalue))


def dependence(values: ArrayLike) -> float | None:
    """One-sided p value of "each value is independent of the one before" against "it resembles it".

    The rank version of von Neumann's ratio: Bartels (1982), "The rank version of von Neumann's ratio test for
    randomness", JASA 77, 40–46, with his normal approximation. None where there are fewer than 6 values, or all
    are equal.
    """
    series = np.asarray(values, dtype=np.float64)
    n = series.size
    if n < 6 or np.all(series == series[0]):
        return None
    ranks = rankdata(series)
    ratio = float(np.sum(np.diff(ranks) ** 2) / np.sum((ranks - ranks.mean()) ** 2))
    spread = 2 * np.sqrt((n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2))
    return float(norm.cdf((ratio - 2) / spread))
