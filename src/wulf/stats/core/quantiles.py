"""Quantiles of values that come with counts, as histograms do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def weighted_quantiles(values: ArrayLike, counts: ArrayLike, probabilities: ArrayLike) -> NDArray[np.float64]:
    """Quantiles of a sample in which ``values[i]`` occurs ``counts[i]`` times.

    Parameters
    ----------
    values
        Ascending.
    counts
        Whole numbers, at least one above zero.
    probabilities
        Between 0 and 1.

    Returns
    -------
    array
        One quantile per probability: the inverse of the distribution function, averaged where it is flat
        (type 2 of Hyndman and Fan 1996), so that the median of two values is their mean.

    Raises
    ------
    ValueError
        When there are no values.
    """
    ordered = np.asarray(values, dtype=np.float64)
    cumulated = np.cumsum(np.asarray(counts, dtype=np.int64))
    if not cumulated.size or cumulated[-1] <= 0:
        raise ValueError("the quantile of nothing")
    total = int(cumulated[-1])
    # Which of the sorted values, counted from 1: the next above, and on a whole number two of them.
    position = np.asarray(probabilities, dtype=np.float64) * total
    near = np.round(position)
    position = np.where(np.abs(position - near) < 1e-9 * total, near, position)
    lower = np.clip(np.ceil(position), 1, total)
    upper = np.clip(np.floor(position) + 1, 1, total)
    first = ordered[np.searchsorted(cumulated, lower)]
    second = ordered[np.searchsorted(cumulated, upper)]
    return np.asarray((first + second) / 2, dtype=np.float64)


def weighted_quantile(values: ArrayLike, counts: ArrayLike, probability: float) -> float:
    """One quantile; see `weighted_quantiles`."""
    return float(weighted_quantiles(values, counts, [probability])[0])


def bounded_mean(values: ArrayLike, counts: ArrayLike, reach: float) -> float:
    """Mean of a sample of positive values in which none counts as more than `reach` times the median.

    Unlike the median it moves with every value below the bound, unlike the mean it is not carried away by a few. The
    idea is Winsor's (Tukey 1962, "The future of data analysis", sec. 4), with a bound that no outlier moves.

    Parameters
    ----------
    values
        Ascending.
    counts
        How often each value occurs.
    reach
        At least 1.

    Raises
    ------
    ValueError
        When there are no values.
    """
    bound = reach * weighted_quantile(values, counts, 0.5)
    bounded = np.minimum(np.asarray(values, dtype=np.float64), bound)
    return float(np.average(bounded, weights=np.asarray(counts, dtype=np.int64)))


def count_outside(values: ArrayLike, counts: ArrayLike, fence: float = 3.0) -> int:
    """How many values lie beyond Tukey's fences, the quartiles ± `fence` interquartile ranges.

    Source: Tukey (1977), "Exploratory Data Analysis": 1.5 for "outside", 3 for "far out" values. They are
    counted, never dropped.
    """
    low, high = fences(values, counts, fence)
    numbers = np.asarray(values, dtype=np.float64)
    return int(np.asarray(counts)[(numbers < low) | (numbers > high)].sum())


def fences(values: ArrayLike, counts: ArrayLike, fence: float = 3.0) -> tuple[float, float]:
    """Tukey's fences of a sample; see `count_outside`."""
    first, third = weighted_quantiles(values, counts, [0.25, 0.75])
    reach = fence * (third - first)
    return float(first - reach), float(third + reach)
