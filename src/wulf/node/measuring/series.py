"""A series over time: a block of launches every so often, until its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from wulf.base.records import Series

#: While it waits for the next block, the time left is shown this often [s].
SHOWN_EVERY_S = 1.0


class Watcher(Protocol):
    """Shows a person what is being waited for."""

    def stage(self, text: str) -> None:
        """Announce a new part of the work."""

    def paused(self, until_next_s: float, spent_s: float, left_s: float) -> None:
        """Show the time until the next block, and how much of the series is over [s]."""


def time_zone() -> str:
    """Return what this machine calls its local time: ``CET (UTC+01:00)``."""
    now = datetime.now().astimezone()
    return f"{now:%Z} (UTC{now.isoformat()[-6:]})"


def spent_s(series: Series) -> float:
    """Time since the series began [s], pauses and interruptions included."""
    return max(time.time() - datetime.fromisoformat(series.begun_at).timestamp(), 0.0)


def measure(series: Series, block: Callable[[], None], watcher: Watcher, *, begun: bool) -> None:
    """Make a block at each of the times that are still to come.

    The first one of a new series is made at once. A time that has gone by, in an interruption or because the block
    before took longer, is not made up for: what is measured at another time is another thing.

    Parameters
    ----------
    block
        Measures one block.
    begun
        The series was interrupted and goes on.
    """
    number = next_block(series) if begun else 0
    while number < series.blocks:
        wait(series, number, watcher)
        watcher.stage(f"block {number + 1} of {series.blocks}")
        block()
        number = max(next_block(series), number + 1)


def next_block(series: Series) -> int:
    """Return the number of the next block, from 0."""
    return math.ceil(spent_s(series) / series.every_s)


def wait(series: Series, number: int, watcher: Watcher) -> None:
    """Wait until a block is due."""
    due_s = number * series.every_s
    left_s = due_s - spent_s(series)
    if left_s > 0:
        at = datetime.fromtimestamp(time.time() + left_s).astimezone()
        watcher.stage(f"block {number + 1} of {series.blocks} begins at {at:%a %H:%M:%S}")
    while left_s > 0:
        over_s = spent_s(series)
        watcher.paused(left_s, over_s, series.for_s - over_s)
        time.sleep(min(left_s, SHOWN_EVERY_S))
        left_s = due_s - spent_s(series)
