"""What the A/A control says: how much trials scatter, what a comparison can show, how many blocks it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from wulf.records import Control, Estimate, TunePlan
from wulf.stats.intervals import Interval
from wulf.stats.paired import paired_shift
from wulf.stats.trend import dependence

Floats = NDArray[np.float64]

#: Share of the cases in which the smallest effect is shown.
POWER = 0.9
#: Standard error of a pseudo-median against that of a mean, for normal values: √(π / 3).
PSEUDO_MEDIAN = 1.023
#: Blocks between the two looks: what is proven by the first costs no more, what is not gets so many more …
SECOND_LOOK = 6
#: … and a first look is worth its price when so many can be saved.
WORTH_A_LOOK = 3
#: Significance at which trials of the same setting are said to depend on each other.
DEPENDENT = 0.01


@dataclass(frozen=True)
class Rules:
    """Numbers that hold for every comparison of a search."""

    plan: TunePlan
    #: Pairs of values that decide a comparison.
    blocks: int
    #: Comparisons among which one effect must stand out.
    comparisons: int
    #: Scale of the difference of two trials of a block, in logarithms.
    noise: float

    @property
    def interim(self) -> int:
        """Pairs at which a comparison may end earlier; 0 where that would save next to nothing."""
        first = fewest_blocks(self.plan, self.comparisons, looks=2)
        return first if first <= self.blocks - WORTH_A_LOOK else 0

    @property
    def looks(self) -> int:
        """How often a comparison can be decided in favour of an effect; its error probability is divided by it."""
        return 2 if self.interim else 1

    @property
    def target(self) -> float:
        """Smallest effect that a comparison of `blocks` can show, as a difference of logarithms."""
        return self.target_at(self.noise)

    @property
    def usual_blocks(self) -> int:
        """Blocks that a clear effect takes."""
        return self.interim or self.blocks

    def target_at(self, noise_: float) -> float:
        """Smallest effect under another noise; an effect inside the margin is none."""
        significance = self.plan.false_discovery / self.comparisons / self.looks
        return max(smallest(noise_, self.blocks, significance), -math.log1p(-self.plan.margin))

    @property
    def most_blocks(self) -> int:
        """Blocks after which a comparison ends though failed or contaminated trials left it short of pairs."""
        return self.blocks + self.blocks // 2

    def limit(self, pairs: int) -> float:
        """Difference of logarithms that the same setting shows against itself once in twenty comparisons."""
        return float(norm.ppf(0.975)) * self.noise * PSEUDO_MEDIAN / math.sqrt(pairs)


def scale(deviations: Floats) -> float:
    """Scale of differences: the 68 % quantile of their sizes, which is the standard deviation of normal ones.

    Unlike the median deviation it sees a second mode that holds a fifth of the trials; unlike the standard
    deviation it does not see outliers, and neither does the signed-rank test.
    """
    return float(np.quantile(np.abs(deviations), 0.6827)) if deviations.size else 0.0


def noise(logs: Floats, length: int) -> float:
    """Scale of the difference of two trials that stand in a block of `length`, from trials of one setting.

    Parameters
    ----------
    logs
        Log objective in time order, shape (n,), without NaN.
    length
        Trials in a block: two of them are (length + 1) / 3 apart on average, so that a random walk counts.
    """
    lags = {1, min(max(round((length + 1) / 3), 1), max(logs.size // 3, 1))}
    return max(scale(logs[lag:] - logs[:-lag]) for lag in lags)


@lru_cache(maxsize=4096)
def _standard_errors(blocks: int, significance: float) -> float:
    """Effect that is shown with `POWER`, in standard errors."""
    if blocks < 2:
        return math.inf
    return float(student.ppf(1 - significance / 2, blocks - 1) + norm.ppf(POWER))


def smallest(noise_: float, blocks: int, significance: float) -> float:
    """Smallest difference of logarithms that so many blocks show in nine of ten cases.

    By the t test's power, which the signed-rank test's equals but for the constant `PSEUDO_MEDIAN`
    (Lehmann 1975, "Nonparametrics", section 4.3).
    """
    return _standard_errors(blocks, significance) * noise_ * PSEUDO_MEDIAN / math.sqrt(blocks)


def fewest_blocks(plan: TunePlan, comparisons: int, looks: int = 1) -> int:
    """Fewest blocks whose smallest possible p value passes Benjamini–Hochberg over so many comparisons."""
    needed = math.ceil(math.log2(2 * looks * max(comparisons, 1) / plan.false_discovery))
    return min(max(needed, plan.min_blocks), plan.max_blocks)


def wanted_blocks(plan: TunePlan, noise_: float, comparisons: int) -> int:
    """Blocks from which the margin can be shown, at least `SECOND_LOOK` after the first look, at most the plan's."""
    margin = -math.log1p(-plan.margin)
    least = min(fewest_blocks(plan, comparisons, looks=2) + SECOND_LOOK, plan.max_blocks)
    for blocks in range(least, plan.max_blocks):
        if smallest(noise_, blocks, plan.false_discovery / comparisons / 2) <= margin:
            return blocks
    return plan.max_blocks


def control(logs: list[Floats], rules_: Rules) -> Control | None:
    """Conclude from the A/A blocks; None where there is no block of two values.

    Parameters
    ----------
    logs
        Log objectives of each block, in time order, without NaN.
    """
    pairs = np.array([block[:2] for block in logs if len(block) >= 2])
    if not len(pairs):
        return None
    differences = pairs[:, 1] - pairs[:, 0]
    found = paired_shift(differences, rules_.plan.confidence)
    within = differences / math.sqrt(2)
    dependent = dependence(differences)
    return Control(
        blocks=len(pairs),
        trials=2 * len(pairs),
        ratio=estimate(found.ratio),
        spread=math.expm1(1.4826 * float(np.median(np.abs(within - np.median(within))))),
        smallest_effect=-math.expm1(-rules_.target),
        effect_blocks=rules_.blocks,
        # A drift from block to block does no harm; one that is seen inside the blocks does.
        drifting=found.p_value < DEPENDENT or (dependent is not None and dependent < DEPENDENT),
    )


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
