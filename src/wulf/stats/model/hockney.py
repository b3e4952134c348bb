"""Hockney's model of a message's time, T = α + m/β.

Hockney (1994), "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20, 389–398.

A parameter is printed only where the data determine it; otherwise it is *not identifiable*, and the reason is said:

* Its interval must exclude zero. 1/β is the slope's inverse, and the interval of an inverse is bounded only then
  (Fieller 1954, "Some problems in interval estimation", J. R. Stat. Soc. B 16, 175–185).
* The ends of its interval lie within `WIDEST`: at a factor of two Fieller's g is 1/9, about where an interval around
  the value stops being a fair picture of the inverse (Finney 1978, "Statistical method in biological assay", 4.12).
* It was seen, not only extrapolated: a bandwidth that the largest message did not reach the half of, or a latency
  that is not half of the smallest message's time, lies on the far side of Hockney's n½ from all that was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from wulf.base.records import Estimate, LineFit
from wulf.base.units import format_bytes
from wulf.stats.core import intervals
from wulf.stats.core.regression import (
    Line,
    least_squares,
    prediction_half_width,
    r_squared,
    residual_quantiles,
    theil_sen,
)
from wulf.stats.model.curve_data import Curve, Floats

#: A line through two points fits always and says nothing.
MIN_SIZES = 3

CONFIDENCE = 0.95
#: A parameter whose interval spans a larger factor is not determined by the data.
WIDEST = 2.0
#: Share of a measured time that a term must make up to be seen: beyond Hockney's n½ it is extrapolated.
SEEN = 0.5
#: Median absolute deviation to standard deviation, for normal errors.
MAD_TO_SD = 1.4826


class NotIdentifiable(Exception):  # noqa: N818 - an outcome of the fit, caught where it becomes a note
    """A parameter that the data do not determine; the module's head says when."""


def robust_line(sizes: Floats, times: Floats) -> Line:
    """Theil–Sen for noise that is a fraction of the time."""
    return theil_sen(sizes, times, scale=times)


def ordinary_line(sizes: Floats, times: Floats) -> Line:
    """Ordinary least squares."""
    return least_squares(sizes, times).line


def launch_lines(curve: Curve, fit: Callable[[Floats, Floats], Line]) -> list[Line]:
    """One line per launch: the launch is the unit of replication."""
    return [fit(curve.sizes, times) for times in curve.launches]


def estimate(values: Floats, value: float, unit: str, method: str) -> Estimate:
    """Estimate of a parameter from its values in the launches.

    With enough launches for an interval both come from the launches' own fits; with fewer the value is that of
    the fit through the cells, without bounds.
    """
    bounds = intervals.median(values, CONFIDENCE) if len(values) else None
    if bounds is None or bounds.low is None:
        return Estimate(
            value=value,
            low=None,
            high=None,
            confidence=CONFIDENCE,
            unit=unit,
            n=len(values),
            method=f"{method} through the medians of the cells; too few launches for an interval",
        )
    return Estimate(
        value=bounds.value,
        low=bounds.low,
        high=bounds.high,
        confidence=CONFIDENCE,
        unit=unit,
        n=bounds.n,
        method=f"median over launches of each launch's {method} line",
    )


def determined(figure: Estimate, name: str) -> Estimate:
    """Return the figure; raise NotIdentifiable when it is not above zero or not known to a factor of `WIDEST`."""
    if figure.value <= 0:
        raise NotIdentifiable(f"{name} comes out negative")
    if figure.low is not None and figure.low <= 0:
        raise NotIdentifiable(f"{name} cannot be told from zero")
    if figure.low is not None and figure.high is not None and figure.high > WIDEST * figure.low:
        raise NotIdentifiable(f"{name} is not known to a factor of {WIDEST:g}")
    return figure


def require_latency_seen(curve: Curve, latency_s: float) -> None:
    """Raise NotIdentifiable when the smallest message takes so long that its latency is only extrapolated."""
    share = latency_s / float(curve.times[0])
    if share < SEEN:
        size = format_bytes(int(curve.sizes[0]))
        raise NotIdentifiable(f"it is {share:.0%} of the time of the smallest size, {size}")


def require_bandwidth_seen(curve: Curve, bandwidth: float) -> None:
    """Raise NotIdentifiable when the largest message reaches so little of the bandwidth that it is extrapolated."""
    share = float(curve.sizes[-1] / curve.times[-1]) / bandwidth
    if share < SEEN:
        size = format_bytes(int(curve.sizes[-1]))
        raise NotIdentifiable(f"the largest size, {size}, reaches {share:.0%} of it")


def robust(curve: Curve, lines: list[Line]) -> LineFit:
    """Theil–Sen line; the prediction interval has the width, relative to the line, of the residuals.

    Raises
    ------
    NotIdentifiable
        When α or 1/β is.
    """
    line, alpha, inverse_beta = _parameters(curve, robust_line, lines, "Theil–Sen")
    fitted = line.at(curve.sizes)
    # Below zero the line is no model of a time; parameters above zero rule it out.
    observed = curve.launches if len(curve.launches) else curve.times[None, :]
    low, high = residual_quantiles((observed / fitted).ravel(), CONFIDENCE)
    residuals = curve.times - fitted
    spread = MAD_TO_SD * float(np.median(np.abs(residuals - np.median(residuals))))
    return _fit("theil-sen", curve, line, (alpha, inverse_beta), spread, (fitted * low, fitted * high))


def ordinary(curve: Curve) -> LineFit:
    """Ordinary least squares line, for comparison with published tables.

    Raises
    ------
    NotIdentifiable
        When α or 1/β is.
    """
    lines = launch_lines(curve, ordinary_line)
    line, alpha, inverse_beta = _parameters(curve, ordinary_line, lines, "least-squares")
    spread = float(np.sqrt(np.sum((curve.times - line.at(curve.sizes)) ** 2) / (len(curve.sizes) - 2)))
    half = prediction_half_width(curve.sizes, curve.sizes, spread, CONFIDENCE)
    fitted = line.at(curve.sizes)
    return _fit("least-squares", curve, line, (alpha, inverse_beta), spread, (fitted - half, fitted + half))


def _parameters(
    curve: Curve, fit: Callable[[Floats, Floats], Line], lines: list[Line], method: str
) -> tuple[Line, Estimate, Estimate]:
    central = fit(curve.sizes, curve.times)
    alphas = np.array([line.intercept for line in lines])
    slopes = np.array([line.slope for line in lines])
    alpha = determined(estimate(alphas, central.intercept, "s", method), "α")
    inverse_beta = determined(estimate(slopes, central.slope, "s/B", method), "1/β")
    return Line(alpha.value, inverse_beta.value), alpha, inverse_beta


def _fit(
    method: Literal["theil-sen", "least-squares"],
    curve: Curve,
    line: Line,
    parameters: tuple[Estimate, Estimate],
    spread: float,
    band: tuple[Floats, Floats],
) -> LineFit:
    fitted = line.at(curve.sizes)
    return LineFit(
        method=method,
        alpha=parameters[0],
        inverse_beta=parameters[1],
        r_squared=r_squared(curve.times, fitted),
        residual_spread_s=spread,
        curve=[
            (float(size), float(middle), float(low), float(high))
            for size, middle, low, high in zip(curve.sizes, fitted, *band, strict=True)
        ],
    )
