"""Robust linear regression on a few covariates, with intervals that hold for few values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

METHOD = "Huber's M-estimate, Student's t"
#: Of the standard deviation: 95 % as efficient as least squares where errors are normal.
TUNING = 1.345
#: Residuals beyond what the coefficients take, at least.
MIN_FREEDOM = 3
_ROUNDS = 100
_TO_DEVIATION = 1.4826


@dataclass(frozen=True)
class Fit:
    """y = design · coefficients, as fitted to one set of values."""

    #: Shape (p,).
    coefficients: Floats
    #: Of the coefficients, shape (p, p).
    covariance: Floats
    #: Degrees of freedom: values less coefficients.
    freedom: int

    def at(self, row: ArrayLike) -> tuple[float, float]:
        """Fitted value at one row of a design, and its standard error."""
        place = np.asarray(row, dtype=np.float64)
        return float(place @ self.coefficients), math.sqrt(max(float(place @ self.covariance @ place), 0.0))

    def p_value(self, index: int) -> float:
        """Two-sided p value of "this coefficient is zero"."""
        error = math.sqrt(max(float(self.covariance[index, index]), 0.0))
        value = abs(float(self.coefficients[index]))
        if error == 0:
            return 1.0 if value == 0 else 0.0
        return float(2 * scipy.stats.t.sf(value / error, self.freedom))


def huber(design: ArrayLike, values: ArrayLike) -> Fit | None:
    """Linear regression in which values far from the rest count less.

    Iterated weighted least squares with Huber's weights; the scale is the median absolute deviation of the residuals,
    corrected for the coefficients that were fitted.

    Parameters
    ----------
    design
        Shape (n, p).
    values
        Shape (n,).

    Returns
    -------
    Fit
        None where there are fewer than p + 3 values, or a column follows from the others.

    References
    ----------
    Huber (1981), "Robust Statistics", sections 7.6 (equation 6.5: the covariance and its correction) and 7.8.
    """
    x, y = np.asarray(design, dtype=np.float64), np.asarray(values, dtype=np.float64)
    n, p = x.shape
    if n - p < MIN_FREEDOM or np.linalg.matrix_rank(x) < p:
        return None
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    for _ in range(_ROUNDS):
        residuals = y - x @ coefficients
        scale = _scale(residuals, p)
        if scale == 0:
            break
        weights = np.minimum(1.0, TUNING * scale / np.maximum(np.abs(residuals), 1e-300))
        before = coefficients
        coefficients = np.linalg.solve(x.T @ (x * weights[:, None]), x.T @ (weights * y))
        if np.max(np.abs(coefficients - before)) <= 1e-9 * scale:
            break
    covariance = _variance(y - x @ coefficients, p) * np.linalg.inv(x.T @ x)
    return Fit(np.asarray(coefficients, dtype=np.float64), np.asarray(covariance, dtype=np.float64), n - p)


def _scale(residuals: Floats, p: int) -> float:
    """Spread of the residuals; their standard error where more than half of them are alike."""
    n = residuals.size
    spread = _TO_DEVIATION * float(np.median(np.abs(residuals))) * math.sqrt(n / (n - p))
    return spread or math.sqrt(float(residuals @ residuals) / (n - p))


def _variance(residuals: Floats, p: int) -> float:
    """Factor of (XᵀX)⁻¹ in the covariance."""
    n = residuals.size
    scale = _scale(residuals, p)
    if scale == 0:
        return 0.0
    held = np.clip(residuals, -TUNING * scale, TUNING * scale)
    inside = float(np.mean(np.abs(residuals) <= TUNING * scale))
    correction = 1 + p / n * (1 - inside) / inside
    return float(correction**2 * (held @ held) / (n - p) / inside**2)
