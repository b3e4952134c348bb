"""How long HPL takes by the order of the problem: a model of small problems that predicts a large one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from wulf.base.errors import AnalysisError
from wulf.base.records import Estimate
from wulf.base.text import count
from wulf.stats.core import linear
from wulf.tools.hpl.record import Forecast, TimeModel

CONFIDENCE = 0.95
METHOD = "surface × n² + volume × n³, robust least squares of relative residuals, Student's t"
#: Launches below which no model is fitted.
FEWEST = 4


def fit(timings: Sequence[tuple[int, float]]) -> TimeModel:
    """Fit the time of a solution by its order.

    The work is 2/3 n³; panels, exchanges and broadcasts grow with n². Each launch counts by its relative residual:
    the noise of a run is a share of it.

    Parameters
    ----------
    timings
        (order, time of the solution [s]) of launches of the same setting.

    Raises
    ------
    AnalysisError
        There are too few launches, or all are of the same order.
    """
    if len(timings) < FEWEST or len({n for n, _ in timings}) < 2:
        raise AnalysisError(
            f"nothing is said of other orders by {count(len(timings), 'launch')} of "
            f"{count(len({n for n, _ in timings}), 'order')}"
        )
    for powers in ((2, 3), (3,)):
        found = linear.fit(
            _rows([n for n, _ in timings], [seconds for _, seconds in timings], powers), _ones(timings)
        )
        if all(coefficient > 0 for coefficient in found.coefficients):
            break
    surface, volume = (0.0, *found.coefficients)[-2:]
    orders = [n for n, _ in timings]
    return TimeModel(
        surface_s=float(surface),
        volume_s=float(volume),
        covariance=[[float(value) for value in row] for row in found.covariance],
        scatter=found.scale,
        degrees=found.degrees,
        n_min=min(orders),
        n_max=max(orders),
        launches=len(timings),
    )


def _rows(orders: Sequence[int], seconds: Sequence[float], powers: Sequence[int]) -> list[list[float]]:
    return [[float(n) ** power / time for power in powers] for n, time in zip(orders, seconds, strict=True)]


def _ones(timings: Sequence[tuple[int, float]]) -> list[float]:
    return [1.0] * len(timings)


def forecast(model: TimeModel, n: int) -> Forecast:
    """Predict the time of one launch of an order, with the interval that it is expected in."""
    powers = (2, 3)[-len(model.covariance) :]
    weights = np.array([float(n) ** power for power in powers])
    value = model.surface_s * float(n) ** 2 + model.volume_s * float(n) ** 3
    error = math.sqrt(float(weights @ np.array(model.covariance) @ weights))
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, model.degrees)) * math.hypot(
        error, model.scatter * value
    )
    return Forecast(
        n=n,
        time=Estimate(
            value=value,
            low=max(value - half, 0.0),
            high=value + half,
            confidence=CONFIDENCE,
            unit="s",
            n=model.launches,
            method=METHOD,
        ),
    )


def largest_within(model: TimeModel, time_s: float, limit: int, nb: int) -> int:
    """Return the largest order, in whole blocks, that is expected to be solved in a time; 0 where none is.

    Parameters
    ----------
    time_s
        What the upper end of the prediction may be [s].
    limit
        Largest order that fits into the memory.
    """
    low, high = 0, limit // nb
    while low < high:
        middle = (low + high + 1) // 2
        upper = forecast(model, middle * nb).time.high
        assert upper is not None
        low, high = (middle, high) if upper <= time_s else (low, middle - 1)
    return low * nb
