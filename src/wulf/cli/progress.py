"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wulf.procedure.measure import State
from wulf.procedure.tuning.loop import State as SearchState
from wulf.records import TuneManifest
from wulf.text import printable
from wulf.tune import budget
from wulf.units import format_estimate

#: Without a terminal a line this often [s]; failures are said at once.
LINE_EVERY_S = 10.0


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of something are done: a bar on a terminal, nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def staging() -> Iterator[Callable[[str], None]]:
    """Show what is being done: a spinner on a terminal, nothing elsewhere."""
    with Console(stderr=True, highlight=False).status("") as status:
        yield lambda text: status.update(printable(text, 200))


class _Display:
    """A bar with what is being done and how it stands; lines now and then where there is no terminal.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = sys.stderr.isatty()
        self._last_line_s = float("-inf")
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None, state="")

    def __enter__(self) -> Self:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def stage(self, text: str) -> None:
        """Announce a new part of the work."""
        self._bar.update(self._task, description=printable(text, 200))
        if not self._live:
            self._console.print(printable(text, 500), markup=False)

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""
        self._console.print(printable(text), markup=False)

    def _show(self, text: str, spent_s: float, left_s: float) -> None:
        """Show how it stands."""
        total = max(spent_s + left_s, 1e-9)
        self._bar.update(self._task, total=total, completed=spent_s, state=printable(text, 200))
        if not self._live and time.monotonic() - self._last_line_s >= LINE_EVERY_S:
            self._last_line_s = time.monotonic()
            self._console.print(printable(text, 300), markup=False)


class MeasureProgress(_Display):
    """Shows where a measurement stands."""

    def launched(self, state: State) -> None:
        """Show a finished launch and the time left."""
        launch = state.last.launch
        if launch.status == "failed":
            self.note(f"launch {launch.id} failed: {launch.error}")
        text = (
            f"launch {state.launches}: {launch.op} {'–'.join(launch.pair)} · "
            f"{state.streams_done}/{state.streams} precise · about {_duration(state.left_s)} left"
        )
        self._show(text, state.spent_s, state.left_s)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class TuneProgress(_Display):
    """Shows where a search stands."""

    def __init__(self) -> None:
        super().__init__()
        self._phase = ""

    def tried(self, state: SearchState) -> None:
        """Show what is being tested, the effect so far and the time left."""
        trial, forecast = state.last, state.forecast
        if trial.status == "failed":
            setting = ", ".join(f"{knob}={value}" for knob, value in trial.setting.items()) or "original"
            self.note(f"trial {trial.index} ({setting}) failed: {trial.error}")
        if forecast.phase is not None and forecast.phase != self._phase:
            self._phase = forecast.phase
            self.stage(self._phase)
            self._last_line_s = float("-inf")
        left_s = min(forecast.time_left_s, state.left_s)
        words = [f"trial {trial.index + 1}"]
        if forecast.testing:
            words.append(f"{len(forecast.testing)} tested: {', '.join(forecast.testing[:2])}")
        if forecast.effect is not None:
            words.append(f"{forecast.leader}: {format_estimate(forecast.effect)}")
        words.append(f"about {_duration(left_s)} left")
        text = " · ".join(words)
        self._show(text, state.spent_s, left_s)

    def begun(self, path: Path, manifest: TuneManifest) -> None:
        """Say where the run is, what is going to be tried, and how long it takes."""
        plan = manifest.plan
        self.note(f"run: {path}")
        for candidate in plan.candidates:
            self.note(f"  {candidate.knob}: {candidate.original} → {', '.join(candidate.values)}")
        count, minutes = len(plan.candidates), plan.budget_s / 60
        self.note(f"{count} candidates, {plan.trial_s:.1f} s a trial, {minutes:.0f} min at most")
        needed_s = budget.least_s(plan)
        if needed_s > plan.budget_s:
            self.note(
                f"to test all of them takes at least {needed_s / 60:.0f} min: some will be left out, the least "
                "promising first (--budget gives more time, --knobs names fewer)"
            )

    def interrupted(self, path: Path) -> None:
        """Say how to go on."""
        self.note(f"interrupted; the nodes are put back, the results kept: wulf tune --resume {path}")
