"""Which settings to keep, by what the trials say of all of them at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from wulf.base.records import Values
from wulf.node.trials.experiment.evidence import OBJECTIVE, Arm, Evidence, Joint, Model

#: Chance that two values are said not to add up though they do, shared by all pairs.
NOT_ADDITIVE = 0.02
#: Pairs of knobs that may be so.
MOST_JOINTS = 4
#: p value at which a guard metric is called worse.
HARM = 0.01

#: Knob → values that are worth keeping.
Survivors = Mapping[str, Sequence[str]]


def with_joints(
    evidence: Evidence, arms: Sequence[Arm], survivors: Survivors, figure: Sequence[int] = OBJECTIVE
) -> Model | None:
    """Fit all arms, and those pairs of the survivors whose effects plainly do not add up."""
    pairs: list[Joint] = [
        frozenset([(first, a), (second, b)])
        for first, second in itertools.combinations(survivors, 2)
        for a in survivors[first]
        for b in survivors[second]
    ]
    joints: list[Joint] = []
    found = evidence.model(arms, (), figure)
    while found is not None and len(joints) < MOST_JOINTS:
        known = found
        left = [pair for pair in pairs if pair not in joints and _both(known, pair)]
        strongest = max(left, key=lambda pair: abs(known.addition(pair).t), default=None)
        if strongest is None or known.addition(strongest).p_value() > NOT_ADDITIVE / len(pairs):
            break
        larger = evidence.model(arms, [*joints, strongest], figure)
        if larger is None:
            break
        joints.append(strongest)
        found = larger
    return found


def _both(model: Model, pair: Joint) -> bool:
    """Whether both were set together in more trials than one."""
    made = [one for row in model.rows for one in row.settings]
    return sum(all(one.get(knob) == value for knob, value in pair) for one in made) > 1


def best(
    model: Model, survivors: Survivors, error: float, margin: float, allowed: Callable[[Values], bool]
) -> Values:
    """Return the setting that is the best of all combinations, without knobs that are not proven in it.

    Parameters
    ----------
    error
        Chance that one of them is kept though the set is as good without it.
    margin
        Change that does not matter, as a share.
    allowed
        Whether a setting may be kept.
    """
    choices = [[None, *values] for values in survivors.values()]
    settings = (
        {knob: value for knob, value in zip(survivors, chosen, strict=True) if value is not None}
        for chosen in itertools.product(*choices)
    )
    kept = min(filter(allowed, settings), key=model.effect, default={})
    while kept:
        weakest = max(kept, key=lambda knob: _doubt(model, kept, knob, margin))
        if _doubt(model, kept, weakest, margin) <= error:
            break
        kept = without(kept, weakest)
    return kept


def _doubt(model: Model, kept: Values, knob: str, margin: float) -> float:
    """One-sided p value of "the set is as good without it"; 1 where what it gives does not matter."""
    found = model.contrast(kept, without(kept, knob))
    if found.value > -math.log1p(margin):
        return 1.0
    return found.p_value() / 2


def without(setting: Values, knob: str) -> Values:
    """Return the setting with the original value of a knob."""
    return {name: value for name, value in setting.items() if name != knob}
