"""What a search decided so far, and the path that led there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from wulf.base.records import Control, Estimate, PathStep, Phase, Values

Action = Literal["start", "keep", "drop", "refine", "confirm", "revert"]


@dataclass
class State:
    """What is known so far."""

    control: Control | None = None
    path: list[PathStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: What seems best, not proven until it is confirmed.
    kept: Values = field(default_factory=dict)
    #: Whether what was found by the search was put to the test of fresh trials; and what came out.
    tested: Values = field(default_factory=dict)
    confirmed: bool = False
    ended: Literal["", "complete", "budget", "failed"] = ""

    def step(
        self,
        action: Action,
        phase: Phase,
        setting: Values,
        change: tuple[str, str] = ("", ""),
        ratio: Estimate | None = None,
        reason: str = "",
    ) -> None:
        """Note a step of the search."""
        self.path.append(
            PathStep(
                phase=phase,
                round=sum(step.phase == phase for step in self.path),
                action=action,
                knob=change[0],
                value=change[1],
                setting=dict(setting),
                ratio=ratio,
                reason=reason,
            )
        )
