"""Hockney's model of a message's time, T = α + m/β.

Hockney (1994), "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20, 389–398.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from wulf.model.matrix import Curve, Floats
from wulf.records import Estimate, LineFit
from wulf.stats import intervals
from wulf.stats.regression import (
    Line,
    least_squares,
    prediction_half_width,
    r_squared,
    residual_quantiles,
    theil_sen,
)

#: A line through two points fits always and says nothing.
MIN_SIZES = 3

CONFIDENCE = 0.95
#: Median absolute deviation to standard deviation, for normal errors.
MAD_TO_SD = 1.4826


class NotIdentifiable(Exception):  # noqa: N818 - an outcome of the fit, caught where it becomes a note
    """A parameter that is not positive, or whose interval is not."""


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


def positive(figure: Estimate, name: str) -> Estimate:
    """Return the figure; raise NotIdentifiable when the data do not show that it is above zero."""
    if figure.value <= 0:
        raise NotIdentifiable(f"{name} comes out negative")
    if figure.low is not None and figure.low <= 0:
        raise NotIdentifiable(f"{name} cannot be told from zero")
    return figure


def robust(curve: Curve, lines: list[Line]) -> LineFit:
    """Theil–Sen line; the prediction interval has the width, relative to the line, of the residuals.

    Raises
    ------
    NotIdentifiable
        When α or 1/β is not positive.
    """
    line, alpha, inverse_beta = _parameters(curve, robust_line, lines, "Theil–Sen")
    fitted = line.at(curve.sizes)
    # Below zero the line is no model of a time; positive parameters rule it out.
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
        When α or 1/β is not positive.
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
    alpha = positive(estimate(alphas, central.intercept, "s", method), "α")
    inverse_beta = positive(estimate(slopes, central.slope, "s/B", method), "1/β")
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
