"""In which order the settings of a block are measured, and what changing between them costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wulf.records import Candidate, Phase, TunePlan, Values

Key = tuple[tuple[str, str], ...]
_PHASES: tuple[Phase, ...] = ("control", "screening", "refinement", "forward", "backward", "confirmation")


def key(setting: Values) -> Key:
    """Make a setting hashable."""
    return tuple(sorted(setting.items()))


def expensive(plan: TunePlan) -> set[str]:
    """Knobs whose change takes longer than a trial."""
    return {candidate.knob for candidate in plan.candidates if candidate.toggle_s > plan.trial_s}


def toggle_s(candidates: dict[str, Candidate], before: Values, after: Values) -> float:
    """Time that changing from one setting to another takes [s]."""
    changed = {knob for knob, _ in set(before.items()) ^ set(after.items())}
    return sum(candidates[knob].toggle_s for knob in changed if knob in candidates)


def random_order(
    plan: TunePlan, phase: Phase, round_: int, block: int, settings: Sequence[Values]
) -> list[Values]:
    """Random order of a block's settings; those that share the values of expensive knobs stay together.

    The order depends on nothing but the plan's seed and the arguments, so that a search can be continued.
    """
    rng = np.random.default_rng([plan.seed, _PHASES.index(phase), round_, block])
    dear = expensive(plan)
    groups: dict[Key, list[Values]] = {}
    for setting in settings:
        groups.setdefault(key({k: v for k, v in setting.items() if k in dear}), []).append(setting)
    parts = list(groups.values())
    return [parts[i][j] for i in rng.permutation(len(parts)) for j in rng.permutation(len(parts[i]))]
