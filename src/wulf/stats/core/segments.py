"""Piecewise straight lines: how many, and where one ends and the next begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: A segment has at least so many points, so that a single bump never makes one.
MIN_POINTS = 3
MAX_SEGMENTS = 8
#: Parameters of a further segment: intercept, slope, and where it begins.
PARAMETERS = 3


@dataclass(frozen=True)
class Piece:
    """One segment: points ``first`` to ``last`` (indices, inclusive) and its line."""

    first: int
    last: int
    intercept: float
    slope: float


def segments(x: ArrayLike, y: ArrayLike, error: ArrayLike) -> list[Piece]:
    """Divide a curve into straight pieces.

    Parameters
    ----------
    x, y
        Shape (n,), x ascending and different.
    error
        Shape (n,): standard error of each y, above zero.

    Returns
    -------
    list of Piece
        One piece when there are fewer than 6 points. The number of pieces has the smallest Bayesian information
        criterion, given the errors; where the pieces join is found exactly, by dynamic programming.

    References
    ----------
    Bai and Perron (2003), Journal of Applied Econometrics 18, 1–22; Schwarz (1978), Annals of Statistics 6, 461.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weights = _weights(xs, ys, np.asarray(error, dtype=np.float64))
    costs, lines = _lines(xs, ys, weights)
    n = len(xs)
    best = costs[0].copy()
    starts: list[NDArray[np.intp]] = []
    scores = [float(best[n - 1])]
    for number in range(1, min(MAX_SEGMENTS, n // MIN_POINTS)):
        joined = best[:-1, None] + costs[1:, :]
        start = np.argmin(joined, axis=0)
        best = joined[start, np.arange(n)]
        starts.append(start + 1)
        scores.append(float(best[n - 1]) + PARAMETERS * number * float(np.log(n)))
    pieces = []
    last = n - 1
    for level in range(int(np.argmin(scores)), -1, -1):
        first = int(starts[level - 1][last]) if level else 0
        pieces.append(Piece(first, last, float(lines[0][first, last]), float(lines[1][first, last])))
        last = first - 1
    return pieces[::-1]


def _weights(x: Floats, y: Floats, error: Floats) -> Floats:
    """Inverse variances; a single point that both neighbours' line misses by far gets next to none."""
    weights = 1.0 / error**2
    for i in range(1, len(x) - 1):
        share = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        line = y[i - 1] + share * (y[i + 1] - y[i - 1])
        miss = abs(y[i] - line) / error[i]
        calm = abs(y[i + 1] - y[i - 1]) < abs(y[i] - line)
        if calm and miss > 6:
            weights[i] *= 36 / miss**2
    return np.asarray(weights, dtype=np.float64)


def _lines(x: Floats, y: Floats, w: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    """Weighted squared error of the best line through points i to j, for all i, j; infinite where too few."""
    sums = [np.concatenate([[0.0], np.cumsum(w * v)]) for v in (np.ones_like(x), x, y, x * x, x * y, y * y)]
    s, sx, sy, sxx, sxy, syy = (total[None, 1:] - total[:-1, None] for total in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        vxx, vxy, vyy = sxx - sx**2 / s, sxy - sx * sy / s, syy - sy**2 / s
        slope = vxy / vxx
        intercept = (sy - slope * sx) / s
        cost = np.maximum(vyy - slope * vxy, 0.0)
    i, j = np.indices(cost.shape)
    cost[(j - i < MIN_POINTS - 1) | ~np.isfinite(cost)] = np.inf
    if len(x) < MIN_POINTS:
        cost[0, len(x) - 1] = 0.0
    return np.asarray(cost, dtype=np.float64), (intercept, slope)
