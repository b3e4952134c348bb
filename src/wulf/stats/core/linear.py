"""Effects of several causes at once on values that scatter with outliers: a robust linear model, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval
from wulf.stats.core.shift import Shift

Floats = NDArray[np.float64]
METHOD = "robust linear model (Huber 1981, section 7.6), Student's t"

#: Residuals beyond so many scales count as much as one of that size (95 % efficient for normal ones).
HUBER = 1.5
_STEPS = 30
#: A row that decides its own fitted value has no residual; its leverage is held below one.
_LEVERAGE = 0.95
_TINY = 1e-12
#: Logarithm beyond which no ratio is told from another.
_LARGE = 50.0
_SHARE = 0.95
#: Share of normal values that lie within one standard deviation.
_SCALE = 0.6827


class SingularError(ValueError):
    """The causes cannot be told apart by these rows."""


@dataclass(frozen=True)
class Contrast:
    """A sum of effects with its standard error."""

    value: float
    error: float
    #: Degrees of freedom of the residuals.
    degrees: int
    #: What the rows say of it: variance of the noise ÷ squared standard error.
    information: float

    @property
    def t(self) -> float:
        """Value in standard errors."""
        return self.value / self.error

    def p_value(self) -> float:
        """Two-sided p value of "it is nothing"."""
        # What scipy.stats.t does, which takes twenty times as long to get there.
        return float(2 * scipy.special.stdtr(self.degrees, -abs(self.t)))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Lower and upper bound, by Student's t."""
        half = float(scipy.special.stdtrit(self.degrees, (1 + confidence) / 2)) * self.error
        return self.value - half, self.value + half

    def shift(self, confidence: float, n: int) -> Shift:
        """Return the effect on a logarithm as a ratio, from so many values."""
        low, high = (_exp(bound) for bound in self.interval(confidence))
        return Shift(Interval(_exp(self.value), low, high, confidence, METHOD, n), self.p_value())

    def lower(self, chance: float) -> float:
        """Bound below which the effect is with this chance at most."""
        return self.value + float(scipy.special.stdtrit(self.degrees, chance)) * self.error

    def upper(self, chance: float) -> float:
        """Bound above which the effect is with this chance at most."""
        return self.value - float(scipy.special.stdtrit(self.degrees, chance)) * self.error

    def scattered(self, times: float, degrees: int) -> Contrast:
        """Return the same where the noise is so many times as large, as so many degrees of freedom say."""
        return replace(
            self, error=times * self.error, information=self.information / times**2, degrees=degrees
        )

    def evidence(self, typical: float) -> float:
        """Return the e value against "it is nothing": valid whenever it is looked at, however often.

        Its mean is at most 1 when there is no effect, so that it exceeds 1/α at any time with probability α at most
        (Ville's inequality). A mixture over effects that are normal with standard deviation `typical` × the noise's:
        Lindon, Ham, Tingley and Bojinov (2022), "Anytime-valid linear models and regression adjusted causal
        inference in randomized experiments", arXiv 2210.08589.
        """
        prior = 1 / typical**2
        share = prior / (prior + self.information)
        square = self.t**2 / self.degrees
        logarithm = 0.5 * math.log(share) + (self.degrees + 1) / 2 * (
            math.log1p(square) - math.log1p(share * square)
        )
        return math.exp(min(logarithm, 700.0))


@dataclass(frozen=True)
class Fit:
    """Coefficients of a linear model."""

    #: Shape (causes,).
    coefficients: Floats
    #: Shape (causes, causes).
    covariance: Floats
    degrees: int
    #: Scale of the noise.
    scale: float
    #: The causes, shape (n, causes), and the residuals as far as they count, shape (n,).
    rows: Floats
    pulls: Floats

    def contrast(self, weights: ArrayLike) -> Contrast:
        """Sum of the coefficients, each times its weight. Shape (causes,)."""
        chosen = np.asarray(weights, dtype=np.float64)
        variance = float(chosen @ self.covariance @ chosen)
        error = max(math.sqrt(max(variance, 0.0)), _TINY)
        return Contrast(
            value=float(chosen @ self.coefficients),
            error=error,
            degrees=self.degrees,
            information=(self.scale / error) ** 2,
        )

    def scatter(self, part: NDArray[np.bool_]) -> float:
        """Scale of the noise of some of the rows: shape (n,). Outliers count as far as in the fit."""
        inverse = self.covariance / self.scale**2
        leverage = np.einsum("ij,jk,ik->i", self.rows[part], inverse, self.rows[part])
        degrees = max(float(part.sum() - leverage.sum()), _TINY)
        return max(math.sqrt(float(np.sum(self.pulls[part] ** 2)) / degrees), _TINY)

    def lag_one(self) -> float:
        """Correlation of what is left of each value with that of the one before, between −0.95 and 0.95.

        What the causes take out of independent values leaves a resemblance of its own, the more the more causes there
        are; it is subtracted.
        """
        inverse = self.covariance / self.scale**2
        left = -np.einsum("ij,jk,ik->i", self.rows[1:], inverse, self.rows[:-1])
        own = float(left.sum()) / max(self.degrees, 1)
        total = float(self.pulls @ self.pulls)
        found = float(self.pulls[1:] @ self.pulls[:-1]) / total if total > 0 else 0.0
        return min(max(found - own, -_SHARE), _SHARE)

    def addition(self, cause: ArrayLike) -> Contrast:
        """Effect of one more cause by a single step from this fit: fitting anew would move it little. Shape (n,)."""
        column = np.asarray(cause, dtype=np.float64)
        inverse = self.covariance / self.scale**2
        own = column - self.rows @ (inverse @ (self.rows.T @ column))
        information = max(float(own @ own), _TINY)
        return Contrast(
            value=float(own @ self.pulls) / information,
            error=max(self.scale / math.sqrt(information), _TINY),
            degrees=max(self.degrees - 1, 1),
            information=information,
        )


def _exp(value: float) -> float:
    return math.exp(min(max(value, -_LARGE), _LARGE))


def _reweighted(
    rows: Floats, wanted: Floats, correction: Floats, coefficients: Floats
) -> tuple[Floats, float]:
    """Return the coefficients in which outliers weigh less, and the scale of what they leave, step by step."""
    rank = min(int(_SCALE * len(rows)), len(rows) - 1)
    scale = _TINY
    for _ in range(_STEPS):
        residuals = (wanted - rows @ coefficients) / correction
        scale = max(float(np.partition(np.abs(residuals), rank)[rank]), _TINY)
        weights = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residuals), _TINY))
        weighted = rows * weights[:, None]
        before = coefficients
        coefficients = np.asarray(np.linalg.solve(rows.T @ weighted, weighted.T @ wanted), dtype=np.float64)
        if float(np.max(np.abs(coefficients - before))) <= 1e-6 * scale:
            break
    return coefficients, scale


def fit(causes: ArrayLike, values: ArrayLike) -> Fit:
    """Fit values by causes, so that outliers have a limited say.

    Huber's M estimator (1981, "Robust Statistics", section 7.6) with residuals that are corrected for their leverage;
    the covariance has his correction for small samples (section 7.6, eq. 6.10). What the causes are must have been
    drawn at random: then neighbours that resemble each other do no harm, as no cause follows them.

    Parameters
    ----------
    causes
        Shape (n, p); a column of ones for the base, then one for each cause.
    values
        Shape (n,).

    Raises
    ------
    SingularError
        There are no more rows than causes, or some of them cannot be told apart.
    """
    rows, wanted, inverse = _solvable(causes, values)
    n, p = rows.shape
    leverage = np.minimum(np.einsum("ij,jk,ik->i", rows, inverse, rows), _LEVERAGE)
    correction = np.sqrt(1 - leverage)
    coefficients, scale = _reweighted(rows, wanted, correction, inverse @ rows.T @ wanted)
    residuals = (wanted - rows @ coefficients) / correction
    bounded = np.clip(residuals, -HUBER * scale, HUBER * scale)
    inside = max(float(np.mean(np.abs(residuals) < HUBER * scale)), 1 / n)
    small = 1 + p / n * (1 - inside) / inside
    noise = small * math.sqrt(float(np.mean(bounded**2))) / inside
    return Fit(
        coefficients=coefficients,
        covariance=noise**2 * inverse,
        degrees=n - p,
        scale=noise,
        rows=rows,
        pulls=bounded * correction / inside,
    )


def least_squares(causes: ArrayLike, values: ArrayLike) -> Fit:
    """Fit values by causes, every value counted in full: what outliers that a cause makes say of the mean.

    Parameters and errors as of `fit`.
    """
    rows, wanted, inverse = _solvable(causes, values)
    n, p = rows.shape
    coefficients = inverse @ rows.T @ wanted
    residuals = wanted - rows @ coefficients
    noise = max(math.sqrt(float(residuals @ residuals) / (n - p)), _TINY)
    return Fit(
        coefficients=coefficients,
        covariance=noise**2 * inverse,
        degrees=n - p,
        scale=noise,
        rows=rows,
        pulls=residuals,
    )


def _solvable(causes: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return causes, values and the inverse of the causes' products, where the causes can be told apart."""
    rows = np.asarray(causes, dtype=np.float64)
    n, p = rows.shape
    if n <= p or np.linalg.matrix_rank(rows) < p:
        raise SingularError(f"causes cannot be told apart (rows × causes: {n} × {p})")
    inverse: Floats = np.asarray(np.linalg.inv(rows.T @ rows), dtype=np.float64)
    return rows, np.asarray(values, dtype=np.float64), inverse
