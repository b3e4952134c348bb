"""What mending and tuning brought together, from as found to as left.  Pure.

Either is measured in turn, with and without what it changed, in trials of its own: what they do to the logarithm of a
time is independent and adds up. The interval of the sum is made of both by recovering their variances: the distances
of the bounds from the values add up as squares (Zou and Donner 2008, "Construction of confidence intervals about
effect measures: a general approach", Statistics in Medicine 27, 1693–1702). What lies between the two in time is in
neither. Only what was measured between the same pairs is put together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy

from wulf.base.nodeset import fold
from wulf.base.records import (
    Change,
    Effect,
    Estimate,
    FigureChange,
    Mending,
    Metric,
    Pair,
    Trial,
    TunePlan,
    Tuning,
    Values,
    Verdict,
    Whole,
    Workload,
)
from wulf.stats.core.linear import METHOD as BLOCKS
from wulf.stats.core.linear import fit

METHOD = "sum of independent effects, variances recovered (Zou–Donner)"
#: Chance that any figure is called better or worse though it is not.
SIGNIFICANCE = 0.05


def whole(
    mended: Mending | None, workload: Workload, plan: TunePlan, trials: Sequence[Trial], tuned: Tuning
) -> Whole | None:
    """Put together what a mending and a tuning brought; None where nothing was mended.

    Parameters
    ----------
    workload, plan, trials, tuned
        Of the tuning, which began with what was mended.
    """
    if mended is None or mended.outcome is None or not mended.outcome.kept:
        return None
    effects = {effect.metric: effect for effect in mended.effects}
    times = [metric for metric in plan.metrics if metric.better == "lower"]
    names = list(dict.fromkeys([*effects, *(metric.name for metric in times)]))
    tuning = _Tuned(mended.pairs, workload, times, plan, trials, tuned.confirmation if tuned.kept else None)
    figures = []
    for name in names:
        effect = effects.get(name)
        by_mending = (
            Change(ratio=effect.ratio, verdict=effect.verdict)
            if effect is not None
            else _unknown(_unmeasured(mended))
        )
        by_tuning = tuning.change(name, len(names)) if tuned.kept else None
        both = together(by_mending, by_tuning, len(names), plan.margin)
        figures.append(FigureChange(metric=name, mending=by_mending, tuning=by_tuning, whole=both))
    return Whole(pairs=mended.pairs, figures=figures)


def together(first: Change, second: Change | None, comparisons: int, margin: float) -> Change:
    """Return what two changes make, one after the other, as one of so many comparisons."""
    if second is None:
        return first
    if first.ratio is None or second.ratio is None:
        return _unknown(first.reason or second.reason)
    parts = [first.ratio, second.ratio]
    return Change(ratio=_sum(parts), verdict=_verdict(parts, comparisons, margin))


def _unknown(reason: str) -> Change:
    return Change(ratio=None, verdict="no decision", reason=reason)


def _unmeasured(mended: Mending) -> str:
    """Return why it is not known what a mending did to a figure."""
    if mended.unmeasured:
        return mended.unmeasured
    if mended.failed_before and mended.failed_before == mended.blocks:
        return "as found nothing could be measured"
    return "it was not measured with and without the mending"


def _sum(parts: Sequence[Estimate]) -> Estimate:
    """Return the product of independent ratios."""
    value = math.prod(part.value for part in parts)
    low, high = _bounds(parts, [1.0] * len(parts))
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=min(part.confidence for part in parts),
        unit="ratio",
        n=min(part.n for part in parts),
        method=METHOD,
    )


def _bounds(parts: Sequence[Estimate], wider: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the bounds of a product of ratios, each with an interval so many times as wide."""
    value = sum(math.log(part.value) for part in parts)
    down = up = 0.0
    for part, times in zip(parts, wider, strict=True):
        if not part.low or not part.high:
            return None, None
        down += (times * math.log(part.value / part.low)) ** 2
        up += (times * math.log(part.high / part.value)) ** 2
    return math.exp(value - math.sqrt(down)), math.exp(value + math.sqrt(up))


def _verdict(parts: Sequence[Estimate], comparisons: int, margin: float) -> Verdict:
    """Say what a product of ratios means, as one of so many comparisons (Bonferroni)."""
    low, high = _bounds(parts, [1.0] * len(parts))
    if low is None or high is None:
        return "no decision"
    if low >= 1 - margin and high <= 1 + margin:
        return "no difference"
    low, high = _bounds(parts, [_widening(part, comparisons) for part in parts])
    if low is None or high is None or low <= 1 <= high:
        return "no decision"
    return "better" if high < 1 else "worse"


def _widening(part: Estimate, comparisons: int) -> float:
    """Return how many times as wide an interval is that holds together with others, as Student's t has it."""
    degrees = max(part.n - 1, 1)
    usual, shared = ((1 - part.confidence) / 2, SIGNIFICANCE / 2 / comparisons)
    return float(scipy.stats.t.isf(shared, degrees) / scipy.stats.t.isf(usual, degrees))


class _Tuned:
    """What a tuning did to each figure between some pairs."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        workload: Workload,
        metrics: Sequence[Metric],
        plan: TunePlan,
        trials: Sequence[Trial],
        confirmation: Effect | None,
    ) -> None:
        self._metrics = {metric.name: metric for metric in metrics if metric.figure is not None}
        self._plan = plan
        self._confirmation = confirmation
        self._trials = [one for one in trials if one.phase == "confirmation" and one.status == "ok"]
        measured = {fold(place) for place in workload.places}
        wanted = {fold(pair) for pair in pairs}
        #: Pairs that are chosen from those of a trial; empty where they are all of them.
        self._places = wanted if wanted != measured else set()
        self._elsewhere = not wanted <= measured

    def change(self, name: str, comparisons: int) -> Change:
        """Return what it did to a figure, as one of so many comparisons."""
        if self._confirmation is None:
            return _unknown("what was kept was not compared with what was there before")
        if name not in self._metrics:
            return _unknown("the tuning did not measure it")
        if self._elsewhere:
            return _unknown("the tuning did not measure between the same pairs")
        ratio = self._of_places(name) if self._places else self._confirmation.metrics.get(name)
        if ratio is None:
            return _unknown("too few trials have it between the same pairs")
        return Change(ratio=ratio, verdict=_verdict([ratio], comparisons, self._plan.margin))

    def _of_places(self, name: str) -> Estimate | None:
        """Return the effect between some of the pairs, from the blocks of the confirmation."""
        assert self._confirmation is not None
        before, after = (
            self._blocks(name, one) for one in (self._confirmation.base, self._confirmation.tried)
        )
        logs = [float(np.mean(after[block]) - np.mean(before[block])) for block in before if block in after]
        if len(logs) < 2:
            return None
        found = fit(np.ones((len(logs), 1)), logs).contrast([1.0]).shift(self._plan.confidence, len(logs))
        return Estimate(
            value=found.ratio.value,
            low=found.ratio.low,
            high=found.ratio.high,
            confidence=found.ratio.confidence,
            unit="ratio",
            n=len(logs),
            method=BLOCKS,
        )

    def _blocks(self, name: str, setting: Values) -> Mapping[tuple[int, int], list[float]]:
        """Return the mean logarithm over the pairs in each trial of a setting, by block."""
        found: dict[tuple[int, int], list[float]] = {}
        for trial in self._trials:
            values = [trial.by_place.get(place, {}).get(name, 0.0) for place in self._places]
            if trial.setting == setting and all(value > 0 for value in values):
                found.setdefault((trial.round, trial.block), []).append(float(np.mean(np.log(values))))
        return found
