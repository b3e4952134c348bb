"""Amdahl's law and the universal scalability law, fitted to run times that were taken in blocks.

Amdahl (1967), AFIPS 30, 483: T(p) = T(1) · (s + (1 − s) / p). Gunther (1993; "Guerrilla Capacity Planning", 2007):
T(p) = T(1) · (1 + σ (p − 1) + κ p (p − 1)) / p, of which Amdahl's is the case κ = 0 with σ = s.

A block is one launch of every number of ranks; what is slow for a while is slow for a block, so each has a factor of
its own, and T(1) falls out. Intervals are those of the profile: all values of a parameter that an F test does not
reject, the others being as good as they can be for it. They hold near bounds, and are wide where data say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval

Floats = NDArray[np.float64]
METHOD = "least squares of logarithms in blocks, profile interval (F test)"
#: A share whose interval is as wide as this is not identified.
WIDE = 0.5
#: Largest contention and coherency that are looked for.
_MOST_SIGMA, _MOST_KAPPA = 1.0, 1.0
#: Values of a parameter on which its bounds are looked for before they are made precise.
_GRID = 60


@dataclass(frozen=True)
class Law:
    """A fitted law; a parameter without an interval is not identified."""

    #: Serial share (Amdahl's s), or contention σ.
    sigma: Interval
    #: Coherency κ; None of Amdahl's law.
    kappa: Interval | None
    #: Scale of what is left of a logarithm.
    spread: float
    #: Residual sum of squares and its degrees of freedom.
    squares: float
    degrees: int
    _relative: Callable[[float, float], tuple[float, float, float]]

    def relative(self, now: float, then: float) -> tuple[float, float, float]:
        """Time with `then` ÷ time with `now`: value and interval."""
        return self._relative(now, then)


def curve(p: ArrayLike, sigma: float, kappa: float = 0.0) -> Floats:
    """T(p) ÷ T(1)."""
    counts = np.asarray(p, dtype=np.float64)
    return np.asarray((1 + sigma * (counts - 1) + kappa * counts * (counts - 1)) / counts, dtype=np.float64)


@dataclass(frozen=True)
class _Data:
    """Logarithms of run times, block by block; a launch that failed is missing."""

    counts: Floats
    logs: Floats
    blocks: NDArray[np.intp]

    def squares(self, sigma: float, kappa: float) -> float:
        """Sum of squares of what a curve leaves, each block with a factor of its own."""
        left = self.logs - np.log(np.maximum(curve(self.counts, sigma, kappa), 1e-12))
        sums = np.bincount(self.blocks, weights=left)
        sizes = np.bincount(self.blocks)
        left = left - (sums / np.maximum(sizes, 1))[self.blocks]
        return float(left @ left)

    def degrees(self, parameters: int) -> int:
        return len(self.logs) - len(np.unique(self.blocks)) - parameters


def _data(counts: ArrayLike, blocks: ArrayLike, times: ArrayLike) -> _Data:
    """Return what is usable: blocks of one launch say nothing of a ratio."""
    p, t = np.asarray(counts, dtype=np.float64), np.asarray(times, dtype=np.float64)
    b = np.unique(np.asarray(blocks), return_inverse=True)[1]
    used = (np.bincount(b)[b] > 1) & (t > 0)
    return _Data(p[used], np.log(t[used]), np.unique(b[used], return_inverse=True)[1])


def amdahl(counts: ArrayLike, blocks: ArrayLike, times: ArrayLike, confidence: float = 0.95) -> Law | None:
    """Fit Amdahl's law.

    Parameters
    ----------
    counts, blocks, times
        Of every launch: ranks, the block it is of, run time. Shape (n,).

    Returns
    -------
    Law or None
        None where there are not two numbers of ranks in common blocks, or no degree of freedom.
    """
    data = _data(counts, blocks, times)
    if len(np.unique(data.counts)) < 2 or data.degrees(1) < 1:
        return None
    profile = partial(data.squares, kappa=0.0)
    best = _minimum(profile, 0.0, 1.0)
    limit = _limit(profile(best), data.degrees(1), confidence)
    low, high = _bounds(profile, best, limit, 0.0, 1.0)
    sigma = _interval(best, low, high, confidence, len(data.logs))

    def relative(now: float, then: float) -> tuple[float, float, float]:
        value, *ends = (float(curve(then, s)[()] / curve(now, s)[()]) for s in (best, low, high))
        return value, min(ends), max(ends)

    return Law(sigma, None, _spread(profile(best), data.degrees(1)), profile(best), data.degrees(1), relative)


def universal(counts: ArrayLike, blocks: ArrayLike, times: ArrayLike, confidence: float = 0.95) -> Law | None:
    """Fit the universal scalability law; parameters as of `amdahl`.

    Returns
    -------
    Law or None
        None where there are not three numbers of ranks in common blocks, or no degree of freedom.
    """
    data = _data(counts, blocks, times)
    if len(np.unique(data.counts)) < 3 or data.degrees(2) < 1:
        return None
    best = _both(data)
    squares = data.squares(*best)
    limit = _limit(squares, data.degrees(2), confidence)

    def of_sigma(sigma: float) -> float:
        return data.squares(sigma, _minimum(partial(data.squares, sigma), 0.0, _MOST_KAPPA))

    def of_kappa(kappa: float) -> float:
        return data.squares(_minimum(lambda s: data.squares(s, kappa), 0.0, _MOST_SIGMA), kappa)

    n = len(data.logs)
    sigma = _interval(best[0], *_bounds(of_sigma, best[0], limit, 0.0, _MOST_SIGMA), confidence, n)
    top = _MOST_KAPPA
    kappa = _interval(best[1], *_bounds(of_kappa, best[1], limit, 0.0, top), confidence, n)
    relative = partial(_relative, data, best, limit)
    return Law(sigma, kappa, _spread(squares, data.degrees(2)), squares, data.degrees(2), relative)


def _relative(
    data: _Data, best: tuple[float, float], limit: float, now: float, then: float
) -> tuple[float, float, float]:
    """Return time with `then` ÷ time with `now`, its bounds over all laws that are not rejected."""

    def ratio(sigma: float, kappa: float) -> float:
        return float(curve(then, sigma, kappa)[()] / curve(now, sigma, kappa)[()])

    value = ratio(*best)
    found = [value]
    for sigma in np.linspace(0.0, _MOST_SIGMA, 4 * _GRID + 1):
        profile = partial(data.squares, float(sigma))
        kappa = _minimum(profile, 0.0, _MOST_KAPPA)
        if profile(kappa) <= limit:
            found += [ratio(float(sigma), end) for end in _bounds(profile, kappa, limit, 0.0, _MOST_KAPPA)]
    return value, min(found), max(found)


def _both(data: _Data) -> tuple[float, float]:
    """Return contention and coherency of the best curve."""
    starts = [(0.0, 0.0), (0.05, 1e-3), (0.3, 1e-2)]
    limits = [(0.0, _MOST_SIGMA), (0.0, _MOST_KAPPA)]

    def squares(x: Floats) -> float:
        return data.squares(float(x[0]), float(x[1]))

    # Coherency is small where it matters: a method that needs no gradient finds it.
    options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 2000}
    tries: list[Any] = [
        scipy.optimize.minimize(
            squares, np.array(start), bounds=limits, method="Nelder-Mead", options=options
        )  # type: ignore[call-overload]
        for start in starts
    ]
    found = min(tries, key=lambda one: float(one.fun)).x
    return float(found[0]), float(found[1])


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is least, on a scale on which small values are as far apart as large ones."""
    grid = np.concatenate([[low], np.geomspace(1e-6, 1.0, _GRID) * (high - low) + low])
    values = [function(float(at)) for at in grid]
    place = int(np.argmin(values))
    if place == 0 and values[0] <= values[1]:
        ends = low, float(grid[1])
    else:
        ends = float(grid[max(place - 1, 0)]), float(grid[min(place + 1, len(grid) - 1)])
    found = scipy.optimize.minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 1e-9})
    return float(found.x) if found.fun < values[place] else float(grid[place])


def _limit(squares: float, degrees: int, confidence: float) -> float:
    """Return the sum of squares up to which a value of one parameter is not rejected."""
    return max(squares, 1e-20) * (1 + float(scipy.stats.f.ppf(confidence, 1, degrees)) / degrees)


def _bounds(
    profile: Callable[[float], float], best: float, limit: float, low: float, high: float
) -> tuple[float, float]:
    """Return the least and the largest value that are not rejected."""

    def edge(end: float) -> float:
        if profile(end) <= limit:
            return end
        return float(scipy.optimize.brentq(lambda at: profile(at) - limit, best, end, xtol=1e-9))

    return edge(low), edge(high)


def _spread(squares: float, degrees: int) -> float:
    return math.sqrt(squares / degrees)


def _interval(value: float, low: float, high: float, confidence: float, n: int) -> Interval:
    return Interval(value, low, high, confidence, METHOD, n)


def identified(interval: Interval) -> bool:
    """Whether data say anything of a share: its interval is not as wide as all that it can be."""
    return interval.low is not None and interval.high is not None and interval.high - interval.low < WIDE
