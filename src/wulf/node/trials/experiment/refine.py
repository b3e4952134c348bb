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
        Smallest difference that can be shown. A side is left alone where the curve, bent as at a maximum, cannot
        rise by so much: at the midpoint it is below the straight line through the best value and its other
        neighbour.

    Notes
    -----
    A golden-section search would reuse one value of each step; but every step is decided by fresh pairs within
    one block anyway, and knobs like whole numbers and powers of two, which midpoints give.
    """
    points = sorted(gains)
    at = points.index(best)
    whole = all(point.is_integer() for point in points)
    geometric = points[0] > 0 and points[-1] / points[0] >= DECADE
    sides = [points[i] if 0 <= i < len(points) else None for i in (at - 1, at + 1)]
    chosen = []
    for side, other in (sides, sides[::-1]):
        if side is None or _rise(gains, best, side, other, geometric) < worth:
            continue
        middle = midpoint(best, side, whole, geometric)
        if middle is not None:
            chosen.append(middle)
    return chosen


def _rise(
    gains: Mapping[float, float], best: float, side: float, other: float | None, geometric: bool
) -> float:
    """How far the curve can rise between the best value and its neighbour."""
    if other is None:
        return (gains[best] - gains[side]) / 2
    scale = math.log if geometric else float
    steps = abs(scale(side) - scale(best)) / abs(scale(best) - scale(other))
    return (gains[best] - gains[other]) * steps / 2


def text(value: float) -> str:
    """Write a value as knobs have it."""
    return str(int(value)) if value.is_integer() else f"{value:.6g}"
