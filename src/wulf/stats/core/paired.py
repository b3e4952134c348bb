"""How much the second value of each pair is shifted against the first, as a ratio with its interval."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval
from wulf.stats.core.shift import Shift

METHOD = "Hodges–Lehmann of paired logarithms, Wilcoxon signed-rank interval"


def paired_shift(differences: ArrayLike, confidence: float = 0.95) -> Shift:
    """Shift of paired values from the differences of their logarithms, second − first.

    The ratio is the exponential of the pseudo-median: the median of the n (n + 1) / 2 Walsh averages (Hodges and
    Lehmann 1963, Annals of Mathematical Statistics 34, 598–611). Its interval holds the ratios that Wilcoxon's
    signed-rank test does not reject (Tukey 1949; Lehmann 1975, "Nonparametrics", section 4.4). Both assume that
    a difference is as often above its centre as below, by as much: so it is when the order of a pair is random.

    Parameters
    ----------
    differences
        Shape (n,), n ≥ 1, finite.

    Returns
    -------
    Shift
        Bounds are None where n is too small for the confidence (n < 6 for 95 %). The p value is exact, also with
        ties; differences of zero are ranked and then left out (Pratt 1959, JASA 54, 655–667).

    Raises
    ------
    ValueError
        When there are no differences.
    """
    values = np.asarray(differences, dtype=np.float64)
    if not values.size:
        raise ValueError("the shift of nothing")
    walsh = _walsh(values)
    rank = critical_rank(values.size, confidence)
    low, high = (None, None)
    if rank is not None:
        low, high = float(np.exp(walsh[rank - 1])), float(np.exp(walsh[-rank]))
    value = float(np.exp(_middle(walsh)))
    return Shift(Interval(value, low, high, confidence, METHOD, values.size), _p_value(values))


def paired_verdict(
    found: Shift, comparisons: int, margin: float, significance: float = 0.05
) -> Literal["better", "worse", "no difference", "no decision"]:
    """Say what a shift of paired costs means, as one of so many comparisons (Bonferroni).

    Parameters
    ----------
    found
        Second ÷ first: below 1 is better.
    margin
        A change by this share does not matter: a shift whose whole interval is within is none.
    """
    low, high = found.ratio.low, found.ratio.high
    if low is None or high is None:
        return "no decision"
    if low >= 1 - margin and high <= 1 + margin:
        return "no difference"
    if found.p_value * comparisons > significance or low <= 1 <= high:
        return "no decision"
    return "better" if high < 1 else "worse"


def pseudo_median(differences: ArrayLike) -> float:
    """Median of the Walsh averages of at least one value."""
    return _middle(_walsh(np.asarray(differences, dtype=np.float64)))


@lru_cache(maxsize=1024)
def critical_rank(n: int, confidence: float) -> int | None:
    """Rank, counted from 1 at either end, of the Walsh averages that bound the interval; None when n is too small.

    The largest k with P(T < k) ≤ (1 − confidence) / 2 under the null hypothesis.
    """
    tail = np.cumsum(_distribution(tuple(range(1, n + 1))))
    rank = int(np.searchsorted(tail, (1 - confidence) / 2 * (1 + 1e-12), side="right"))
    return rank or None


@lru_cache(maxsize=1024)
def _indices(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(n)
    return first, second


def _walsh(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """All averages of two values, or of one with itself, ascending."""
    first, second = _indices(values.size)
    return np.sort((values[first] + values[second]) / 2)


def _middle(ordered: NDArray[np.float64]) -> float:
    """Median of sorted values."""
    half = ordered.size // 2
    return float((ordered[half] + ordered[-half - 1]) / 2)


def _p_value(values: NDArray[np.float64]) -> float:
    """Two-sided p value over all signs that the ranks could have."""
    # Doubled, so that the mean ranks of ties are whole numbers.
    ranks = np.rint(2 * scipy.stats.rankdata(np.abs(values))).astype(np.int64)
    other = values != 0
    distribution = _distribution(tuple(sorted(ranks[other].tolist())))
    positive, total = int(ranks[values > 0].sum()), int(ranks[other].sum())
    tail = float(distribution[: min(positive, total - positive) + 1].sum())
    return min(1.0, 2 * tail)


@lru_cache(maxsize=4096)
def _distribution(ranks: tuple[int, ...]) -> NDArray[np.float64]:
    """Probability of each sum of a random half of the ranks (each is in or out with probability ½)."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: chances.size - rank]
        chances = (chances + shifted) / 2
    return chances
