"""Straight pieces of a curve, and what its ends say: latency, bandwidth, half-performance length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wulf.base.records import CellEstimate, Estimate, Segment
from wulf.stats.core import segments
from wulf.stats.core.regression import Line
from wulf.stats.core.segments import Piece
from wulf.stats.model.causes import likely_cause
from wulf.stats.model.curve_data import Curve, Floats
from wulf.stats.model.hockney import (
    CONFIDENCE,
    NotIdentifiable,
    determined,
    estimate,
    require_bandwidth_seen,
    require_latency_seen,
)

#: No measured curve is straight to better than this: an error floor, so that pieces follow steps, not waves.
MODEL_ERROR = 0.01
METHOD = "weighted least squares"


def divide(curve: Curve, cells: Sequence[CellEstimate]) -> list[Piece]:
    """Divide a curve into straight pieces; the cells' intervals say how far a point may lie off.

    Raises
    ------
    NotIdentifiable
        When there are no intervals: noise would be taken for steps.
    """
    half = {cell.cell.size_bytes: cell.time.half_width_ratio for cell in cells}
    known = [half[int(size)] for size in curve.sizes]
    relative = [width / 2 for width in known if width is not None]
    if len(relative) < len(known):
        raise NotIdentifiable("too few launches to tell steps from noise")
    return segments.segments(curve.sizes, curve.times, curve.times * np.hypot(relative, MODEL_ERROR))


def describe(
    curve: Curve, pieces: Sequence[Piece], op: str, eager_limits: Mapping[str, int]
) -> list[Segment]:
    """Return the pieces as records, each with the likely cause of the break that ends it.

    An intercept or a slope that the data do not determine is None.
    """
    result = []
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        lines = _launch_lines(curve, piece)
        low = int(curve.sizes[piece.last])
        high = int(curve.sizes[following.first]) if following else low
        result.append(
            Segment(
                first_size_bytes=int(curve.sizes[piece.first]),
                last_size_bytes=low,
                intercept=_known([line.intercept for line in lines], piece.intercept, "s"),
                slope=_known([line.slope for line in lines], piece.slope, "s/B"),
                breakpoint_bytes=high if following else None,
                breakpoint_interval=(low, high) if following else None,
                cause=likely_cause(op, low, high, eager_limits) if following else None,
            )
        )
    return result


def _known(values: Sequence[float], value: float, unit: str) -> Estimate | None:
    try:
        return determined(estimate(np.array(values), value, unit, METHOD), "it")
    except NotIdentifiable:
        return None


def zero_byte_latency(curve: Curve, pieces: Sequence[Piece]) -> Estimate:
    """Time of an empty message: where the first piece meets the axis.

    Raises
    ------
    NotIdentifiable
        When the data do not determine it, or the smallest message is too large for it to be seen.
    """
    own = np.array([line.intercept for line in _launch_lines(curve, pieces[0])])
    found = determined(estimate(own, pieces[0].intercept, "s", METHOD), "the first segment's intercept")
    require_latency_seen(curve, found.value)
    return found


def asymptotic_bandwidth(curve: Curve, pieces: Sequence[Piece]) -> Estimate:
    """Inverse slope of the last piece.

    Raises
    ------
    NotIdentifiable
        When the data do not determine the slope, or the largest message is too small for the bandwidth to be seen.
    """
    own = np.array([line.slope for line in _launch_lines(curve, pieces[-1])])
    slope = determined(estimate(own, pieces[-1].slope, "s/B", METHOD), "the last segment's slope")
    require_bandwidth_seen(curve, 1 / slope.value)
    return Estimate(
        value=1 / slope.value,
        low=None if slope.high is None else 1 / slope.high,
        high=None if slope.low is None else 1 / slope.low,
        confidence=CONFIDENCE,
        unit="B/s",
        n=slope.n,
        method=f"1 / slope of the last segment: {slope.method}",
    )


def n_half(curve: Curve, pieces: Sequence[Piece]) -> Estimate:
    """Size at which half the asymptotic bandwidth is reached, on the curve itself (Hockney 1994).

    With an asymptotic bandwidth of 1/b that is where T(m) = 2 b m; between measured sizes the time is
    interpolated.

    Raises
    ------
    NotIdentifiable
        When that lies outside the measured sizes, or is not known well enough.
    """
    value = _crossing(curve.sizes, curve.times, pieces[-1].slope)
    if not np.isfinite(value):
        raise NotIdentifiable("half the asymptotic bandwidth is not reached within the measured sizes")
    slopes = [line.slope for line in _launch_lines(curve, pieces[-1])]
    crossings = [
        _crossing(curve.sizes, times, slope) for times, slope in zip(curve.launches, slopes, strict=True)
    ]
    found = estimate(
        np.array([size for size in crossings if np.isfinite(size)]),
        value,
        "B",
        "interpolated crossing of the",
    )
    return determined(found, "n½")


def _crossing(sizes: Floats, times: Floats, slope: float) -> float:
    """First size at which the time falls to twice what the bandwidth alone would take; NaN when it does not."""
    excess = times - 2 * slope * sizes
    falls = np.flatnonzero((excess[:-1] > 0) & (excess[1:] <= 0))
    if slope <= 0 or not falls.size:
        return float("nan")
    before = int(falls[0])
    share = excess[before] / (excess[before] - excess[before + 1])
    return float(sizes[before] + share * (sizes[before + 1] - sizes[before]))


def _launch_lines(curve: Curve, piece: Piece) -> list[Line]:
    """Return the line of every launch through the sizes of a piece; noise is a fraction of the time."""
    inside = slice(piece.first, piece.last + 1)
    x, weights = curve.sizes[inside], 1 / curve.times[inside] ** 2
    mean_x = np.average(x, weights=weights)
    spread = float(np.sum(weights * (x - mean_x) ** 2))
    lines = []
    for times in curve.launches[:, inside]:
        mean_y = float(np.average(times, weights=weights))
        slope = float(np.sum(weights * (x - mean_x) * (times - mean_y))) / spread
        lines.append(Line(mean_y - slope * float(mean_x), slope))
    return lines
