"""Straight lines through time against size: weighted Theil–Sen and ordinary least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """y = intercept + slope · x, as fitted to one set of points."""

    intercept: float
    slope: float

    def at(self, x: ArrayLike) -> Floats:
        """Fitted values at `x`."""
        return np.asarray(self.intercept + self.slope * np.asarray(x, dtype=float), dtype=float)


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares with the classic intervals (independent, equally noisy, normal errors)."""

    intercept: Interval
    slope: Interval
    r_squared: float
    #: Residual standard error, √(SSE / (n − 2)), in the unit of y.
    residual_spread: float

    @property
    def line(self) -> Line:
        """The fitted line."""
        return Line(self.intercept.value, self.slope.value)


def weighted_median(values: ArrayLike, weights: ArrayLike) -> float:
    """Lower and upper weighted median, averaged.

    Parameters
    ----------
    values, weights
        Shape (n,), n ≥ 1; weights are positive.
    """
    v, w = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    order = np.argsort(v)
    v, total = v[order], np.cumsum(w[order])
    half = total[-1] / 2
    low = int(np.searchsorted(total, half * (1 - 1e-12)))
    high = int(np.searchsorted(total, half * (1 + 1e-12)))
    return float((v[low] + v[min(high, len(v) - 1)]) / 2)


def theil_sen(x: ArrayLike, y: ArrayLike, scale: ArrayLike | None = None) -> Line:
    """Robust line: weighted median of the pairwise slopes, weighted median of the remainders.

    A pair's weight is the inverse of the standard deviation of its slope, |xᵢ − xⱼ| / √(sᵢ² + sⱼ²).
    This is what a geometric ladder of sizes needs: unweighted, most pairs lie among the small sizes, whose
    slopes are noise.

    Parameters
    ----------
    x, y
        Shape (n,), at least two different x.
    scale
        Shape (n,): relative size of the error of each y; all alike by default.  Times whose noise is
        a fraction of themselves take ``scale=y``.

    Raises
    ------
    ValueError
        When x has fewer than two different values.

    References
    ----------
    Sen (1968), JASA 63:1379; weights: Jaeckel (1972), Ann. Math. Stat. 43:1449, Sievers (1978), JASA 73:628.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    s = np.ones_like(y) if scale is None else np.asarray(scale, dtype=float)
    i, j = np.triu_indices(len(x), 1)
    apart = x[i] != x[j]
    if not apart.any():
        raise ValueError("a line needs at least two different x")
    i, j = i[apart], j[apart]
    dx = x[j] - x[i]
    slope = weighted_median((y[j] - y[i]) / dx, np.abs(dx) / np.hypot(s[i], s[j]))
    return Line(weighted_median(y - slope * x, 1 / s), slope)


def least_squares(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> LeastSquares:
    """Ordinary least squares; intervals from Student's t with n − 2 degrees of freedom, None when n < 3.

    Parameters
    ----------
    x, y
        Shape (n,), at least two different x.

    Raises
    ------
    ValueError
        When x has fewer than two different values.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    n = len(x)
    dx = x - x.mean()
    sxx = float(dx @ dx)
    if sxx == 0:
        raise ValueError("a line needs at least two different x")
    slope = float(dx @ (y - y.mean())) / sxx
    intercept = float(y.mean() - slope * x.mean())
    sse = float(np.sum((y - intercept - slope * x) ** 2))
    spread = (sse / (n - 2)) ** 0.5 if n > 2 else 0.0
    errors = (spread * (1 / n + x.mean() ** 2 / sxx) ** 0.5, spread / sxx**0.5)
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 2)) if n > 2 else None
    return LeastSquares(
        _classic(intercept, errors[0], t, confidence, n),
        _classic(slope, errors[1], t, confidence, n),
        r_squared(y, intercept + slope * x),
        spread,
    )


def _classic(value: float, error: float, t: float | None, confidence: float, n: int) -> Interval:
    method = "least squares, Student's t"
    if t is None:
        return Interval(value, None, None, confidence, method, n)
    return Interval(value, float(value - t * error), float(value + t * error), confidence, method, n)


def r_squared(y: ArrayLike, fitted: ArrayLike) -> float:
    """Coefficient of determination, 1 − SSE / SST; 0 when all y are equal, negative for a bad fit."""
    y = np.asarray(y, dtype=float)
    total = float(np.sum((y - y.mean()) ** 2))
    return 1 - float(np.sum((y - np.asarray(fitted)) ** 2)) / total if total > 0 else 0.0


def prediction_half_width(x: ArrayLike, at: ArrayLike, spread: float, confidence: float = 0.95) -> Floats:
    """Half-width of the classic prediction interval of one more observation at each of `at`."""
    x, at = np.asarray(x, dtype=float), np.asarray(at, dtype=float)
    n, dx = len(x), x - x.mean()
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 2))
    return np.asarray(t * spread * np.sqrt(1 + 1 / n + (at - x.mean()) ** 2 / float(dx @ dx)))


def residual_quantiles(relative: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds that one more residual stays within, from n exchangeable residuals (split-conformal ranks).

    The ranks are those of n + 1 values; with few residuals the bounds are the extremes and hold less than
    they should (n < 2 / (1 − confidence) − 1).

    References
    ----------
    Vovk, Gammerman, Shafer (2005), Algorithmic Learning in a Random World, chapter 2.
    """
    r = np.sort(np.asarray(relative, dtype=float))
    tail = (1 - confidence) / 2 * (len(r) + 1)
    low = max(int(np.floor(tail)), 1)
    high = min(int(np.ceil(len(r) + 1 - tail)), len(r))
    return float(r[low - 1]), float(r[high - 1])
