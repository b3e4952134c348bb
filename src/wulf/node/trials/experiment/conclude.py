"""From what a search knows to the effects that are reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from wulf.base.records import Effect, Estimate, Phase, TunePlan, Values, Verdict
from wulf.node.trials.experiment import choice, power
from wulf.node.trials.experiment.evidence import OBJECTIVE, Arm, Model
from wulf.node.trials.experiment.results import Known, is_harm
from wulf.stats.core.linear import METHOD, Contrast

#: Columns of the log costs → effect on their mean; None where it cannot be told.
Reading = Callable[[Sequence[int]], Contrast | None]


def effects(so_far: Known) -> list[Effect]:
    """Return what the trials so far say: of each value alone and on top of what is kept, and of all kept ones."""
    screened = so_far.screened()
    known: dict[tuple[int, ...], dict[Arm, Contrast]] = {OBJECTIVE: screened}

    def alone(arm: Arm) -> Reading:
        def read(figure: Sequence[int]) -> Contrast | None:
            columns = tuple(figure)
            if columns not in known:
                known[columns] = so_far.screened(columns)
            return known[columns].get(arm)

        return read

    found = [_effect(so_far, "screening", arm, {}, dict([arm]), alone(arm)) for arm in screened]
    found += [_nothing(so_far, arm) for arm in so_far.failing.out if arm not in screened]
    kept = so_far.state.tested
    again = [(knob, value) for knob, values in so_far.again.items() for value in values]
    read = _Models(so_far)
    for knob, value in again:
        base = choice.without(kept, knob)
        found += _modelled(so_far, "forward", (knob, value), base, {**base, knob: value}, read)
    for knob, value in kept.items():
        found += _modelled(so_far, "backward", (knob, value), kept, choice.without(kept, knob), read)
    whole = confirmation(so_far)
    return found if whole is None else [*found, whole]


def confirmation(so_far: Known) -> Effect | None:
    """Return the comparison of what was found with the original settings, in fresh trials."""
    tested = so_far.state.tested
    if not tested or so_far.confirmed() is None:
        return None
    return _effect(so_far, "confirmation", ("", ""), {}, tested, so_far.confirmed)


class _Models:
    """The models of all figures, each fitted once."""

    def __init__(self, so_far: Known) -> None:
        self._so_far = so_far
        self._known: dict[tuple[int, ...], Model | None] = {}

    def __call__(self, figure: Sequence[int]) -> Model | None:
        columns = tuple(figure)
        if columns not in self._known:
            self._known[columns] = self._so_far.model(columns)
        return self._known[columns]


def _modelled(
    so_far: Known, phase: Phase, arm: Arm, base: Values, tried: Values, models: _Models
) -> list[Effect]:
    model = models(OBJECTIVE)
    if model is None or arm not in model.columns or arm in so_far.failing.out:
        return []

    def read(figure: Sequence[int]) -> Contrast | None:
        found = models(figure)
        return found.contrast(tried, base) if found is not None and arm in found.columns else None

    return [_effect(so_far, phase, arm, base, tried, read)]


def _effect(
    so_far: Known,
    phase: Phase,
    arm: Arm,
    base: Values,
    tried: Values,
    read: Reading,
) -> Effect:
    """Make the record of an effect; `read` gives what it does to each figure."""
    plan, confirming = so_far.plan, phase == "confirmation"
    contrast = read(OBJECTIVE)
    assert contrast is not None, "what has no objective is no effect"
    p_value = contrast.p_value()
    adjusted = p_value if confirming else min(1.0, p_value * len(so_far.arms))
    limit = power.UNCONFIRMED if confirming else plan.false_discovery
    with_it, without_it = so_far.evidence.counts(tried if confirming else dict([arm]), fresh=confirming)
    metrics, patterns, harmed = _figures(so_far, read)
    return Effect(
        phase=phase,
        round=0,
        knob=arm[0],
        value=arm[1],
        base=base,
        tried=tried,
        ratio=so_far.ratio(contrast),
        p_value=p_value,
        p_adjusted=adjusted,
        verdict=verdict(contrast, adjusted <= limit, plan),
        blocks=min(with_it, without_it),
        trials=with_it,
        failed=so_far.failing.failed[arm],
        metrics=metrics,
        patterns=patterns,
        harmed=harmed,
        note=so_far.failing.out.get(arm, ""),
    )


def verdict(found: Contrast, sure: bool, plan: TunePlan) -> Verdict:
    """Say what an effect is; see the module `wulf.stats.estimate.comparison` for what the words mean."""
    low, high = found.interval(plan.confidence)
    margin = math.log1p(plan.margin)
    if -margin <= low and high <= margin:
        return "no difference"
    if not sure or abs(found.value) <= margin:
        return "no decision"
    return "worse" if found.value > 0 else "better"


def _figures(so_far: Known, read: Reading) -> tuple[dict[str, Estimate], dict[str, Verdict], list[str]]:
    """Return the ratio of every metric as a cost, the verdict of every pattern, and the guards that became worse."""
    plan, costs = so_far.plan, so_far.evidence.costs
    ratios: dict[str, Estimate] = {}
    harmed = []
    for column, metric in enumerate(costs.metrics, start=1):
        found = read((column,))
        if found is None:
            continue
        ratios[metric.name] = so_far.ratio(found)
        if metric.guard and is_harm(found, plan):
            harmed.append(metric.name)
    columns = costs.patterns()
    patterns = {}
    for pattern, figure in columns.items():
        found = read(figure)
        if found is not None:
            sure = found.p_value() * len(columns) <= 2 * power.UNCONFIRMED
            patterns[pattern] = verdict(found, sure, plan)
    return ratios, patterns, harmed


def _nothing(so_far: Known, arm: Arm) -> Effect:
    """Make the record of a value that never gave a figure."""
    plan = so_far.plan
    return Effect(
        phase="screening",
        round=0,
        knob=arm[0],
        value=arm[1],
        base={},
        tried=dict([arm]),
        ratio=Estimate(
            value=1.0, low=None, high=None, confidence=plan.confidence, unit="ratio", n=0, method=METHOD
        ),
        p_value=1.0,
        p_adjusted=1.0,
        verdict="no decision",
        blocks=0,
        trials=so_far.failing.succeeded[arm],
        failed=so_far.failing.failed[arm],
        note=so_far.failing.out[arm],
    )
