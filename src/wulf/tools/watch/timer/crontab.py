"""Lines of a crontab that are ours, among others that are not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import count

#: Cron takes no longer command [characters].
LONGEST = 998


def lines(
    name: str, fields: Sequence[str], command: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """Return the lines that run a command at the times of `fields`.

    Raises
    ------
    UsageError
        The command is longer than cron takes.
    """
    words = ["env", *(f"{key}={value}" for key, value in environment.items()), *command]
    # Cron takes a percent sign for the end of the line.
    shell = shlex.join(words).replace("%", "\\%")
    if len(shell) > LONGEST:
        longest = max(environment, key=lambda key: len(environment[key]), default="")
        raise UsageError(
            f"the command for the crontab is {count(len(shell), 'character')} long, and cron takes {LONGEST}: "
            f"begin with a shorter {longest}, or with --with systemd"
        )
    return [_begin(name), *(f"{when} {shell}" for when in fields), _end(name)]


def added(crontab: str, ours: Sequence[str]) -> str:
    """Return a crontab with our lines at its end."""
    return crontab + "".join(f"{line}\n" for line in ours)


def found(crontab: str, name: str) -> list[str] | None:
    """Return our lines as they stand in a crontab; None where there are none.

    Raises
    ------
    ConfigError
        Only one of the two marks is there.
    """
    all_lines = crontab.split("\n")
    begin, end = (mark in all_lines for mark in (_begin(name), _end(name)))
    if begin != end:
        raise ConfigError(
            f"the crontab has only one of the two lines that mark what 'wulf watch install' wrote for {name}: "
            "take the rest away with 'crontab -e'"
        )
    if not begin:
        return None
    first = all_lines.index(_begin(name))
    return all_lines[first : all_lines.index(_end(name), first) + 1]


def without(crontab: str, ours: Sequence[str]) -> str:
    """Return a crontab without our lines, all others byte for byte as they were."""
    return crontab.replace("".join(f"{line}\n" for line in ours), "", 1)


def _begin(name: str) -> str:
    return f"# wulf watch {name}: begin (taken away by 'wulf watch remove')"


def _end(name: str) -> str:
    return f"# wulf watch {name}: end"
