"""Knobs, checks, … of a site and of a user, beside those that come with the package.

A directory has the files of one kind: ``data/KIND`` in the package, ``/etc/wulf/KIND``, ``~/.config/wulf/KIND``. Of
files with the same name the user's counts, then the site's; both are read and validated as those of the package.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

from wulf.base import locations
from wulf.base.errors import ConfigError
from wulf.base.text import printable

#: What can be added.
KINDS = (
    "knobs",
    "checks",
    "consistency",
    "signatures",
    "host_signatures",
    "suites",
    "studies",
    "networks",
    "launchers",
)
Owner = Literal["wulf", "site", "user"]
_ENDING = ".toml"
#: Before the id of a rule that applies in the order of the files.
_NUMBER = re.compile(r"^[0-9]+-")


class Source(NamedTuple):
    """A file of data."""

    #: Its name without the ending.
    id: str
    owner: Owner
    #: For messages: ``data/knobs/ID.toml``, or its path.
    name: str
    text: str


class OwnFile(NamedTuple):
    """A file of a site or a user, by its name."""

    id: str
    owner: locations.Owner
    path: Path
    #: Whether there is another of this name that counts less.
    replaces: bool


@functools.cache
def sources(kind: str) -> tuple[Source, ...]:
    """Return all files of a kind, in the order of their names.

    Raises
    ------
    ConfigError
        There is none at all, or one cannot be read.
    """
    found = {source.id: source for source in _of_package(kind)}
    if not found:
        raise ConfigError(f"data/{kind} is empty: wulf is not installed properly")
    for file in files(kind):
        found[file.id] = Source(file.id, file.owner, str(file.path), locations.read(file.path))
    return tuple(found[name] for name in sorted(found))


def files(kind: str) -> list[OwnFile]:
    """Return the files of a kind that are a site's or a user's; those that count more come later.

    Raises
    ------
    ConfigError
        A directory cannot be read.
    """
    known = set(_names_of_package(kind))
    found: list[OwnFile] = []
    for place in locations.places():
        for path in _in(place.path / kind):
            found.append(OwnFile(path.stem, place.owner, path, path.stem in known))
        known.update(file.id for file in found)
    return found


def whose(kind: str, name: str) -> str:
    """Return who a file of this name is from: nothing to say where it comes with wulf, else its path."""
    found = source(kind, name)
    return "" if found is None or found.owner == "wulf" else found.name


def source(kind: str, name: str) -> Source | None:
    """Return the file of a kind that has this name, or that ends with it after a number; None where there is none."""
    return next((one for one in sources(kind) if name in (one.id, _NUMBER.sub("", one.id))), None)


def _in(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == _ENDING)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    except OSError as error:
        raise ConfigError(f"cannot read {printable(str(directory), 200)}: {error.strerror}") from None


def _names_of_package(kind: str) -> list[str]:
    directory = resources.files("wulf").joinpath("data", kind)
    return sorted(
        file.name.removesuffix(_ENDING) for file in directory.iterdir() if file.name.endswith(_ENDING)
    )


def _of_package(kind: str) -> Iterator[Source]:
    directory = resources.files("wulf").joinpath("data", kind)
    for name in _names_of_package(kind):
        text = directory.joinpath(f"{name}{_ENDING}").read_text(encoding="utf-8")
        yield Source(name, "wulf", f"data/{kind}/{name}{_ENDING}", text)
