"""Where watches keep what is theirs, and what time it is."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from wulf.base.errors import UsageError
from wulf.base.store.history import NAME as HISTORY
from wulf.base.text import printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
_SYSTEM = Path("/var/lib/wulf/watch")
#: What was installed, and how.
INSTALLED = "installed.json"


class Clock(Protocol):
    """What time it is, and how it passes."""

    def now(self) -> datetime:
        """Return the time, with the zone of this machine."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time, with the zone of this machine."""
        return datetime.now().astimezone()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class SetClock:
    """A clock that stands at a time, and moves when somebody waits."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return the time that it was set to."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """Move on, without waiting."""
        self._at += timedelta(seconds=seconds)


def utc(at: datetime) -> str:
    """Return a time as a history has it: ISO 8601, UTC."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def home() -> Path:
    """Return the directory of all watches of this user."""
    if os.geteuid() == 0:
        return _SYSTEM
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "wulf" / "watch"


def directory(watches: Path, name: str) -> Path:
    """Return the directory of a watch.

    Raises
    ------
    UsageError
        The name cannot be one of a unit and a directory.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{printable(name, 80)!r} cannot be the name of a watch: letters, digits, '.', '_' and '-', beginning with "
            "a letter or a digit; choose another one with --name"
        )
    return watches / name


def known(watches: Path) -> list[str]:
    """Return the names of the watches that have a history or are installed."""
    try:
        found = [
            path.name
            for path in watches.iterdir()
            if any((path / kept).is_file() for kept in (HISTORY, INSTALLED))
        ]
    except OSError:
        return []
    return sorted(found)


def only(watches: Path, name: str | None) -> Path:
    """Return the directory of the watch that is named, or of the only one.

    Raises
    ------
    UsageError
        There is none, or there are several.
    """
    names = known(watches)
    if name is not None:
        if name not in names:
            there = f"there are: {', '.join(names)}" if names else "there is none"
            raise UsageError(f"{watches} has no watch {printable(name, 60)!r}; {there}")
        return directory(watches, name)
    if not names:
        raise UsageError(f"{watches} has no watch: 'wulf watch install' or 'wulf watch run' begins one")
    if len(names) > 1:
        raise UsageError(f"{watches} has several watches, say which with --name: {', '.join(names)}")
    return directory(watches, names[0])
