"""Which fault is met at which step of which change."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from bench.faults.changes import CHANGES, CUTTING

#: Something that one case at least must meet.
Mark = tuple[str, ...]
#: An unconfirmed change is undone so soon [s].
DEADLINE_S = 3
#: Where the node is switched off, it must not undo the change before that [s].
LONG_DEADLINE_S = 30


class Points(msgspec.Struct, frozen=True):
    """The steps of one change, and what it changes."""

    #: Way of running (see `WAYS`) → steps of the guard that are new in it: ``verb: what it notes``.
    guard: dict[str, list[str]] = {}
    #: Way → what the controller announces.
    watch: dict[str, list[str]] = {}
    #: Facts that the change sets, with their new values; None where one goes.
    new: dict[str, str | None] = {}
    #: The same after a reboot.
    new_after_boot: dict[str, str | None] = {}


#: Side of the cases that are orders of events.
SIDE = "order"

#: How a change is run: to its end; given up when all is applied; left when all is applied.
WAYS = ("keep", "give up", "abandon")
#: At a step of the guard; those with a capital letter are done from outside while it waits.
GUARD_FAULTS = (
    "guard",
    "watcher",
    "both",
    "keepers",
    "sshd",
    "hang",
    "full",
    "second",
    "Client",
    "Controller",
    "Link",
)
#: At an announcement of the controller.
WATCH_FAULTS = (
    "controller dies",
    "client dies",
    "watcher dies",
    "watcher is stopped",
    "watcher is told to end",
    "deadline passes",
    "lease passes",
    "second",
    "link",
)
BOOTS = ("Kill", "Reboot")
#: What they do depends on what is being changed; the others are about who changes it.
NODE_FAULTS = ("guard", "watcher", "both", "keepers", "hang", "full", "Link")


class Case(msgspec.Struct, frozen=True):
    """One run of a change with one fault."""

    change: str
    way: str
    #: Whether `at` is a step of the guard or an announcement of the controller.
    side: str
    at: str
    fault: str

    @property
    def boots(self) -> bool:
        """Whether the node is booted in it."""
        return self.fault in BOOTS

    @property
    def from_outside(self) -> bool:
        """Whether it is done from outside while the guard waits."""
        return self.fault[0].isupper()

    @property
    def deadline_s(self) -> int:
        """How soon an unconfirmed change is undone [s]."""
        if self.boots or (self.side == "none" and self.way == "keep"):
            return LONG_DEADLINE_S
        return DEADLINE_S if len(CHANGES[self.change]) < 5 else 2 * DEADLINE_S


def cases(points: Mapping[str, Points]) -> list[Case]:
    """Return every fault at every step of every change, as far as the two go together."""
    return [
        case
        for change, steps in points.items()
        for case in (*_of_guard(change, steps), *_of_watch(change, steps))
    ]


def in_order(every: Sequence[Case], marks: Callable[[Case], set[Mark]]) -> tuple[list[Case], list[Case]]:
    """Return cases that have all marks among them, and the others, both in a random order."""
    shuffled = list(every)
    random.Random(1).shuffle(shuffled)
    # They take long: what another case meets as well is left to that one.
    shuffled.sort(key=lambda case: case.boots)
    first: list[Case] = []
    rest: list[Case] = []
    met: set[Mark] = set()
    for case in shuffled:
        (rest if marks(case) <= met else first).append(case)
        met |= marks(case)
    for some in (first, rest):
        random.Random(2).shuffle(some)
    return first, rest


def thorough(case: Case) -> set[Mark]:
    """Every fault at every kind of step, the node's own in every change; death and a power cut at every single step."""
    marks: set[Mark] = {("kind of step", case.way, case.side, _kind(case), case.fault)}
    if case.fault in NODE_FAULTS:
        marks.add(("change", case.change, case.fault))
    if case.fault == "guard" or (case.fault == "Kill" and case.change == "all"):
        marks.add(("step", case.change, case.way, case.at, case.fault))
    return marks


def once(case: Case) -> set[Mark]:
    """Every fault."""
    return {("fault", case.side, case.fault)}


def quick(case: Case) -> set[Mark]:
    """Every fault, every change and every kind of step."""
    return {
        ("kind of step", case.way, case.side, _kind(case)),
        ("fault", case.side, case.fault),
        ("change", case.change),
    }


def _kind(case: Case) -> str:
    return case.at.split(":")[1].split()[0] if case.side == "guard" else case.at


def _of_guard(change: str, steps: Points) -> Iterator[Case]:
    for way, notes in steps.guard.items():
        for note in notes:
            for fault in (*GUARD_FAULTS, *BOOTS):
                if _happens(change, way, fault):
                    yield Case(change, way, "guard", note, fault)


def _happens(change: str, way: str, fault: str) -> bool:
    if change in CUTTING:
        return fault in ("guard", "watcher", "full")
    if way == "abandon" and fault in ("Controller", "Client"):
        return False
    return fault not in BOOTS or change in ("all", "rollback")


def _of_watch(change: str, steps: Points) -> Iterator[Case]:
    for way in ("keep", "give up"):
        for event in steps.watch.get(way, []):
            if way == "give up" and event != "undo":
                continue
            for fault in WATCH_FAULTS:
                if _makes_sense(event, fault):
                    yield Case(change, way, "watch", event, fault)
            if change == "all":
                yield Case(change, way, "watch", event, "Kill")


def _makes_sense(event: str, fault: str) -> bool:
    if event in ("install", "lock"):
        return not fault.startswith("watcher") and fault not in ("deadline passes", "lease passes")
    return event != "unlock" or fault not in ("lease passes",)
