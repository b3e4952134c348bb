"""Times of day, from ``--every`` and ``--window``, as systemd and cron write them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from wulf.base.errors import UsageError
from wulf.base.text import printable
from wulf.base.units import parse_duration

MINUTES_A_DAY = 1440
#: Anything shorter is not a watch but a load.
SHORTEST_MINUTES = 10
_WINDOW = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")
_WEEK_DAYS = 7
#: When nothing else is said: most sites are quiet then, and cron's own jobs are over.
USUAL_START = 2 * 60 + 30


@dataclass(frozen=True)
class Window:
    """A part of each day, from one minute of it to another; it may go on after midnight."""

    begin: int
    end: int

    @property
    def minutes(self) -> int:
        """How long it is."""
        return (self.end - self.begin) % MINUTES_A_DAY

    def left_s(self, second_of_day: float) -> float | None:
        """How long it still is open at a time of day [s]; None outside."""
        since = (second_of_day - self.begin * 60) % (MINUTES_A_DAY * 60)
        left = self.minutes * 60 - since
        return left if left > 0 else None


@dataclass(frozen=True)
class Times:
    """When something starts: at these minutes of the day, each day or each Monday."""

    minutes: tuple[int, ...]
    weekly: bool = False


def parse_window(text: str) -> Window:
    """Read ``02:00-05:00``.

    Raises
    ------
    UsageError
        It is none.
    """
    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--window {printable(text, 40)!r}: write it as 02:00-05:00, in local time")
    hours = [int(word) for word in found.groups()]
    window = Window(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
    if window.begin == window.end:
        raise UsageError(
            f"--window {printable(text, 40)} ends when it begins: leave it out for the whole day"
        )
    return window


def times(every: str, window: Window | None) -> Times:
    """Return when to start.

    Raises
    ------
    UsageError
        The days would not be alike: only they can be compared.
    """
    minutes = parse_duration(every) / 60
    begin = window.begin if window is not None else USUAL_START
    if minutes in (MINUTES_A_DAY, _WEEK_DAYS * MINUTES_A_DAY):
        return Times((begin,), weekly=minutes > MINUTES_A_DAY)
    if minutes < SHORTEST_MINUTES or minutes != int(minutes) or MINUTES_A_DAY % minutes:
        raise UsageError(
            f"--every {printable(every, 40)}: 7d, 1d, or what divides a day, at least {SHORTEST_MINUTES}m (12h, 6h, "
            "1h, 30m): runs are compared by the time of day"
        )
    first, length = (window.begin, window.minutes) if window is not None else (0, MINUTES_A_DAY)
    return Times(tuple((first + after) % MINUTES_A_DAY for after in range(0, length, int(minutes))))


def calendar(times: Times) -> list[str]:
    """Return the values of systemd's ``OnCalendar=``."""
    day = "Mon *-*-*" if times.weekly else "*-*-*"
    return [
        f"{day} {','.join(f'{hour:02}' for hour in hours)}:{','.join(f'{minute:02}' for minute in minutes)}:00"
        for hours, minutes in _grouped(times)
    ]


def cron(times: Times) -> list[str]:
    """Return the five fields of cron's lines."""
    day = "1" if times.weekly else "*"
    return [
        f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * {day}"
        for hours, minutes in _grouped(times)
    ]


def _grouped(times: Times) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return hours with the minutes that all of them have."""
    of_hour: dict[int, list[int]] = defaultdict(list)
    for minute in times.minutes:
        of_hour[minute // 60].append(minute % 60)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for hour, minutes in sorted(of_hour.items()):
        alike[tuple(sorted(minutes))].append(hour)
    return [(tuple(hours), minutes) for minutes, hours in alike.items()]
