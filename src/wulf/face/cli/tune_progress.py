"""Progress of a search for better settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wulf.base.text import count
from wulf.base.units import format_change, format_share
from wulf.face.cli.progress import Display, duration

if TYPE_CHECKING:
    from wulf.base.records import TuneManifest
    from wulf.node.trials.loop import State


class TuneProgress(Display):
    """Shows where a search stands."""

    def __init__(self) -> None:
        super().__init__()
        self._phase = ""

    def tried(self, state: State) -> None:
        """Show what is being tested, the effect so far and the time left."""
        trial, forecast = state.last, state.forecast
        if trial.status == "failed":
            setting = ", ".join(f"{knob}={value}" for knob, value in trial.setting.items()) or "original"
            self.note(f"trial {trial.index} ({setting}) failed: {trial.error}")
        if forecast.phase is not None and forecast.phase != self._phase:
            self._phase = forecast.phase
            self.stage(self._phase)
            if self._phase == "screening" and forecast.smallest is not None:
                seen = format_share(-forecast.smallest)
                self.note(
                    f"in this time a change of the objective of {seen} or more is found, in nine cases out of ten"
                )
        left_s = min(forecast.time_left_s, state.left_s)
        words = [f"trial {trial.index + 1}"]
        if forecast.testing:
            words.append(f"{len(forecast.testing)} set: {', '.join(forecast.testing[:2])}")
        if forecast.effect is not None:
            words.append(f"{forecast.leader}: {format_change(forecast.effect)} of the objective as a time")
        words.append(f"about {duration(left_s)} left")
        text = " · ".join(words)
        self.show(text, state.spent_s, left_s)

    def begun(self, path: Path, manifest: TuneManifest) -> None:
        """Say where the run is, what is going to be tried, and how long it takes."""
        plan = manifest.plan
        self.note(f"run: {path}")
        for candidate in plan.candidates:
            values = ", ".join(map(candidate.shown, candidate.values))
            where = f" (on {candidate.nodes} only)" if candidate.nodes else ""
            self.note(f"  {candidate.knob}: {candidate.original} → {values}{where}")
        minutes = plan.budget_s / 60
        self.note(
            f"{count(len(plan.candidates), 'candidate')}, {plan.trial_s:.1f} s a trial, {minutes:.0f} min at most"
        )

    def interrupted(self, path: Path) -> None:
        """Say how to go on."""
        self.note(f"interrupted; the nodes are put back, the results kept: wulf tune --resume {path}")
