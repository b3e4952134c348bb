"""From the differences of pairs to an effect with its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from wulf.experiment.costs import Costs, Floats
from wulf.experiment.power import Rules, estimate
from wulf.records import Estimate, Verdict
from wulf.stats.paired import METHOD, paired_shift
from wulf.stats.shift import Shift

#: Significance at which a guard metric is called worse: a guard is asked in every comparison of a setting. Where so
#: few pairs cannot have a p value as small, it is the smallest that they can have.
GUARD_SIGNIFICANCE = 0.01


def usable(differences: Floats, clean: NDArray[np.bool_], enough: int) -> Floats:
    """Pairs with an objective; clean ones where there are `enough`, otherwise all. Shape (pairs, 1 + metrics)."""
    known = np.isfinite(differences[:, 0])
    good = known & clean
    return np.asarray(differences[good if int(np.sum(good)) >= min(enough, int(np.sum(known))) else known])


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P values after Benjamini–Hochberg."""
    return [float(p) for p in false_discovery_control(np.asarray(p_values), method="bh")] if p_values else []


def shift(differences: Floats, rules: Rules) -> Shift | None:
    """Shift with the interval and the p value corrected for the looks that could have ended the comparison.

    By Bonferroni: a comparison that can be decided at either of two looks has twice the chance to err. None where
    nothing is left but missing values.
    """
    values = differences[np.isfinite(differences)]
    if not values.size:
        return None
    confidence = rules.plan.confidence
    found = paired_shift(values, 1 - (1 - confidence) / rules.looks)
    return Shift(found.ratio, min(1.0, found.p_value * rules.looks))


def verdict(found: Shift, p_adjusted: float, rules: Rules) -> Verdict:
    """Say what an effect is; see the module `wulf.estimate.compare` for what the words mean."""
    low, high = found.ratio.low, found.ratio.high
    if low is None or high is None:
        return "no decision"
    margin = rules.plan.margin
    if 1 - margin <= low and high <= 1 + margin:
        return "no difference"
    changed = p_adjusted <= rules.plan.false_discovery and (low > 1 or high < 1)
    if not changed or abs(math.log(found.ratio.value)) <= rules.limit(found.ratio.n):
        return "no decision"
    return "worse" if low > 1 else "better"


def of_metrics(costs: Costs, differences: Floats, rules: Rules) -> tuple[dict[str, Estimate], list[str]]:
    """Ratio of every metric as a cost, and the guards that became worse."""
    ratios: dict[str, Estimate] = {}
    harmed = []
    for column, metric in enumerate(costs.metrics, start=1):
        found = shift(differences[:, column], rules)
        if found is None:
            continue
        ratios[metric.name] = estimate(found.ratio)
        if metric.guard and _is_harm(found, rules):
            harmed.append(metric.name)
    return ratios, harmed


def _is_harm(found: Shift, rules: Rules) -> bool:
    interval = found.ratio
    significance = max(GUARD_SIGNIFICANCE, rules.looks * 2.0 ** (1 - interval.n))
    significant = interval.low is not None and interval.low > 1 and found.p_value <= significance
    return significant and math.log(interval.value) > max(
        math.log1p(rules.plan.margin), rules.limit(interval.n)
    )


def of_patterns(costs: Costs, differences: Floats, rules: Rules) -> dict[str, Verdict]:
    """Verdict over the metrics of every pattern, Benjamini–Hochberg over the patterns."""
    shifts = {
        pattern: shift(differences[:, columns].mean(axis=1), rules)
        for pattern, columns in costs.patterns().items()
    }
    known = {pattern: found for pattern, found in shifts.items() if found is not None}
    p_values = adjusted([found.p_value for found in known.values()])
    return {
        pattern: verdict(found, p, rules) for (pattern, found), p in zip(known.items(), p_values, strict=True)
    }


def nothing(confidence: float) -> Estimate:
    """Make the ratio of a comparison without a single pair: 1, without bounds."""
    return Estimate(value=1.0, low=None, high=None, confidence=confidence, unit="ratio", n=0, method=METHOD)
