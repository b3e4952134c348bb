"""What nodes take while HPL runs, as they measure it: energy counters of CPUs (RAPL), and of the whole node (IPMI)."""

from __future__ import annotations

import re
import statistics
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from wulf.base.contracts import Transport
from wulf.base.errors import WulfError
from wulf.base.output_values import Unknown
from wulf.node.facts import energy
from wulf.tools.hpl.record import HplPower

#: From one look to the next [s]: a counter of energy comes round after minutes.
EVERY_S = 10.0
ASK_S = 20.0
#: Energy counters of the kernel (Documentation/power/powercap), those of packages, their memory and the platform; and
#: DCMI's reading. The first argument stands before /sys, for trees that were captured.
SCRIPT = """
for d in "$1"/sys/class/powercap/intel-rapl:*; do
    [ -e "$d/name" ] || continue
    read -r n 2>/dev/null <"$d/name" || n=unreadable
    read -r e 2>/dev/null <"$d/energy_uj" || e=unreadable
    read -r m 2>/dev/null <"$d/max_energy_range_uj" || m=0
    echo "rapl ${d##*/} $n $e $m"
done
if command -v ipmitool >/dev/null 2>&1; then
    ipmitool dcmi power reading 2>/dev/null |
        sed -n 's/.*Instantaneous power reading: *\\([0-9][0-9]*\\) Watts.*/ipmi \\1/p'
fi
date +'time %s%N'
"""
_RAPL = re.compile(r"rapl (.*)")
_IPMI = re.compile(r"ipmi (\d{1,6})")
_TIME = re.compile(r"time (\d{19})")


class Reading(NamedTuple):
    """What a node says at a time."""

    at_s: float
    #: Domain → energy since some time, and where it comes round [J].
    joules: energy.Joules
    #: Of the whole node [W]; None where it does not say.
    node_w: float | None
    #: Why the counters say nothing; empty where they do.
    lack: str


def parse(text: str) -> Reading | None:
    """Return what the script printed; None where it did not come complete."""
    time = _TIME.search(text)
    if time is None:
        return None
    joules, lack = energy.Joules(), ""
    try:
        joules = energy.joules(_RAPL.findall(text))
    except Unknown as reason:
        lack = str(reason)
    ipmi = _IPMI.search(text)
    return Reading(
        at_s=int(time[1]) * 1e-9,
        joules=joules,
        node_w=float(ipmi[1]) if ipmi else None,
        lack=lack,
    )


def cpu_watts(readings: Sequence[Reading]) -> float | None:
    """Return the mean power of a node's CPUs [W]; None where two readings do not say it."""
    if len(readings) < 2 or any(not one.joules for one in readings):
        return None
    lasted_s = readings[-1].at_s - readings[0].at_s
    try:
        spent = sum(
            energy.spent(before.joules, after.joules, after.at_s - before.at_s)
            for before, after in pairwise(readings)
        )
    except Unknown:
        return None
    return spent / lasted_s if lasted_s > 0 else None


def of_nodes(readings: Mapping[str, Sequence[Reading]]) -> HplPower:
    """Return what all nodes took together, as far as all of them say it."""
    cpu = {node: cpu_watts(several) for node, several in readings.items()}
    whole = {
        node: statistics.fmean(one.node_w for one in several if one.node_w is not None)
        for node, several in readings.items()
        if several and all(one.node_w is not None for one in several)
    }
    lacks = {
        node: next((one.lack for one in several if one.lack), "fewer than two readings")
        for node, several in readings.items()
        if cpu[node] is None
    }
    known = [watts for watts in cpu.values() if watts is not None]
    return HplPower(
        cpu_w=sum(known) if known and len(known) == len(readings) else None,
        node_w=sum(whole.values()) if whole and len(whole) == len(readings) else None,
        lacks=lacks,
    )


class Meter:
    """Looks at the nodes now and then while something runs on them."""

    def __init__(self, transport: Transport, nodes: Sequence[str]) -> None:
        self._transport = transport
        self._readings: dict[str, list[Reading]] = {node: [] for node in nodes}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self) -> Meter:
        """Look for the first time, and begin to look again and again."""
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look for the last time."""
        self._over.set()
        self._thread.join()
        self._look()

    def power(self) -> HplPower:
        """Return what the nodes took meanwhile."""
        return of_nodes(self._readings)

    def _look_again(self) -> None:
        while not self._over.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        try:
            answers = self._transport.run(
                ["sh", "-c", SCRIPT, "sh", ""], list(self._readings), timeout_s=ASK_S
            )
        except WulfError:
            return  # what is missing is said: it is no reason to end what is measured
        for node, answer in answers.items():
            found = parse(answer.stdout.decode(errors="replace")) if answer.status == "ok" else None
            if found is not None:
                self._readings[node].append(found)
