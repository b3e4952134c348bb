"""Services: what runs, what starts at the next boot, and where the two differ. Pure."""

from __future__ import annotations

import functools
import re

import msgspec

from wulf.base.output_values import Absent, Unknown, shown
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture

_SERVICE = ".service"
#: Units that come and go with users, devices and mounts.
_PASSING = re.compile(r"(user@|user-runtime-dir@|session-|run-|systemd-fsck|[^@]*getty@|modprobe@|.*@)")
#: Words of `systemctl list-unit-files` for a unit that an administrator can enable.
_CHOICE = ("enabled", "enabled-runtime", "disabled", "masked", "masked-runtime", "linked", "generated")
_ON = ("enabled", "enabled-runtime", "generated")
_MAX_LISTED = 20


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """State of one service."""

    #: ``active``, ``inactive``, ``failed`` …; None when it is not loaded.
    active: str | None
    #: Word of `systemctl list-unit-files`; None when it has no file.
    file: str | None

    @property
    def running(self) -> bool:
        """Whether it is up now."""
        return self.active in ("active", "reloading")

    @property
    def at_boot(self) -> bool:
        """Whether it starts at boot."""
        return self.file in _ON

    def shown(self) -> str:
        """Return its state in words: ``on``, ``off``, ``on, not at boot`` or ``off, on at boot``."""
        if self.running:
            return "on" if self.at_boot or self.file in (None, "static") else "on, not at boot"
        state = "failed" if self.active == "failed" else "off"
        return f"{state}, on at boot" if self.at_boot else state


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect the services that an administrator can switch on or off, and those that failed."""
    facts.read("system.state", lambda: _state(capture))
    try:
        known = services(capture)
    except Unknown as reason:
        for name in ("system.failed", "system.stopped", "system.unkept_services"):
            facts.lack(name, reason)
        return
    for name, service in known.items():
        if not _PASSING.match(name) and service.file in _CHOICE:
            facts.put(f"service.{name.removesuffix(_SERVICE)}", service.shown())
    failed = [name for name, service in known.items() if service.active == "failed"]
    facts.put("system.failed", _listed(failed))
    facts.read("system.stopped", lambda: _stopped(capture))
    unkept = [
        name
        for name, service in known.items()
        if service.running and service.file == "disabled" and not _PASSING.match(name)
    ]
    facts.put("system.unkept_services", _listed(unkept))


def services(capture: NodeCapture) -> dict[str, Service]:
    """Return the services that systemd knows: unit name → state.

    Raises
    ------
    Unknown
        When systemd did not answer.
    """
    tree = capture.tree
    return capture.once("services", lambda: _read(tree.text("units"), tree.text("unit_files")))


@functools.lru_cache(maxsize=64)
def _read(units: str, unit_files: str) -> dict[str, Service]:
    """Return the services by name; nodes of one kind print the same text."""
    active, files = {}, {}
    for line in units.splitlines():
        # A mark (●, *) stands before units that failed.
        words = line.lstrip("●*○× ").split()
        if len(words) < 4 or not words[0].endswith(_SERVICE):
            continue
        # One whose file is gone is no service any more, but what it failed with keeps the system degraded.
        if words[1] != "not-found" or words[2] == "failed":
            active[words[0]] = words[2]
    for line in unit_files.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].endswith(_SERVICE):
            files[words[0]] = words[1]
    names = sorted(active.keys() | files.keys())
    return {name: Service(active=active.get(name), file=files.get(name)) for name in names}


def service(capture: NodeCapture, unit: str) -> FactValue:
    """Return the state of one service in words.

    Raises
    ------
    Absent
        When it is not installed.
    """
    found = services(capture).get(unit)
    if found is None:
        raise Absent(f"{unit.removesuffix(_SERVICE)} is not installed")
    return found.shown()


def _state(capture: NodeCapture) -> FactValue:
    # `systemctl is-system-running` ends with 1 when it is not; the word is the answer all the same.
    text, _ = capture.tree.output("system_state")
    word = text.split("\n")[-1].strip()
    if word not in ("running", "degraded", "starting", "initializing", "maintenance", "stopping"):
        raise Unknown(f"systemd does not say: {shown(word, 80)}")
    return word


def _stopped(capture: NodeCapture) -> FactValue:
    """Return the services that should have started at boot and stay up, but are down."""
    stopped = []
    for block in capture.tree.text("enabled").split("\n\n"):
        unit = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        lasting = unit.get("Type") != "oneshot" or unit.get("RemainAfterExit") == "yes"
        wanted = unit.get("ConditionResult") == "yes" or unit.get("ConditionTimestampMonotonic") == "0"
        if (
            lasting
            and wanted
            and not unit.get("TriggeredBy")
            and unit.get("ActiveState") in ("inactive", "failed")
        ):
            stopped.append(unit.get("Id", "?"))
    return _listed(stopped)


def _listed(names: list[str]) -> str:
    short = [name.removesuffix(_SERVICE) for name in names[:_MAX_LISTED]]
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return " ".join(short) + more if names else "none"
