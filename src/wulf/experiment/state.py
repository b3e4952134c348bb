"""What a search knows so far, and the path that led there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from wulf.experiment.power import Rules
from wulf.records import Control, Effect, Estimate, PathStep, Phase, Values

Action = Literal["start", "keep", "drop", "refine", "confirm", "revert"]
CHAINED = "product of the steps' ratios, half-widths added in quadrature"


@dataclass
class State:
    """What is known so far."""

    control: Control | None = None
    rules: Rules | None = None
    effects: list[Effect] = field(default_factory=list)
    path: list[PathStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: What is set from here on, not proven until it is confirmed.
    kept: Values = field(default_factory=dict)
    confirmation: Effect | None = None
    confirmed: bool = False
    ended: Literal["", "complete", "budget", "failed"] = ""
    #: Of all trials, in time order [s].
    durations: list[float] = field(default_factory=list)
    #: Product of the steps' ratios so far.
    chain: Estimate | None = None

    def step(
        self, action: Action, phase: Phase, round_: int, knob: str = "", value: str = "", *, reason: str = ""
    ) -> None:
        """Note a step whose effect was not measured by itself; the chain of ratios goes on behind it."""
        self._append(action, phase, round_, knob, value, None, reason)

    def measured(self, action: Action, knob: str, value: str, effect: Effect, reason: str) -> None:
        """Note a step and chain its effect to those before."""
        self.chain = effect.ratio if self.chain is None else _product(self.chain, effect.ratio)
        self._append(action, effect.phase, effect.round, knob, value, self.chain, reason)

    def confirm(self, effect: Effect) -> None:
        """Note that the set is proven, and keep it."""
        self.confirmation, self.confirmed = effect, True
        self._append("confirm", effect.phase, effect.round, "", "", effect.ratio, "")

    def _append(
        self,
        action: Action,
        phase: Phase,
        round_: int,
        knob: str,
        value: str,
        ratio: Estimate | None,
        reason: str,
    ) -> None:
        self.path.append(
            PathStep(
                phase=phase,
                round=round_,
                action=action,
                knob=knob,
                value=value,
                setting=dict(self.kept),
                ratio=ratio,
                reason=reason,
            )
        )


def _product(first: Estimate, second: Estimate) -> Estimate:
    """Multiply the ratios of two comparisons made in different blocks."""
    value = first.value * second.value
    widths = [
        math.log(ratio.high / ratio.low)
        for ratio in (first, second)
        if ratio.low is not None and ratio.high is not None
    ]
    half = math.hypot(*widths) / 2 if len(widths) == 2 else None
    return Estimate(
        value=value,
        low=None if half is None else value * math.exp(-half),
        high=None if half is None else value * math.exp(half),
        confidence=second.confidence,
        unit="ratio",
        n=min(first.n, second.n),
        method=CHAINED,
    )
