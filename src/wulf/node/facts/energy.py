"""Energy counters of CPUs, as the kernel shows them (Documentation/power/powercap).  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wulf.base.output_values import Unknown
from wulf.base.text import printable

#: Domain, its name, energy since some time [µJ], where it comes round [µJ].
_LINE = re.compile(r"intel-rapl:([0-9:]+) (\S+) (\d{1,20}|unreadable) (\d{1,20})")
#: Domains that add up: a package has its cores and graphics within it, not its memory.
_COUNTED = re.compile(r"package-\d+|dram")
#: No domain takes more [W]: a counter may have come round once more in the time that this takes.
MOST_W = 1000.0

#: Domain → energy since some time, and where it comes round [J].
Joules = dict[str, tuple[float, float]]


def joules(lines: Iterable[str]) -> Joules:
    """Return the counters that add up to what CPUs and their memory take.

    Raises
    ------
    Unknown
        There are none, or they may not be read.
    """
    found: Joules = {}
    for line in lines:
        read = _LINE.fullmatch(line)
        if read is None or read[2] == "unreadable":
            raise Unknown(f"an energy counter that cannot be told: {printable(line, 80)}")
        if not _COUNTED.fullmatch(read[2]):
            continue
        if read[3] == "unreadable":
            raise Unknown("energy counters that only root may read (/sys/class/powercap)")
        found[read[1]] = (int(read[3]) * 1e-6, int(read[4]) * 1e-6)
    if not found:
        raise Unknown("no energy counters (RAPL)")
    return found


def spent(before: Mapping[str, tuple[float, float]], after: Joules, elapsed_s: float) -> float:
    """Return the energy between two looks [J].

    Raises
    ------
    Unknown
        They do not have the same counters, one may have come round more than once, or one stands still, as on virtual
        machines whose host shows counters that count nothing.
    """
    if before.keys() != after.keys():
        raise Unknown("the two readings have other energy counters")
    total = 0.0
    for domain, (now, span) in after.items():
        grown = now - before[domain][0]
        if grown < 0 and span <= 0:
            raise Unknown("an energy counter went backwards")
        if grown == 0:
            raise Unknown("an energy counter that stands still")
        if span > 0 and elapsed_s * MOST_W >= span:
            raise Unknown(
                f"an energy counter may come round within {span / MOST_W:.0f} s: the launch took longer"
            )
        total += grown if grown >= 0 else grown + span
    return total
