"""The models of one operation between two nodes.  Pure.

The launch is the unit of replication here, too: every launch measured all sizes, so each one gives a line of its
own, and the interval of a parameter is made of the order statistics of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wulf.model.causes import likely_cause
from wulf.records import CellEstimate, CurveModel, Estimate, LineFit, Segment
from wulf.stats import intervals, regression
from wulf.stats.segments import Piece, segments

Floats = NDArray[np.float64]

#: A line needs as many sizes for its fit to mean anything.
MIN_SIZES = 3
#: No measured curve is straight to better than this: an error floor, so that segments follow steps, not waves.
MODEL_ERROR = 0.01


@dataclass(frozen=True)
class _Curve:
    """Sizes [B], times [s], standard errors [s], and the times of every launch that measured all sizes."""

    sizes: Floats
    times: Floats
    errors: Floats
    #: Shape (launches, sizes).
    launches: Floats
    confidence: float


def curve(cells: Sequence[CellEstimate]) -> CurveModel:
    """Model the cells of one operation, pair and setting.

    Parameters
    ----------
    cells
        Ascending in size, at least one.

    Returns
    -------
    CurveModel
        What cannot be identified is None, and a note says why.
    """
    head = cells[0].cell
    data = _collect(cells)
    notes: list[str] = []
    robust = least = None
    pieces: list[Piece] = []
    if len(data.sizes) < MIN_SIZES:
        notes.append(f"{len(data.sizes)} sizes are too few for a line")
    else:
        robust, least = _theil_sen(data), _least_squares(data)
        pieces = segments(data.sizes, data.times, data.errors)
    return CurveModel(
        op=head.op,
        pair=head.pair,
        setting=head.setting,
        robust=robust,
        least_squares=least,
        segments=_segments(data, pieces),
        zero_byte_latency=_zero_byte_latency(cells, data, pieces, notes),
        asymptotic_bandwidth=_asymptotic_bandwidth(data, pieces, notes),
        n_half_bytes=_n_half(data, pieces, notes),
        notes=notes,
    )


def _collect(cells: Sequence[CellEstimate]) -> _Curve:
    times = np.array([cell.time.value for cell in cells])
    half = np.array([cell.time.half_width_ratio or 0.0 for cell in cells]) / 2
    by_launch: list[dict[int, float]] = [
        {
            point.index: point.median_s
            for point in cell.launches
            if not point.contaminated or cell.time.n == len(cell.launches)
        }
        for cell in cells
    ]
    complete = sorted(set.intersection(*(set(points) for points in by_launch)))
    return _Curve(
        sizes=np.array([float(cell.cell.size_bytes) for cell in cells]),
        times=times,
        errors=times * np.hypot(half, MODEL_ERROR),
        launches=np.array([[points[index] for points in by_launch] for index in complete]).reshape(
            len(complete), len(cells)
        ),
        confidence=cells[0].time.confidence,
    )


def _estimate(value: float, per_launch: Sequence[float], unit: str, confidence: float) -> Estimate:
    """Figure of the whole curve with the interval of the same figure over launches."""
    finite = [number for number in per_launch if np.isfinite(number)]
    if len(finite) < 1:
        return Estimate(
            value=value, low=None, high=None, confidence=confidence, unit=unit, n=0, method="none"
        )
    found = intervals.median(finite, confidence)
    low, high = found.low, found.high
    return Estimate(
        value=value,
        # The line through the medians need not be the median of the lines; the interval holds both.
        low=None if low is None else min(low, value),
        high=None if high is None else max(high, value),
        confidence=confidence,
        unit=unit,
        n=found.n,
        method="order statistics of the launches' own lines",
    )


def _over_launches(data: _Curve, figure: Callable[[Floats], float]) -> list[float]:
    return [figure(times) for times in data.launches]


def _theil_sen(data: _Curve) -> LineFit:
    def fit(times: Floats) -> regression.Line:
        # Noise is a fraction of the time, so that large messages have more of it.
        return regression.theil_sen(data.sizes, times, scale=times)

    line = fit(data.times)
    own = [fit(times) for times in data.launches]
    fitted = line.at(data.sizes)
    relative = (data.times - fitted) / np.maximum(np.abs(fitted), 1e-12)
    low, high = regression.residual_quantiles(relative, data.confidence)
    return LineFit(
        method="theil-sen",
        alpha=_estimate(line.intercept, [one.intercept for one in own], "s", data.confidence),
        inverse_beta=_estimate(line.slope, [one.slope for one in own], "s/B", data.confidence),
        r_squared=regression.r_squared(data.times, fitted),
        residual_spread_s=float(
            1.4826 * np.median(np.abs(data.times - fitted - np.median(data.times - fitted)))
        ),
        curve=_points(data.sizes, fitted, fitted * (1 + low), fitted * (1 + high)),
    )


def _least_squares(data: _Curve) -> LineFit:
    found = regression.least_squares(data.sizes, data.times, data.confidence)
    fitted = found.line.at(data.sizes)
    half = regression.prediction_half_width(data.sizes, data.sizes, found.residual_spread, data.confidence)
    return LineFit(
        method="least-squares",
        alpha=_from_interval(found.intercept, "s"),
        inverse_beta=_from_interval(found.slope, "s/B"),
        r_squared=found.r_squared,
        residual_spread_s=found.residual_spread,
        curve=_points(data.sizes, fitted, fitted - half, fitted + half),
    )


def _from_interval(found: intervals.Interval, unit: str) -> Estimate:
    return Estimate(
        value=found.value,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        unit=unit,
        n=found.n,
        method=found.method,
    )


def _points(
    sizes: Floats, fitted: Floats, low: Floats, high: Floats
) -> list[tuple[float, float, float, float]]:
    return [
        (float(size), float(middle), float(below), float(above))
        for size, middle, below, above in zip(sizes, fitted, low, high, strict=True)
    ]


def _piece_line(data: _Curve, piece: Piece, times: Floats) -> tuple[float, float]:
    """Weighted least-squares line (intercept, slope) of a piece through other times."""
    inside = slice(piece.first, piece.last + 1)
    x, y, w = data.sizes[inside], times[inside], 1 / data.errors[inside] ** 2
    if len(x) < 2:
        return float("nan"), float("nan")
    mean_x, mean_y = np.average(x, weights=w), np.average(y, weights=w)
    slope = float(np.sum(w * (x - mean_x) * (y - mean_y)) / np.sum(w * (x - mean_x) ** 2))
    return float(mean_y - slope * mean_x), slope


def _segments(data: _Curve, pieces: Sequence[Piece]) -> list[Segment]:
    result = []
    for number, piece in enumerate(pieces):
        lines = [_piece_line(data, piece, times) for times in data.launches]
        following = pieces[number + 1] if number + 1 < len(pieces) else None
        low, high = int(data.sizes[piece.last]), int(data.sizes[following.first]) if following else 0
        result.append(
            Segment(
                first_size_bytes=int(data.sizes[piece.first]),
                last_size_bytes=low,
                intercept=_estimate(piece.intercept, [a for a, _ in lines], "s", data.confidence),
                slope=_estimate(piece.slope, [b for _, b in lines], "s/B", data.confidence),
                breakpoint_bytes=high if following else None,
                breakpoint_interval=(low, high) if following else None,
                cause=likely_cause(low, high) if following else None,
            )
        )
    return result


def _zero_byte_latency(
    cells: Sequence[CellEstimate], data: _Curve, pieces: Sequence[Piece], notes: list[str]
) -> Estimate | None:
    """Time of an empty message: measured where it was, else where the first segment meets the axis."""
    if cells[0].cell.size_bytes == 0:
        return cells[0].time
    if not pieces or cells[0].bandwidth is None:
        return None
    own = _over_launches(data, lambda times: _piece_line(data, pieces[0], times)[0])
    found = _estimate(pieces[0].intercept, own, "s", data.confidence)
    if found.value <= 0 or (found.low is not None and found.low <= 0):
        notes.append("zero-byte latency: not identifiable (the first segment's intercept may be negative)")
        return None
    return found


def _asymptotic_bandwidth(data: _Curve, pieces: Sequence[Piece], notes: list[str]) -> Estimate | None:
    """Inverse slope of the last segment."""
    if not pieces:
        return None
    slopes = _over_launches(data, lambda times: _piece_line(data, pieces[-1], times)[1])
    if pieces[-1].slope <= 0 or any(slope <= 0 for slope in slopes):
        notes.append(
            "asymptotic bandwidth: not identifiable (time does not grow with size in the last segment)"
        )
        return None
    return _estimate(1 / pieces[-1].slope, [1 / slope for slope in slopes], "B/s", data.confidence)


def _n_half(data: _Curve, pieces: Sequence[Piece], notes: list[str]) -> Estimate | None:
    """Size at which half the asymptotic bandwidth is reached, on the curve itself (Hockney 1994).

    Half the bandwidth 1/b is reached where T(m) = 2 b m; the measured points are interpolated linearly.
    """
    if not pieces or pieces[-1].slope <= 0:
        return None

    def crossing(times: Floats, slope: float) -> float:
        excess = times - 2 * slope * data.sizes
        below = np.flatnonzero((excess[:-1] > 0) & (excess[1:] <= 0))
        if not len(below) or slope <= 0:
            return float("nan")
        i = int(below[0])
        share = excess[i] / (excess[i] - excess[i + 1])
        return float(data.sizes[i] + share * (data.sizes[i + 1] - data.sizes[i]))

    value = crossing(data.times, pieces[-1].slope)
    if not np.isfinite(value):
        notes.append("n½: not identifiable (half the asymptotic bandwidth lies outside the measured sizes)")
        return None
    own = _over_launches(data, lambda times: crossing(times, _piece_line(data, pieces[-1], times)[1]))
    return _estimate(value, own, "B", data.confidence)
