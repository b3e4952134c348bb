"""What the nodes do by themselves: who takes time from a process, and how late it is woken."""

from __future__ import annotations

from wulf.base.records.base import Estimate, Record


class DetourRate(Record, frozen=True, kw_only=True):
    """How often fixed work was interrupted for so long."""

    #: Length of the interruption, from here …
    from_s: float
    #: … to below here [s]; null for what is longer than all.
    to_s: float | None
    #: How often, per second of work.
    per_s: Estimate


class CpuNoise(Record, frozen=True, kw_only=True):
    """What others took of the time of one CPU, from fixed work on it."""

    #: Its number.
    cpu: int
    #: Mean ÷ shortest time of the work in a launch − 1, median over launches: what others took, and what a clock
    #: frequency that moves did.
    taken: Estimate
    #: Share of the time that detours took, median over launches. A detour is what the work took longer than the
    #: launch's median, from 1 µs on.
    detoured: Estimate
    #: Longest detour [s].
    longest_s: float
    #: How long the CPU was watched [s].
    watched_s: float
    #: Detours by their length, ascending.
    detours: list[DetourRate]
    #: (length from [s], detours per second) in five bins for a decade, ascending; empty bins are left out.
    histogram: list[tuple[float, float]]
    #: Rate of a kernel's tick at which the detours come, too evenly to be chance [Hz]; null where they do not.
    tick_hz: int | None = None


class WakeDelay(Record, frozen=True, kw_only=True):
    """How late a process is back from a sleep."""

    #: Length of the sleep [s].
    gap_s: float
    #: By which it is late.
    late: Estimate


class HostClock(Record, frozen=True, kw_only=True):
    """The probe's clock on a node."""

    #: As clock_gettime(2) calls it.
    source: str
    #: Time of one reading, median over launches.
    cost: Estimate
    #: Largest step that it showed in a launch [s].
    resolution_s: float


class HostAdvice(Record, frozen=True, kw_only=True):
    """What would make a host quieter."""

    #: Of the signature.
    id: str
    #: In a few words.
    title: str
    #: The figures that show it.
    evidence: str
    #: How the cause does that.
    why: str
    #: What to do next, as a command.
    next: str


class HostNoise(Record, frozen=True, kw_only=True):
    """What one node does by itself."""

    node: str
    #: Ascending; empty where no CPU was watched by itself.
    cpus: list[CpuNoise]
    #: By the length of the sleep, ascending.
    wakes: list[WakeDelay]
    #: Null where no launch told.
    clock: HostClock | None = None
    #: Share of the CPU time that the hypervisor took, median over launches; null where the node does not say.
    steal: Estimate | None = None
    #: Share of the CPU time that other processes used, median over launches; null where the node does not say.
    foreign: Estimate | None = None
    #: Width of the intervals of network operations with this node on a quiet host ÷ their width now: 1/√gain, median
    #: over the cells that have an adjusted time; null where none has.
    quiet_width: Estimate | None = None
    #: What would make it quieter; empty where nothing is known to.
    advice: list[HostAdvice] = []
