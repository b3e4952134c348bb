"""Values between those of a numeric knob that were tried."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: A range over which the value grows so many times is halved geometrically.
DECADE = 8.0


def number(text: str) -> float | None:
    """Return the value as a number; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def midpoint(first: float, second: float, whole: bool, geometric: bool) -> float | None:
    """Value between two others; None where there is none that differs from both."""
    low, high = min(first, second), max(first, second)
    middle = math.sqrt(low * high) if geometric and low > 0 else (low + high) / 2
    middle = float(round(middle)) if whole else float(f"{middle:.4g}")
    return middle if low < middle < high else None


def between(gains: Mapping[float, float], best: float, worth: float) -> list[float]:
    """Values worth trying next, on either side of the best one.

    Parameters
    ----------
    gains
        Value → logarithm of what it gains.
    best
        The value that is kept.
    worth
        Smallest difference that can be shown. A side is left alone when the curve is too flat for it: over half
        an interval it gains at most half of what it changes over the whole one on the steeper side.

    Notes
    -----
    A golden-section search would reuse one value of each step; but every step is decided by fresh pairs within
    one block anyway, and knobs like whole numbers and powers of two, which midpoints give.
    """
    points = sorted(gains)
    at = points.index(best)
    neighbours = [points[i] for i in (at - 1, at + 1) if 0 <= i < len(points)]
    steepest = max((gains[best] - gains[other] for other in neighbours), default=0.0)
    if steepest / 2 < worth:
        return []
    whole = all(point.is_integer() for point in points)
    geometric = points[0] > 0 and points[-1] / points[0] >= DECADE
    middles = [midpoint(best, other, whole, geometric) for other in neighbours]
    return [middle for middle in middles if middle is not None]


def text(value: float) -> str:
    """Write a value as knobs have it."""
    return str(int(value)) if value.is_integer() else f"{value:.6g}"
