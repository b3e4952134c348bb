"""What a machine says of its own health: heat, memory, the age of its firmware and of its kernel. Pure.

Sources: kernel documentation, ABI/stable/sysfs-devices-node, ABI/testing/sysfs-devices-edac, x86/thermal
(``thermal_throttle``), ABI/testing/sysfs-firmware-dmi-tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from wulf.base.output_values import Absent, Unknown, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers.machine import now

_EDAC = "/sys/devices/system/edac/mc/"
_DAYS_A_YEAR = 365.25
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect all of it."""
    facts.read("cpu.throttled", lambda: _throttled(capture))
    facts.read("memory.corrected_errors", lambda: _errors(capture, "ce_count"))
    facts.read("memory.uncorrected_errors", lambda: _errors(capture, "ue_count"))
    facts.read("memory.modules", lambda: _modules(capture))
    facts.read("memory.uneven", lambda: len(set(_modules_of(capture).values())) > 1)
    facts.read("node.firmware_age_years", lambda: _firmware_age(capture))
    facts.read("kernel.age_years", lambda: _kernel_age(capture))


def _throttled(capture: NodeCapture) -> FactValue:
    """Return how often a core or a package has slowed down because of heat since the boot, the worst of them."""
    counts = [
        whole(text, "how often it was throttled")
        for path, text in capture.tree.files("/sys/devices/system/cpu/cpu")
        if path.endswith("_throttle_count")
    ]
    if not counts:
        raise Absent("the kernel does not count it: no Intel processor, or a virtual machine")
    return max(counts)


def _errors(capture: NodeCapture, name: str) -> FactValue:
    """Return how many errors of memory the memory controllers have counted since the boot."""
    counts = [
        whole(text, "a count of errors")
        for path, text in capture.tree.files(_EDAC)
        if re.fullmatch(rf"mc\d+/{name}", path.removeprefix(_EDAC))
    ]
    if not counts:
        raise Absent("no driver of the memory controller is loaded (EDAC), or the memory has no ECC")
    return sum(counts)


def _sizes(capture: NodeCapture) -> Iterator[tuple[str, str]]:
    """Yield (memory controller, size [MiB]) of each place with a module in it."""
    for path, text in capture.tree.files(_EDAC):
        found = re.fullmatch(r"(mc\d+)/dimm\d+/size", path.removeprefix(_EDAC))
        if found and text.strip() not in ("", "0"):
            yield found[1], text.strip()


def _modules_of(capture: NodeCapture) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for controller, size in _sizes(capture):
        found.setdefault(controller, []).append(size)
    if not found:
        raise Absent("the memory controller does not say (EDAC)")
    return {controller: tuple(sorted(sizes)) for controller, sizes in found.items()}


def _modules(capture: NodeCapture) -> FactValue:
    """Return the modules of each memory controller: ``mc0 2 x 16384 MiB``."""
    said = []
    for controller, sizes in sorted(_modules_of(capture).items()):
        words = [f"{sizes.count(size)} x {size} MiB" for size in dict.fromkeys(sizes)]
        said.append(f"{controller} {' and '.join(words)}")
    return shown("; ".join(said), 300)


def _firmware_age(capture: NodeCapture) -> FactValue:
    """Return the age of the firmware by the node's own clock [years]."""
    text = capture.tree.text("/sys/class/dmi/id/bios_date").strip()
    found = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text)
    if not found:
        raise Unknown("the firmware has no date")
    month, day, year = (int(word) for word in found.groups())
    return _age(capture, "the firmware", year, month, day)


def _kernel_age(capture: NodeCapture) -> FactValue:
    """Return how long ago the kernel was built, by the node's own clock [years]: with it, the drivers that are its own.

    ``uname -v`` has a date of two forms: Debian's in brackets, and that of whoever built it.
    """
    text = capture.tree.text("kernel_version").strip()
    if found := re.search(r"\((\d{4})-(\d{2})-(\d{2})\)", text):
        year, month, day = (int(word) for word in found.groups())
    elif found := re.search(r"\b([A-Z][a-z]{2}) {1,2}(\d{1,2}) [\d:]{8}(?: [A-Z+\d]{3,6})? (\d{4})\b", text):
        month = _MONTHS.index(found[1]) + 1 if found[1] in _MONTHS else 0
        day, year = int(found[2]), int(found[3])
    else:
        raise Unknown("the kernel has no date")
    return _age(capture, "the kernel", year, month, day)


def _age(capture: NodeCapture, what: str, year: int, month: int, day: int) -> float:
    """Return the years between a day and the node's own."""
    try:
        made = date(year, month, day)
        today = datetime.fromtimestamp(now(capture.tree), UTC).date()
    except (ValueError, OverflowError, OSError):
        raise Unknown(f"{what} has no date") from None
    return round((today - made).days / _DAYS_A_YEAR, 1)
