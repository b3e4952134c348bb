"""Where a site and a user keep what is theirs: defaults of options, and knobs, checks, … beside those of the package.

::

    /etc/wulf               of the site; WULF_SITE_DIR names another directory, such as one that all nodes share
    ~/.config/wulf          of the user; XDG_CONFIG_HOME is respected

What can be made again at any time is in ``~/.cache/wulf`` (XDG_CACHE_HOME is respected).
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wulf.base.errors import ConfigError
from wulf.base.text import printable

Owner = Literal["site", "user"]


class Place(NamedTuple):
    """A directory of somebody's."""

    owner: Owner
    path: Path


def places() -> tuple[Place, ...]:
    """Return where files are looked for; what comes later counts more."""
    return Place("site", site()), Place("user", user())


def site() -> Path:
    """Return the directory of the site."""
    return Path(os.environ.get("WULF_SITE_DIR") or "/etc/wulf")


def user() -> Path:
    """Return the directory of the user."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "wulf"


def cache() -> Path:
    """Return where the user's programs keep what they can make again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "wulf"


def is_there(path: Path) -> bool:
    """Whether there is such a file; not in a home that belongs to somebody else."""
    try:
        return path.is_file()
    except OSError:
        return False


def read(path: Path) -> str:
    """Return the text of a file that decides what happens on nodes.

    Raises
    ------
    ConfigError
        It cannot be read, or anybody may write to it.
    """
    try:
        if path.stat().st_mode & stat.S_IWOTH:
            raise ConfigError(f"{path}: everybody may write to it, so it is not read: chmod o-w {path}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot read {path}: {reason}") from None


def table(text: str, origin: str) -> dict[str, Any]:
    """Return a TOML text as a table; raise ConfigError that names its `origin` and the line where it is none."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{origin}: not TOML: {printable(str(error), 200)}") from None


def line_of(text: str, keys: Sequence[str]) -> int:
    """Return in which line of a TOML text a key is given, from 1; 0 where it is not there.

    The parser does not say it, but it can be asked how much of the text it takes to have the key.
    """
    lines = text.splitlines(keepends=True)
    begin = 0
    for end in range(1, len(lines) + 1):
        try:
            found: object = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is not None:
            return begin + 1
        begin = end
    return 0
