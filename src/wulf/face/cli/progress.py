"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

from wulf.base.nodeset import fold
from wulf.base.text import printable

_LOG = logging.getLogger("wulf")
#: Without a terminal a line this often [s]; failures are said at once.
LINE_EVERY_S = 10.0
#: So many nodes that have not answered are not named yet.
MANY = 8


class Counting(Protocol):
    """Takes how many are done, of how many, and which are not."""

    def __call__(self, done: int, total: int, missing: Collection[str] = ()) -> None:
        """Show it."""


@contextmanager
def counting(what: str) -> Iterator[Counting]:
    """Show how many of something are done, and for whom it waits: a bar on a terminal, nothing elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from wulf.page.escaping import CleanConsole

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[waiting]}"),
    )
    console = CleanConsole(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None, waiting="")
        yield lambda done, total, missing=(): bar.update(
            task, completed=done, total=total, waiting=waiting_for(missing)
        )


def note(text: str) -> None:
    """Say something before anything is shown."""
    sys.stderr.write(f"{printable(text)}\n")


def waiting_for(nodes: Collection[str]) -> str:
    """Return which nodes have not answered, when they are few."""
    return printable(f"waiting for {fold(nodes)}", 60) if 0 < len(nodes) <= MANY else ""


class Staged:
    """Shows what the work is at."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def __call__(self, text: str) -> None:
        """Show a new part of the work."""
        _LOG.info("%s", text)
        self._show(printable(text, 200))

    def note(self, text: str) -> None:
        """Show what should stay to be read."""
        note(text)


@contextmanager
def staging() -> Iterator[Staged]:
    """Show what is being done: a spinner on a terminal, nothing elsewhere."""
    from wulf.page.escaping import CleanConsole

    with CleanConsole(stderr=True, highlight=False).status("") as status:
        yield Staged(status.update)


class Display:
    """A bar with what is being done and how it stands; lines now and then where there is no terminal.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        from wulf.page.escaping import CleanConsole

        self._console = CleanConsole(stderr=True, highlight=False)
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

    def __call__(self, text: str) -> None:
        """Announce a new part of the work (`wulf.base.tool.Progress`)."""
        self.stage(text)

    def stage(self, text: str) -> None:
        """Announce a new part of the work; how it stands is shown at its first result."""
        _LOG.info("%s", text, extra={"shown": not self._live})
        self._last_line_s = float("-inf")
        self._bar.update(self._task, description=printable(text, 200))
        if not self._live:
            self._console.print(printable(text, 500), markup=False)

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""
        _LOG.info("%s", text, extra={"shown": True})
        self._console.print(printable(text), markup=False)

    def show(self, text: str, spent_s: float, left_s: float, *, lines: bool = True) -> None:
        """Show how it stands; without a terminal by a line now and then, if `lines`."""
        total = max(spent_s + left_s, 1e-9)
        self._bar.update(self._task, total=total, completed=spent_s, state=printable(text, 200))
        if lines and not self._live and time.monotonic() - self._last_line_s >= LINE_EVERY_S:
            self._last_line_s = time.monotonic()
            self._console.print(printable(text, 300), markup=False)


def duration(seconds: float) -> str:
    """Time that is left: ``40 s``, ``12 min``, ``30 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 24 * 3600 else f"{seconds / 3600:.0f} h"
