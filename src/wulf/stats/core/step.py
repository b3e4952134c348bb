"""A step from one series to another that both may drift along: least squares with a common slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Step:
    """What lies between two series beside the slope that they have in common."""

    #: Second − first, where one ends and the other begins.
    height: float
    #: Two-sided p value of no step, and of no slope.
    p_value: float
    slope_p_value: float
    #: What is left of the values, in time order; neither step nor slope is in it.
    residuals: NDArray[np.float64]


def step(first: ArrayLike, second: ArrayLike, *, second_is_earlier: bool = False) -> Step | None:
    """Step between two series in time order, one of which directly follows the other.

    A drift that goes on from one run to the next sets them apart by as much as each changes: what is left when the
    slope is taken out is not the drift's. The price is twice the standard error.

    Parameters
    ----------
    first, second
        Shapes (m,) and (n,), such as logarithms of times.

    Returns
    -------
    Step or None
        None where there are fewer than 5 values, or none on one side.
    """
    series = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    sizes = [values.size for values in series]
    if min(sizes) == 0 or sum(sizes) < 5:
        return None
    high = np.repeat([0.0, 1.0], sizes)
    values = np.concatenate(series)
    if second_is_earlier:
        high, values = np.roll(high, sizes[1]), np.roll(values, sizes[1])
    time = np.arange(values.size) - (values.size - 1) / 2
    design = np.column_stack([np.ones_like(time), high, time])
    solution, *_ = np.linalg.lstsq(design, values, rcond=None)
    residuals = values - design @ solution
    free = values.size - design.shape[1]
    variances = np.diag(np.linalg.inv(design.T @ design)) * float(residuals @ residuals) / free
    # Where nothing is left over, whatever is not zero is certain.
    errors = np.maximum(np.sqrt(variances), np.finfo(np.float64).tiny)
    p_values = 2 * scipy.stats.t.sf(np.abs(solution) / errors, free)
    return Step(float(solution[1]), float(p_values[1]), float(p_values[2]), residuals)
