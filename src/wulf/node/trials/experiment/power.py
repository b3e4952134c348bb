"""What a search can see: the smallest effect that it would keep in nine of ten cases."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from wulf.base.records import Control, Estimate
from wulf.stats.core.intervals import Interval
from wulf.stats.core.linear import Contrast
from wulf.stats.core.paired import paired_shift
from wulf.stats.core.trend import dependence

#: Share of the cases in which the smallest effect is kept.
POWER = 0.9
#: Trials resemble each other, and how much they scatter is itself estimated: in simulated searches nine of ten effects
#: were kept only from so many times what the estimates alone say (`make bench NAME=tune-power`, other seeds).
REALISED = 1.13
#: Standard errors below zero at which an arm survives the screening.
SURVIVES = 1.3
#: Chance of confirming what does nothing.
UNCONFIRMED = 0.025
#: Significance at which trials of the same setting are said to depend on each other.
DEPENDENT = 0.01
_DRAWS = 4000


@lru_cache(maxsize=256)
def smallest_effect(
    scale: float, screening: int, forward: int, confirmation: int, arms: int, error: float
) -> float:
    """Smallest decrease that is screened, proven and confirmed in nine of ten cases, as a share.

    By simulation of the three estimates, the second of which holds the trials of the first.

    Parameters
    ----------
    scale
        Standard deviation of a trial, in logarithms.
    screening, forward, confirmation
        Trials of each phase, in half of which a knob is set.
    arms
        That are screened.
    error
        Chance to keep something useless, shared by all of them.
    """
    rng = np.random.default_rng(0)
    first, second, third = rng.standard_normal((3, _DRAWS))
    screened, fresh = _error(scale, screening), _error(scale, forward)
    weight = screened**-2 / (screened**-2 + fresh**-2) if forward else 1.0
    noise = weight * screened * first + (1 - weight) * fresh * second if forward else screened * first
    both = 1 / math.sqrt(screened**-2 + (fresh**-2 if forward else 0.0))
    limit = float(scipy.stats.t.isf(error / max(arms, 1), max(screening + forward - arms - 4, 2)))
    last = float(scipy.stats.t.isf(UNCONFIRMED, max(confirmation - 2, 2)))
    # The effect above which each of the three sees it; all three must.
    needed = np.maximum.reduce(
        [
            SURVIVES * screened - screened * first,
            limit * both - noise,
            (last - third) * _error(scale, confirmation),
        ]
    )
    return -math.expm1(-REALISED * float(np.quantile(needed, POWER)))


def _error(scale: float, trials: int) -> float:
    """Return the standard error of the difference of two halves of the trials."""
    return 2 * scale / math.sqrt(max(trials, 2))


def control(blocks: list[list[float]], smallest: float, trials: int) -> Control | None:
    """Conclude from the A/A blocks; None where there is no block of two values.

    Parameters
    ----------
    blocks
        Log objectives of each block, in time order.
    trials
        Of each kind behind an effect.
    """
    pairs = np.array([block[:2] for block in blocks if len(block) >= 2])
    if not len(pairs):
        return None
    differences = pairs[:, 1] - pairs[:, 0]
    found = paired_shift(differences)
    dependent = dependence(differences)
    return Control(
        blocks=len(pairs),
        trials=2 * len(pairs),
        ratio=estimate(found.ratio),
        spread=math.expm1(scatter(blocks)),
        smallest_effect=smallest,
        effect_blocks=trials,
        # A drift from block to block does no harm; one that is seen inside the blocks does.
        drifting=found.p_value < DEPENDENT or (dependent is not None and dependent < DEPENDENT),
    )


def scatter(blocks: list[list[float]]) -> float:
    """Return the standard deviation of a trial from pairs under one setting: each pair has one degree of freedom."""
    differences = np.array([block[1] - block[0] for block in blocks if len(block) >= 2])
    if not differences.size:
        return math.nan
    # The mean size of a normal difference is 2/√π standard deviations of a value; outliers weigh less than squared.
    return float(np.mean(np.abs(differences))) * math.sqrt(math.pi) / 2


def estimate(interval: Interval) -> Estimate:
    """Make the record of a ratio."""
    return Estimate(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        confidence=interval.confidence,
        unit="ratio",
        n=interval.n,
        method=interval.method,
    )


def ratio(found: Contrast, confidence: float, n: int) -> Estimate:
    """Make the record of a difference of log costs."""
    return estimate(found.shift(confidence, n).ratio)
