"""Which settings to keep, by what the trials say of all of them at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from wulf.base.records import Values
from wulf.node.trials.experiment.evidence import OBJECTIVE, PLAINLY, Arm, Evidence, Joint, Model

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
    made = 0
    for row in model.rows:
        for one in row.settings:
            made += all([one.get(knob) == value for knob, value in pair])
            if made > 1:
                return True
    return False


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
        Whether what is left of a setting may be kept. A knob that is not proven may have covered what another one
        harms: so the setting is asked for after that knob is gone.
    """
    choices = [[None, *values] for values in survivors.values()]
    settings = (
        {knob: value for knob, value in zip(survivors, chosen, strict=True) if value is not None}
        for chosen in itertools.product(*choices)
    )
    left: set[frozenset[Arm]] = set()
    for setting in sorted(settings, key=model.effect):
        kept = _proven(model, setting, error, margin)
        arms = frozenset(kept.items())
        if arms not in left and allowed(kept):
            return kept
        left.add(arms)
    return {}


def _proven(model: Model, setting: Values, error: float, margin: float) -> Values:
    """Return a setting without the knobs that are not proven in it."""
    kept = setting
    while kept:
        weakest = max(kept, key=lambda knob: _doubt(model, kept, knob, margin))
        if _doubt(model, kept, weakest, margin) <= error:
            break
        kept = without(kept, weakest)
    return kept


def _doubt(model: Model, kept: Values, knob: str, margin: float) -> float:
    """One-sided p value of "the set is as good without it"; 1 or more where its gain is denied or does not matter."""
    rest = without(kept, knob)
    found = model.contrast(kept, rest)
    if found.value > -math.log1p(margin):
        return 2.0 + found.value
    return found.p_value() / 2 if model.agrees(kept, rest, PLAINLY) else 1.0


def without(setting: Values, knob: str) -> Values:
    """Return the setting with the original value of a knob."""
    return {name: value for name, value in setting.items() if name != knob}
