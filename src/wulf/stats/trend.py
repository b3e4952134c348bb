"""Drift: whether a series of values goes up or down in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau, theilslopes


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
