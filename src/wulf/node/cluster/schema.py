"""The sections of ``cluster.toml``, and how its text becomes typed values with errors a person can act on."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec

from wulf.base import toml
from wulf.base.errors import ConfigError
from wulf.base.text import nearest, printable


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all sections."""


class ClusterSection(Section, frozen=True, kw_only=True):
    """``[cluster]``."""

    nodes: str
    name: str = "cluster"
    interface: str | None = None
    transport: str = "ssh"
    shared_cpus: list[list[str]] = []
    #: Cables between two nodes beside the switch; `wulf.node.cluster.links` reads the ends.
    links: list[list[str]] = []


class SshSection(Section, frozen=True, kw_only=True):
    """``[ssh]``: how nodes are reached; everything else comes from the user's own ssh configuration."""

    config: str | None = None
    user: str | None = None
    #: Arguments handed to ssh as they are, before wulf's own.
    options: list[str] = []
    connect_timeout_s: float = 10.0
    fanout: int = 64
    #: Gateway → node set it reaches (tree propagation).
    gateways: dict[str, str] = {}


class ChangeSection(Section, frozen=True, kw_only=True):
    """``[change]``: as whom settings are changed; measuring stays with ``[ssh] user``."""

    user: str | None = None
    #: How that user gets root's rights, when it is not root.
    become: str | None = None


class MpiSection(Section, frozen=True, kw_only=True):
    """``[mpi]``: which library, and how its jobs start."""

    compiler: str | None = None
    launcher: str | None = None
    #: What each rank is bound to, of `wulf.node.cluster.launcher.hosts.UNITS`; None for what the launcher does by
    #: itself.
    binding: str | None = None
    env: dict[str, str] = {}
    #: Arguments handed to the launcher as they are, after wulf's own.
    arguments: list[str] = []


class Document(Section, frozen=True, kw_only=True):
    """The whole file."""

    cluster: ClusterSection
    groups: dict[str, str] = {}
    #: Interface → set of the nodes on which it is called so, other than [cluster] interface says.
    interfaces: dict[str, str] = {}
    ssh: SshSection = SshSection()
    addresses: dict[str, str] = {}
    change: ChangeSection = ChangeSection()
    mpi: MpiSection = MpiSection()


#: Sections whose keys are the user's own names.
_FREE = ("groups", "interfaces", "addresses")
_SECTIONS: dict[str, type[Section]] = {
    "cluster": ClusterSection,
    "ssh": SshSection,
    "change": ChangeSection,
    "mpi": MpiSection,
}


def decode(text: str, origin: str) -> Document:
    """Decode the text of a cluster file.

    Raises
    ------
    ConfigError
        Naming `origin` and the line (broken TOML) or the key and what is allowed (anything else).
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = f"line {max(1, len(text.splitlines()))}, where the file ends"
        said = str(error).replace("end of document", last)
        raise ConfigError(f"{origin}: not TOML: {said}") from error
    except ValueError as error:
        # Python converts no number of thousands of digits, and says nothing of the line.
        raise ConfigError(
            f"{origin}: a value that no setting can have: {printable(str(error), 200)}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{origin}: not a cluster file: lists or tables nested too deeply") from error
    _refuse_unknown(raw, origin)
    if "nodes" not in raw.get("cluster", {}):
        raise ConfigError(f'{origin}: [cluster] nodes is missing; write for example nodes = "node[01-32]"')
    try:
        return msgspec.convert(raw, Document)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ConfigError(f"{origin}: {_place(str(error))}") from error


def _refuse_unknown(raw: dict[str, Any], origin: str) -> None:
    known_sections = [*_SECTIONS, *_FREE]
    for name, value in raw.items():
        if name not in known_sections:
            allowed = ", ".join(f"[{known}]" for known in known_sections)
            raise ConfigError(
                f"{origin}: unknown [{name}]{nearest(name, known_sections)} (allowed: {allowed})"
            )
        if not isinstance(value, dict):
            raise ConfigError(f"{origin}: {name} must be a section, [{name}], with keys below it")
        if name in _FREE:
            continue
        known = [field.name for field in msgspec.structs.fields(_SECTIONS[name])]
        for key in value:
            if key not in known:
                hint = nearest(key, known)
                raise ConfigError(
                    f"{origin}: unknown key '{key}' in [{name}]{hint} (allowed: {', '.join(known)})"
                )


def _place(message: str) -> str:
    """Turn msgspec's ``Expected `str`, got `int` - at `$.cluster.name``` into words of the file."""
    what, _, where = message.partition(" - at ")
    path = where.strip("`").removeprefix("$").removeprefix(".")
    section, _, key = path.partition(".")
    return f"[{section}] {key}: {toml.in_words(what)}" if section else what
