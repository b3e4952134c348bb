"""Read an OTF2 archive with its own library, and write what is there of MPI as JSON Lines.  A program of its own.

It runs in a process of its own, as the library ends a program that gives it a damaged archive, and with any Python that
has the library, as Debian installs it for its own Python alone: so it imports nothing of ours.

The first line is what the archive defines; then a list a record, in the order of time: its name as OTF2 has it, its
location, its time in ticks, what else it says; the last line counts the records. Of regions only those of MPI are
written.
"""

import sys

if __name__ == "__main__":
    del sys.path[0]  # our own directory, whose modules are named as those of the standard library

import importlib
import json
import os
import resource
from pathlib import Path
from typing import Any

#: Exit codes: the library is not installed for this Python; it said no to the archive.
NOT_INSTALLED, REFUSED = 3, 4
_MOST_LOCATIONS = 1 << 20
_AT_ONCE = 4096
_MIB = 1 << 20
#: Memory for definitions, and for the files of a location that are open, in pieces of up to 16 MiB.
_BASE_MIB, _LOCATION_MIB = 2048, 40
#: Records that need no line, as they say nothing of messages.
_PASSED = ("Enter", "Leave", "CallingContextEnter", "CallingContextLeave")
_WRITTEN = (
    *(
        "MpiSend",
        "MpiIsend",
        "MpiIsendComplete",
        "MpiIrecvRequest",
        "MpiRecv",
        "MpiIrecv",
        "MpiRequestCancelled",
    ),
    *(
        "MpiCollectiveBegin",
        "MpiCollectiveEnd",
        "NonBlockingCollectiveRequest",
        "NonBlockingCollectiveComplete",
    ),
    *("MpiProbe", "MpiMrecv", "MpiImrecvRequest", "MpiImrecv", "MeasurementOnOff"),
)


class _Definitions:
    """What the archive defines, as far as it concerns MPI. An archive may define one before what it refers to."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.resolution = 0
        self._strings: dict[int, str] = {}
        self._nodes: dict[int, int] = {}
        self._groups_of_locations: dict[int, tuple[int, int]] = {}
        self.locations: dict[int, tuple[int, int, int]] = {}
        self._regions: dict[int, tuple[int, int]] = {}
        self._contexts: dict[int, int] = {}
        self._ranks: list[int] = []
        self._groups: dict[int, tuple[bool, bool, list[int]]] = {}
        self._comms: dict[int, tuple[int, int]] = {}
        self._between: list[int] = []
        self._others = 0

    def handlers(self) -> dict[str, Any]:
        """Return what takes each definition, by its name."""
        return {
            "ClockProperties": self._clock,
            "String": lambda _, number, text: self._strings.update({number: text}),
            "SystemTreeNode": lambda _, number, name, *_rest: self._nodes.update({number: name}),
            "LocationGroup": self._location_group,
            "Location": self._location,
            "Region": self._region,
            "CallingContext": lambda _, number, region, *_rest: self._contexts.update({number: region}),
            "Group": self._group,
            "Comm": lambda _, number, name, group, *_rest: self._comms.update({number: (name, group)}),
            "InterComm": lambda _, number, *_rest: self._between.append(number),
        }

    def regions(self) -> dict[int, str]:
        """Return the regions of MPI: by their paradigm, or, as not every recorder says it, by their name."""
        named = {number: self._strings.get(name, "") for number, (name, _) in self._regions.items()}
        mpi = self._library.PARADIGM_MPI.value
        return {
            number: name
            for number, name in named.items()
            if self._regions[number][1] == mpi or name.startswith("MPI_")
        }

    def contexts(self) -> dict[int, int]:
        """Return the region of each calling context."""
        return self._contexts

    def line(self, creator: str) -> dict[str, Any]:
        """Return what the first line says."""
        groups = self._groups_of_locations
        return {
            "creator": creator,
            "resolution": self.resolution,
            "eztrace": "EZTrace finalize" in self._strings.values(),
            "threads": {number: group for number, (_, _, group) in self.locations.items()},
            "names": {number: self._strings.get(name, "") for number, (name, _, _) in self.locations.items()},
            "hosts": {number: self._host(node) for number, (_, node) in groups.items()},
            "ranks": self._ranks,
            "groups": {number: list(group) for number, group in self._groups.items()},
            "comms": {
                number: [self._strings.get(name, ""), group] for number, (name, group) in self._comms.items()
            },
            "between": self._between,
            "others": self._others,
        }

    def _host(self, node: int) -> str:
        return self._strings.get(self._nodes.get(node, -1), "")

    def _clock(self, _: Any, resolution: int, *_rest: int) -> None:
        self.resolution = resolution

    def _location_group(self, _: Any, number: int, *said: Any) -> None:
        name, _kind, node, *_rest = said
        self._groups_of_locations[number] = name, node

    def _region(self, _: Any, number: int, *said: Any) -> None:
        name, _canonical, _about, _role, paradigm, *_rest = said
        self._regions[number] = name, paradigm.value

    def _location(self, _: Any, number: int, name: int, kind: Any, events: int, group: int) -> None:
        if kind.value != self._library.LOCATION_TYPE_CPU_THREAD.value:
            self._others += 1
            return
        if len(self.locations) == _MOST_LOCATIONS:
            raise MemoryError("more than a million threads")
        self.locations[number] = (name, events, group)

    def _group(self, _: Any, number: int, *said: Any) -> None:
        _name, kind, paradigm, flags, members, *_rest = said
        library = self._library
        if paradigm.value != library.PARADIGM_MPI.value:
            return
        if kind.value == library.GROUP_TYPE_COMM_LOCATIONS.value:
            self._ranks = list(members)
        elif kind.value in (library.GROUP_TYPE_COMM_GROUP.value, library.GROUP_TYPE_COMM_SELF.value):
            is_self = kind.value == library.GROUP_TYPE_COMM_SELF.value
            is_global = bool(flags.value & library.GROUP_FLAG_GLOBAL_MEMBERS.value)
            self._groups[number] = (is_self, is_global, list(members))


class _Events:
    """Writes records, and counts those that are not written."""

    def __init__(self, regions: dict[int, str], contexts: dict[int, int]) -> None:
        self._regions, self._contexts = regions, contexts
        self.others: dict[str, int] = {}
        #: Location → records, time of the first and of the last.
        self.spans: dict[int, list[int]] = {}
        self._write = sys.stdout.write

    def _count(self, location: int, time: int) -> None:
        span = self.spans.get(location)
        if span is None:
            self.spans[location] = [1, time, time]
        else:
            span[0] += 1
            span[2] = time

    def handler(self, name: str) -> Any:
        """Return what takes a record of this name."""
        if name in _PASSED:
            contexts = self._contexts if name.startswith("CallingContext") else None
            return self._region("Enter" if name.endswith("Enter") else "Leave", contexts)
        if name in _WRITTEN or name.startswith("Rma"):
            return self._written(name)
        return self._counted(name)

    def _region(self, name: str, contexts: dict[int, int] | None) -> Any:
        regions, write, count = self._regions, self._write, self._count

        def take(location: int, time: int, _: Any, _attributes: Any, number: int, *_rest: Any) -> None:
            count(location, time)
            region = number if contexts is None else contexts.get(number, -1)
            if region in regions:
                write(f'["{name}",{location},{time},{json.dumps(regions[region])}]\n')

        return take

    def _written(self, name: str) -> Any:
        write, count = self._write, self._count

        def take(location: int, time: int, _: Any, _attributes: Any, *values: Any) -> None:
            count(location, time)
            words = "".join(
                f",{getattr(value, 'value', value)}" for value in values if not isinstance(value, list)
            )
            write(f'["{name}",{location},{time}{words}]\n')

        return take

    def _counted(self, name: str) -> Any:
        others, count = self.others, self._count

        def take(location: int, time: int, *_rest: Any) -> None:
            count(location, time)
            others[name] = others.get(name, 0) + 1

        return take


def _set_all(library: Any, kind: str, callbacks: Any, handler: Any) -> list[Any]:
    """Set a handler for each name that the library knows; returns them, as the library keeps none of them."""
    kept = []
    begin, end = f"{kind}_Set", "Callback"
    for setter in dir(library):
        if setter.startswith(begin) and setter.endswith(end):
            one = handler(setter[len(begin) : -len(end)])
            if one is not None:
                getattr(library, setter)(callbacks, one)
                kept.append(one)
    return kept


def _define(library: Any, reader: Any) -> _Definitions:
    found = _Definitions(library)
    handlers = found.handlers()
    definitions = library.Reader_GetGlobalDefReader(reader)
    callbacks = library.GlobalDefReaderCallbacks_New()
    kept = _set_all(library, "GlobalDefReaderCallbacks", callbacks, handlers.get)
    library.Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, None)
    library.GlobalDefReaderCallbacks_Delete(callbacks)
    library.Reader_ReadAllGlobalDefinitions(reader, definitions)
    library.Reader_CloseGlobalDefReader(reader, definitions)
    del kept
    return found


def _open_events(library: Any, reader: Any, locations: list[int]) -> Any:
    for location in locations:
        library.Reader_SelectLocation(reader, location)
    try:
        library.Reader_OpenDefFiles(reader)
    except library.Error:  # an archive needs none where its numbers are global
        has_definitions = False
    else:
        has_definitions = True
    library.Reader_OpenEvtFiles(reader)
    for location in locations:
        local = library.Reader_GetDefReader(reader, location) if has_definitions else None
        if local:
            library.Reader_ReadAllLocalDefinitions(reader, local)
            library.Reader_CloseDefReader(reader, local)
        library.Reader_GetEvtReader(reader, location)
    if has_definitions:
        library.Reader_CloseDefFiles(reader)
    return library.Reader_GetGlobalEvtReader(reader)


def _read(library: Any, anchor: str) -> None:
    reader = library.Reader_Open(anchor)
    library.Reader_SetSerialCollectiveCallbacks(reader)
    found = _define(library, reader)
    sys.stdout.write(json.dumps(found.line(library.Reader_GetCreator(reader) or "")) + "\n")
    if not found.locations:
        return
    events = _Events(found.regions(), found.contexts())
    opened = _open_events(library, reader, list(found.locations))
    callbacks = library.GlobalEvtReaderCallbacks_New()
    kept = _set_all(library, "GlobalEvtReaderCallbacks", callbacks, events.handler)
    library.GlobalEvtReader_SetCallbacks(opened, callbacks, None)
    library.GlobalEvtReaderCallbacks_Delete(callbacks)
    while library.GlobalEvtReader_ReadEvents(opened, _AT_ONCE) == _AT_ONCE:
        pass
    del kept
    there = {number: events.spans.get(number, [0, 0, 0]) for number in found.locations}
    missing = {
        number: [announced, there[number][0]]
        for number, (_, announced, _) in found.locations.items()
        if there[number][0] < announced
    }
    spans = {number: span[1:] for number, span in there.items()}
    sys.stdout.write(json.dumps({"others": events.others, "missing": missing, "spans": spans}) + "\n")


def _limit(anchor: str) -> None:
    """Bound memory and time by what is on the disk, and not by what is announced."""
    files = [file for file in Path(anchor).with_suffix("").rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    most = (_BASE_MIB + _LOCATION_MIB * len(files)) * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = 60 + size // 100_000
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files_open = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_open, files_open))


def main(anchor: str) -> int:
    """Write what is in the archive; returns the exit code."""
    try:
        library = importlib.import_module("_otf2")
    except ImportError:
        return NOT_INSTALLED
    _limit(anchor)
    try:
        _read(library, anchor)
    except (library.Error, MemoryError, AssertionError, ValueError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"{error}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # what the library would do at the end of a damaged archive is not worth a crash
