"""Defaults that a site and a user have written down (``config.toml``), or given in the environment (``WULF_*``).

This is what all verbs share; what is the default of a verb's option: `wulf.face.cli.defaults`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wulf.base import locations
from wulf.base.errors import ConfigError
from wulf.base.text import nearest, printable

FILE = "config.toml"
#: Of options that mean the same with every verb that has them.
SECTION = "defaults"
COMMON = ("cluster", "runs", "mpi", "verbose", "log-file", "explain")
#: What is taken for a boolean in the environment, where all is text.
WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


class Setting(NamedTuple):
    """The value of an option, and where it is from."""

    value: Any
    #: ``WULF_RUNS``, or ``/etc/wulf/config.toml, line 3``.
    source: str
    #: Directory of the file; None where it is from the environment.
    directory: Path | None = None


class File(NamedTuple):
    """A file of defaults."""

    path: Path
    text: str
    table: dict[str, Any]

    def where(self, keys: Sequence[str]) -> str:
        """Return file and line of a key."""
        line = locations.line_of(self.text, keys)
        return f"{self.path}, line {line}" if line else str(self.path)

    def setting(self, keys: Sequence[str], name: str) -> Setting | None:
        """Return what a section says of an option, which is written with ``-`` or ``_``; None where it says nothing."""
        found = section(self.table, keys)
        key = next((key for key in found if plain(key) == name and not isinstance(found[key], dict)), None)
        return None if key is None else Setting(found[key], self.where([*keys, key]), self.path.parent)


@functools.cache
def files() -> tuple[File, ...]:
    """Return the files that there are, the one that counts most first.

    Raises
    ------
    ConfigError
        One cannot be read, or is not TOML.
    """
    found = []
    for place in reversed(locations.places()):
        path = place.path / FILE
        if locations.is_there(path):
            text = locations.read(path)
            found.append(File(path, text, locations.table(text, str(path))))
    return tuple(found)


def common(name: str) -> Setting | None:
    """Return what a common option is to be; None where nobody has said it."""
    variable = variable_of(name)
    if os.environ.get(variable):
        return Setting(os.environ[variable], variable)
    return next(
        (setting for file in files() if (setting := file.setting((SECTION,), name)) is not None), None
    )


def cluster() -> str | None:
    """Return the cluster that is meant where no other is nearer; None where nobody has said it.

    Raises
    ------
    ConfigError
        It is no text.
    """
    setting = common("cluster")
    if setting is None:
        return None
    if not isinstance(setting.value, str):
        raise ConfigError(f"{setting.source}: cluster: a cluster file, 'lab', 'slurm' or 'local'")
    if setting.directory is None or setting.value in ("lab", "slurm", "local"):
        return setting.value
    return str(setting.directory / Path(setting.value).expanduser())


def is_true(setting: Setting | None) -> bool:
    """Return a setting as yes or no; no where there is none.

    Raises
    ------
    ConfigError
        It is neither.
    """
    if setting is None:
        return False
    value = WORDS.get(setting.value.lower()) if isinstance(setting.value, str) else setting.value
    if not isinstance(value, bool):
        raise ConfigError(f"{setting.source}: {printable(str(setting.value), 60)!r}: true or false")
    return value


def require_known(verbs: Sequence[str]) -> None:
    """Raise ConfigError for a section of a file that is none of a verb, and for a key that is no common option."""
    for file in files():
        for name, value in file.table.items():
            if not isinstance(value, dict):
                where = f"[{SECTION}]" if plain(name) in COMMON else f"[{SECTION}] or [VERB]"
                raise ConfigError(f"{file.where([name])}: '{printable(name, 60)}' belongs below {where}")
            if name != SECTION and name not in verbs:
                hint = nearest(name, [SECTION, *verbs]) or f"; there are [{SECTION}] and [VERB]"
                raise ConfigError(f"{file.where([name])}: unknown section [{printable(name, 60)}]{hint}")
        for key in section(file.table, (SECTION,)):
            if plain(key) not in COMMON:
                hint = (
                    nearest(plain(key), COMMON)
                    or f"; there are {', '.join(COMMON)}; others belong below [VERB]"
                )
                raise ConfigError(f"{file.where([SECTION, key])}: unknown key '{printable(key, 60)}'{hint}")


def section(table: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return a section of a table, empty where it is not there."""
    for key in keys:
        inner = table.get(key)
        table = inner if isinstance(inner, dict) else {}
    return table


def plain(name: str) -> str:
    """Return the name of an option without its dashes, however it is written."""
    return name.removeprefix("--").replace("_", "-")


def variable_of(name: str) -> str:
    """Return the variable of the environment for an option."""
    return "WULF_" + name.upper().replace("-", "_").replace(" ", "_")
