"""A tool as the command line, Python and the reference know it: where its parts are."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

_NONE: Mapping[str, str] = MappingProxyType({})


class Progress(Protocol):
    """Takes what the work says while it goes on."""

    def __call__(self, text: str) -> None:
        """Take what it is at."""

    def note(self, text: str) -> None:
        """Take what should stay to be read."""


class Tool(NamedTuple):
    """A verb that turns a request into a record, and the record into a page.

    A place is ``module:name`` within the tool's package, so that listing tools imports none of their parts; or
    ``wulf.…:name``, where it is in `wulf.compose` as it takes several tools, or in a room below.
    """

    #: ``program worth``; a single word is a verb at the top.
    verb: str
    #: The first line of its help: that of the request.
    summary: str
    #: A dataclass (`wulf.base.request`).
    request: str
    #: ``(request, progress) -> record``: does the work.
    work: str
    #: The record's type, whose JSON Schema `wulf config schema` prints.
    record: str
    #: ``(record) -> Page``.
    page: str
    #: What that Schema is called; the last word of the verb where it says nothing.
    schema: str = ""
    #: Of a verb at the top: under which heading of the list it stands.
    heading: str = ""
    #: ``(record) -> int``: the exit code, where it is not always 0.
    exit_code: str = ""
    #: Takes minutes: where there is no terminal lines say what it is at.
    is_long: bool = False
    #: After Ctrl-C it is said what became of the nodes.
    changes_nodes: bool = False
    #: What ``--template`` prints, by name: texts.
    templates: Mapping[str, str] = _NONE
    #: Its package.
    package: str = ""

    def part(self, place: str) -> Any:
        """Import a part."""
        module, name = place.split(":")
        whole = module if module.startswith("wulf.") else f"{self.package}.{module}"
        return getattr(import_module(whole), name)


class Listed(NamedTuple):
    """What a list of runs says of one, beside what is in every head."""

    #: Operations, or the objective.
    subjects: list[str]
    pairs: int
    #: Launches, or trials.
    steps: int


class RunKind(NamedTuple):
    """A kind of runs.

    A place is ``module:name``, so that listing runs imports no page.
    """

    name: str
    #: With its article: ``a run of HPL``.
    noun: str
    #: The file that makes a directory a run of it.
    head: str
    #: ``(directory) -> run``, which has a ``path`` and a ``manifest``.
    load: str
    #: ``(run) -> Listed``.
    listed: str
    #: ``(run) -> `wulf.page.formats.Report``: in which forms people and programs read it.
    report: str

    def part(self, place: str) -> Any:
        """Import a part."""
        module, name = place.split(":")
        return getattr(import_module(module), name)

    def read(self, path: Path) -> Any:
        """Read a run of this kind."""
        return self.part(self.load)(path)


@cache
def tools() -> Mapping[str, Tool]:
    """Verb → tool, of all packages of `wulf.tools` that declare a ``TOOL``."""
    package = import_module("wulf.tools")
    modules = [import_module(f"wulf.tools.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    found = [(module.TOOL, module.__name__) for module in modules if hasattr(module, "TOOL")]
    return {tool.verb: tool._replace(package=name) for tool, name in found}
