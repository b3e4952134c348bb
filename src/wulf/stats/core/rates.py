"""How often something happens: rates with intervals, and whether it comes too evenly to be chance."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from wulf.stats.core.intervals import Interval

METHOD = "Garwood's interval, widened as the launches' counts scatter"
#: With fewer counts nobody knows how they scatter.
FEWEST = 6


def rate(counts: ArrayLike, exposures: ArrayLike, confidence: float = 0.95) -> Interval:
    """Rate of events that come at random, or in clumps.

    Parameters
    ----------
    counts
        Events in each replicate, shape (n,).
    exposures
        How long each was watched [s], above zero, shape (n,).

    Returns
    -------
    Interval
        In 1/s; without bounds from fewer than `FEWEST` replicates.

    Notes
    -----
    Garwood (1936), "Fiducial limits for the Poisson distribution"; where counts scatter more than chance would have
    them, each event counts for less (McCullagh and Nelder, 1989, "Generalized Linear Models", sec. 6.2.3).

    Raises
    ------
    ValueError
        When nothing was watched.
    """
    found, watched = _arrays(counts, exposures)
    total, time = float(found.sum()), float(watched.sum())
    if found.size < FEWEST:
        return Interval(total / time, None, None, confidence, METHOD, int(found.size))
    clump = max(_dispersion(found, watched) / (found.size - 1), 1.0)
    tail = (1 - confidence) / 2
    if clump > 1:
        # That few launches say how much counts scatter.
        clump *= float(scipy.stats.t.ppf(1 - tail, found.size - 1) / scipy.stats.norm.ppf(1 - tail)) ** 2
    events = total / clump
    low = float(scipy.stats.chi2.ppf(tail, 2 * events)) / 2 if events else 0.0
    high = float(scipy.stats.chi2.ppf(1 - tail, 2 * events + 2)) / 2
    return Interval(
        total / time, low * clump / time, high * clump / time, confidence, METHOD, int(found.size)
    )


def chance_of_evenness(counts: ArrayLike, exposures: ArrayLike) -> float | None:
    """Chance that counts are as even as these where events come at random; None where nobody can tell.

    Small where something comes with a period: as often in every stretch of the same length. Fisher's index of
    dispersion (Fisher, 1950, "The significance of deviations from expectation in a Poisson series"), lower tail.
    """
    found, watched = _arrays(counts, exposures)
    if found.size < FEWEST or not found.any():
        return None
    return float(scipy.stats.chi2.cdf(_dispersion(found, watched), found.size - 1))


def _arrays(counts: ArrayLike, exposures: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found, watched = (np.asarray(values, dtype=np.float64) for values in (counts, exposures))
    if not watched.size or watched.min() <= 0:
        raise ValueError("a rate of nothing that was watched")
    return found, watched


def _dispersion(found: NDArray[np.float64], watched: NDArray[np.float64]) -> float:
    expected = found.sum() * watched / watched.sum()
    return float(np.sum((found - expected) ** 2 / expected)) if found.any() else 0.0
