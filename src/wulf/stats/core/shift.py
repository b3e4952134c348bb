"""How much one sample of times is shifted against another, as a ratio with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval

METHOD = "Hodges–Lehmann on logarithms, Mann–Whitney interval"


@dataclass(frozen=True)
class Shift:
    """Ratio of the second sample to the first, and how unlikely it is when nothing differs."""

    ratio: Interval
    #: Two-sided p value of the test that the interval belongs to.
    p_value: float


def shift(base: ArrayLike, candidate: ArrayLike, confidence: float = 0.95) -> Shift:
    """Shift of two independent samples of positive values.

    The ratio is the exponential of the median of all differences of logarithms (Hodges and Lehmann 1963, Annals
    of Mathematical Statistics 34, 598–611); its interval holds the ratios that the Mann–Whitney test does not
    reject (Lehmann 1975, "Nonparametrics", section 2.6).

    Parameters
    ----------
    base, candidate
        Shapes (m,) and (n,), all above zero.

    Raises
    ------
    ValueError
        A sample is empty or has a value that is not above zero.
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (base, candidate))
    if not first.size or not second.size or min(np.min(first), np.min(second)) <= 0:
        raise ValueError("a ratio needs two samples of positive values")
    differences = np.sort((np.log(second)[:, None] - np.log(first)[None, :]).ravel())
    value = float(np.exp(np.median(differences)))
    rank = critical_rank(first.size, second.size, confidence)
    low, high = (None, None)
    if rank is not None:
        low, high = float(np.exp(differences[rank - 1])), float(np.exp(differences[-rank]))
    interval = Interval(value, low, high, confidence, METHOD, min(first.size, second.size))
    return Shift(interval, float(scipy.stats.mannwhitneyu(first, second).pvalue))


@lru_cache(maxsize=4096)
def critical_rank(m: int, n: int, confidence: float) -> int | None:
    """Rank, counted from 1 at either end, of the differences that bound the interval; None when m, n are too small.

    The largest k with P(U < k) ≤ (1 − confidence) / 2 under the null hypothesis.
    """
    tail = np.cumsum(_distribution(m, n))
    rank = int(np.searchsorted(tail, (1 - confidence) / 2 * (1 + 1e-12), side="right"))
    return rank or None


def _distribution(m: int, n: int) -> NDArray[np.float64]:
    """Distribution of Mann and Whitney's U, by its recurrence; normal where that would take long."""
    size = m * n
    if size > 10_000:
        u = np.arange(size + 1)
        spread = np.sqrt(m * n * (m + n + 1) / 12)
        density = np.exp(-0.5 * ((u - size / 2) / spread) ** 2)
        return np.asarray(density / density.sum(), dtype=np.float64)
    # The generating function is the product over i of (1 − q^(n+i)) / (1 − q^i).
    ways = np.zeros(size + 1)
    ways[0] = 1.0
    for i in range(1, m + 1):
        if n + i <= size:
            ways[n + i :] -= ways[: size + 1 - (n + i)].copy()
        for start in range(i):
            ways[start::i] = np.cumsum(ways[start::i])
        ways /= ways.sum() if i == m else max(float(np.max(abs(ways))), 1.0)
    return np.asarray(ways / ways.sum(), dtype=np.float64)
