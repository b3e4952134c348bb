"""The kinds of access to a setting: one table, ``data/access.toml``, validated when it is read.

What is set how is in C, a file of ``native/guard/kind`` for each kind that a running node can change; for exports it is
in shell, in ``change/access/``.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Literal

import msgspec

from wulf.base.errors import ConfigError
from wulf.base.records import Record

_NAME = "data/access.toml"


class Kind(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of access; ``data/access.toml`` says what each field means."""

    scope: Literal["node", "interface", "job"]
    lasts: str = ""
    #: Empty for what a running node cannot change.
    state: Literal["", "word", "items"] = ""
    groups: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    not_live: str = ""
    elsewhere: str = ""
    variable: str = ""
    keeper: bool = False
    id: str = ""
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    usual: dict[Literal["access", "persist"], dict[str, str]] = msgspec.field(default_factory=dict)

    @property
    def settable(self) -> bool:
        """Whether a running node can change it."""
        return not self.not_live

    @property
    def survives_boot(self) -> bool:
        """Whether a reboot leaves what was set, so that an undo has to reach behind it."""
        return bool(self.lasts)

    def usually(self, table: Literal["access", "persist"], target: str) -> dict[str, str]:
        """Return the fields of a table that the file of a knob with that target may leave out."""
        texts = self.usual.get(table, {})
        return {field: filled(text, target) for field, text in texts.items()}


def filled(text: str, target: str) -> str:
    """Fill a target into a text of the table; other braces, such as ``{value}``, stay as they are."""
    return text.replace("{target}", target).replace("{path}", target.replace(".", "/"))


@functools.cache
def kinds() -> dict[str, Kind]:
    """Name → kind, in the order in which settings are set and put back.

    Raises
    ------
    ConfigError
        The table is not valid; says where.
    """
    return parse(resources.files("wulf").joinpath(_NAME).read_bytes())


def parse(text: bytes) -> dict[str, Kind]:
    """Return the kinds of a table; raises as `kinds`."""
    try:
        found = msgspec.toml.decode(text, type=dict[str, Kind])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{_NAME}: {error}") from None
    for name, kind in found.items():
        missing = [needed for needed in kind.needs if needed not in found]
        if missing:
            raise ConfigError(f"{_NAME}: {name} needs {missing[0]}, which is not a kind")
        if kind.settable == (not kind.state):
            raise ConfigError(f"{_NAME}: {name}: give either 'state' or 'not_live'")
        if not kind.settable and not kind.elsewhere:
            raise ConfigError(f"{_NAME}: {name}: say in 'elsewhere' how a person keeps it")
    return found


def keepers() -> frozenset[str]:
    """Return the kinds that keep settings over a reboot and are no settings."""
    return frozenset(name for name, kind in kinds().items() if kind.keeper)
