"""Records that verbs print with ``--json`` and that no run stores."""

from __future__ import annotations

from typing import Literal

import msgspec


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The value that an option has when it is not on the command line."""

    #: The verb, and the one within it; empty for an option that means the same with all of them.
    verb: str
    #: Long name, without its dashes.
    option: str
    #: As text; null where the option is left out.
    value: str | None
    #: A variable of the environment, a file with its line, or `built in`.
    source: str


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that defaults are read from."""

    path: str
    owner: Literal["site", "user"]
    there: bool


class OwnFile(msgspec.Struct, frozen=True, kw_only=True):
    """A knob, a check, … of a site or a user."""

    #: Directory that it is in, such as `knobs`.
    kind: str
    #: Its name.
    id: str
    path: str
    owner: Literal["site", "user"]
    #: Whether it takes the place of one that comes with wulf, or that is the site's.
    replaces: bool


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All defaults, and the files of a site and a user."""

    #: What counts more comes later.
    files: list[ConfigFile]
    settings: list[Configured]
    own: list[OwnFile]
    #: Variables of the environment that begin with WULF_ and are none that wulf knows.
    unknown_variables: list[str]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``wulf settings get --json``: nodes with the same state of a knob."""

    #: Id of the knob.
    knob: str
    #: Whether there is a value, and if not, which kind of gap it is.
    state: str
    #: The value, or why there is none.
    text: str
    #: Unit of the value; empty when it has none.
    unit: str
    #: What the value means, where it is a mode of the driver and not a number; empty elsewhere.
    meaning: str = ""
    nodes: list[str]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``wulf runs list --json``."""

    #: Name of the run.
    run: str
    #: ISO 8601, UTC; null when the run cannot be read.
    created_at: str | None
    #: As in its manifest, or what is wrong with it.
    status: str
    #: ``measurement``, ``tuning``, ``hpl`` or another; ``unknown`` when its directory cannot be read.
    kind: str
    #: Operations, or the objective.
    ops: list[str]
    #: Number of pairs.
    pairs: int
    #: Number of launches so far, scouts included; of trials in a search.
    launches: int
    #: What `wulf runs tag` has said.
    tags: list[str] = []
    #: What `wulf runs note` has said.
    note: str = ""


class RunLabels(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a run."""

    #: Name of the run.
    run: str
    tags: list[str]
    note: str
