"""How many modes a sample of times has."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.quantiles import weighted_quantile

#: A mode must hold at least this share of the sample, and so many values …
MIN_MASS = 0.1
MIN_VALUES = 5
#: … a larger share of fewer values than this: the tail of a skewed sample falls into clumps.
FEW = 200
MIN_MASS_OF_FEW = 0.175
#: … and the density between two modes must fall below this share of the lower one.
VALLEY = 0.35
#: Times closer than this ratio are the same to a histogram of three digits and to a reader.
MIN_BANDWIDTH = 0.01
_BINS_PER_WIDTH = 4
_MAX_BINS = 4096


class Mode(NamedTuple):
    """One cluster of a sample."""

    #: Median of its values.
    middle: float
    #: Its part of the sample.
    share: float


def count_modes(values: ArrayLike, counts: ArrayLike | None = None) -> int:
    """Count the clearly separated modes of positive values; at least 1. See `modes`."""
    return max(len(modes(values, counts)), 1)


def modes(values: ArrayLike, counts: ArrayLike | None = None) -> list[Mode]:
    """Divide positive values into their clearly separated modes.

    A Gaussian kernel estimate of the density of the logarithms, with Silverman's bandwidth (1986, "Density
    Estimation", eq. 3.31); modes count when the valley between them is deep and each holds a tenth of the
    sample (a sixth of a small one) and five values. It errs on the side of one: of unimodal samples (normal,
    Student's t with 3 degrees, exponential, base plus log-normal delays; 10 to 1000 values) it took at most
    2.2 % for several modes in simulation. Of mixtures 70:30 that lie 15 % apart it finds none with 15 values,
    32 % with 20, 81 % with 25, 97 % with 40: fewer than 20 launches cannot show that they fall into groups.

    Parameters
    ----------
    values
        Above zero; others are ignored.
    counts
        How often each value occurs; None for once each.

    Returns
    -------
    list of Mode
        Ascending; a single one also where there are too few values (fewer than 6) to tell, none where there is none.
    """
    numbers = np.asarray(values, dtype=np.float64)
    weights = np.ones_like(numbers) if counts is None else np.asarray(counts, dtype=np.float64)
    order = np.argsort(numbers, kind="stable")
    order = order[(numbers[order] > 0) & (weights[order] > 0)]
    numbers, weights = numbers[order], weights[order]
    total = float(weights.sum())
    if total < 6:
        return _divided(numbers, weights, [])
    logs = np.log(numbers)
    width = _bandwidth(logs, weights, total)
    low, high = float(logs.min()) - 4 * width, float(logs.max()) + 4 * width
    bins = int(min((high - low) / width * _BINS_PER_WIDTH, _MAX_BINS))
    mass, _ = np.histogram(logs, bins=bins, range=(low, high), weights=weights / total)
    density = scipy.ndimage.gaussian_filter1d(mass, width / ((high - low) / bins), mode="constant")
    share = MIN_MASS if total >= FEW else MIN_MASS_OF_FEW
    valleys = _valleys(density, max(share, MIN_VALUES / total))
    return _divided(numbers, weights, [low + (high - low) * at / bins for at in valleys])


def _divided(numbers: NDArray[np.float64], weights: NDArray[np.float64], valleys: list[float]) -> list[Mode]:
    """Return what lies between the valleys, which are logarithms."""
    ends = [0, *np.searchsorted(numbers, np.exp(valleys)).tolist(), len(numbers)]
    return [
        Mode(
            middle=weighted_quantile(numbers[begin:end], weights[begin:end], 0.5),
            share=float(weights[begin:end].sum() / weights.sum()),
        )
        for begin, end in pairwise(ends)
        if begin < end
    ]


def _bandwidth(logs: NDArray[np.float64], weights: NDArray[np.float64], total: float) -> float:
    """Silverman's rule of thumb, from the quartiles so that a second mode does not widen it much."""
    mean = float(np.average(logs, weights=weights))
    deviation = float(np.sqrt(np.average((logs - mean) ** 2, weights=weights)))
    order = np.argsort(logs)
    cumulated = np.cumsum(weights[order]) / total
    quartiles = logs[order][np.searchsorted(cumulated, [0.25, 0.75])]
    spread = min(deviation, float(quartiles[1] - quartiles[0]) / 1.34) or deviation
    return float(max(0.9 * spread * total**-0.2, MIN_BANDWIDTH))


def _valleys(density: NDArray[np.float64], min_mass: float) -> list[int]:
    """Find what separates peaks: walk along the density and close a mode at a valley deep enough on both sides."""
    total = float(density.sum())
    found: list[int] = []
    begin = 0
    peak = valley = float(density[0])
    valley_at = 0
    for index in _turning_points(density):
        height = float(density[index])
        if height < valley:
            valley, valley_at = height, index
        climbed = height > 0 and valley < VALLEY * min(peak, height)
        if climbed:
            left = float(density[begin:valley_at].sum()) / total
            right = float(density[valley_at:].sum()) / total
            if min(left, right) >= min_mass:
                found.append(valley_at)
                begin = valley_at
            peak = valley = height
            valley_at = index
        elif height > peak:
            peak = valley = height
            valley_at = index
    return found


def _turning_points(density: NDArray[np.float64]) -> list[int]:
    """Where a density turns from rising to falling or back; the walk need not look elsewhere."""
    rising = np.sign(np.diff(density))
    turns = np.flatnonzero(rising[:-1] != rising[1:]) + 1
    return [*turns.tolist(), len(density) - 1]
