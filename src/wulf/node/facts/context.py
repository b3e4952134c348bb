"""What happened on a node around a launch, beside the launch: two looks at its counters, compared. Pure.

What can be told apart
----------------------
CPU time does not carry its owner's name, so other load is seen in two ways that complete each other:

* *more* CPU time was used than the launch could use (its ranks, spinning, fill one CPU each);
* a task that wanted to run had to *wait* for a CPU. A spinning rank has its CPU to itself, so this is what
  a foreign process on that CPU brings, although the CPU's use stays at 100 %. The kernel counts it (pressure
  stall information, or where that is off, schedstat).

The ranks of a launch themselves say how long they had to wait (`/proc/self/schedstat`). Where they do, that counts and
what waited elsewhere on the node does not: it is the time that they, and nobody else, lost. While a rank waits, its
CPUs are busy with the other ranks that may run there, whose time is known, or with somebody else.

Where the kernel is shared with other nodes (containers, the virtual cluster), these counters are the
machine's: CPU time is taken of the CPUs the node may run on, and waiting of all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from wulf.base.contracts import NodeResult
from wulf.base.output_values import Unknown, cpu_list, number, whole
from wulf.base.records import Launch, NodeContext, Scheduled
from wulf.node.facts import energy
from wulf.node.facts.tree import Tree

#: Units of /proc/stat: USER_HZ, 100 per second on every Linux that this runs on.
_TICKS_PER_S = 100.0
#: user nice system idle iowait irq softirq steal, as /proc/stat orders them.
_BUSY = (0, 1, 2, 5, 6)
_STEAL = 7
_FIELDS = 8


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Above these a launch is suspect.

    Measured on a two-CPU virtual machine, launches of an MPI ping-pong of 3.5 s: waiting was 1.2 % on the
    quiet machine (40 ms, all of it the start of mpirun), 18 % with a process that took 10 % of one rank's
    CPU, 50 % with one that took all it could get. The limits lie between.
    """

    #: CPU time that is not of the launch, of what the CPUs have.
    foreign_cpu_ratio: float = 0.1
    #: Time in which something waited for a CPU, less what the start of a launch takes.
    cpu_wait_ratio: float = 0.05
    startup_wait_s: float = 0.08
    #: Of a rank: what it waited for others than its own launch, of the time in which it had work. One that spins waited
    #: 1 % on the quiet machine and 9 to 11 % with a load of 10 % on its CPU, one that sleeps between messages less
    #: than 1 % (1 µs each time that it was woken).
    rank_wait_ratio: float = 0.05
    #: ... and of the launch: one that hardly ever runs waits as long as it runs.
    rank_wait_of_all: float = 0.01
    #: Time taken by the hypervisor.
    steal_ratio: float = 0.01
    #: Linux counts frames of protocols that nobody wants (LLDP, spanning tree) as dropped: a few are normal.
    rx_dropped_per_s: float = 10.0


class RankScheduled(NamedTuple):
    """A rank of a launch: where it was, and how the kernel treated it."""

    node: str
    #: It might run on these.
    cpus: list[int]
    scheduled: Scheduled


def ranks_of(launch: Launch) -> list[RankScheduled]:
    """Return the ranks of a launch; empty where they do not say how they were scheduled, or where."""
    cpus = [] if launch.probe is None else launch.probe.cpus
    if not len(cpus) == len(launch.scheduled) == len(launch.place):
        return []
    return [RankScheduled(*rank) for rank in zip(launch.place, cpus, launch.scheduled, strict=True)]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one node at one time; a missing one has a reason in `unknown`."""

    node: str
    #: Why the node could not be reached; None when it could.
    unreachable: str | None = None
    uptime_s: float | None = None
    #: CPU → its first eight counters of /proc/stat [1/100 s].
    ticks: dict[int, tuple[float, ...]] | None = None
    context_switches: float | None = None
    #: Time in which some task waited for a CPU [s].
    waited_s: float | None = None
    load1: float | None = None
    cpus: list[int] | None = None
    cpu_frequency_hz: float | None = None
    nic_errors: dict[str, int] | None = None
    #: By domain: energy since some time, and where the counter comes round [J].
    joules: energy.Joules | None = None
    unknown: dict[str, str] = {}


def read_snapshot(result: NodeResult) -> Snapshot:
    """Parse what ``context.sh`` printed; of a node that failed everything is unknown, for that reason."""
    if result.status != "ok":
        reason = result.reason or result.status
        lost = result.status in ("unreachable", "timeout")
        return Snapshot(
            node=result.node,
            unreachable=reason if lost else None,
            unknown=dict.fromkeys(_READERS, reason),
        )
    tree = Tree(result.stdout.decode("utf-8", "replace"))
    values: dict[str, object] = {}
    unknown: dict[str, str] = {}
    for name, read in _READERS.items():
        try:
            values[name] = read(tree)
        except Unknown as reason:
            unknown[name] = str(reason)
    return msgspec.convert({"node": result.node, "unknown": unknown, **values}, Snapshot)


def difference(before: Snapshot, after: Snapshot, expected_busy_cpus: float | None) -> NodeContext:
    """Context of a launch from the looks before and after it.

    Parameters
    ----------
    expected_busy_cpus
        CPUs that the launch's own processes may fill on this node: one for each rank; None where that is not known.
    """
    both = _Difference(before, after, expected_busy_cpus)
    values: dict[str, object] = {}
    unknown: dict[str, str] = {}
    for name in _COMPARED:
        try:
            values[name] = getattr(both, name)()
        except Unknown as reason:
            unknown[name] = str(reason)
    for name in ("load1", "cpu_frequency_hz"):
        values[name] = getattr(after, name)
        if values[name] is None:
            unknown[name] = after.unknown.get(name, "unknown")
    return msgspec.convert({"node": after.node, "unknown": unknown, **values}, NodeContext)


def contamination(
    contexts: Sequence[NodeContext],
    ranks: Sequence[RankScheduled] = (),
    *,
    one_machine: Callable[[str, str], bool] = operator.eq,
    shared_cpu: bool = False,
    limits: Limits | None = None,
) -> list[str]:
    """Reasons why a launch is suspect, each naming its node; empty when it is clean.

    Parameters
    ----------
    ranks
        All of the launch, where they say how long they waited; empty where they do not.
    one_machine
        Whether nodes of these names are on one machine, with the same CPUs.
    shared_cpu
        The launch's own ranks share a CPU: that something on the node waits for it says nothing.
    """
    limits = limits or Limits()
    told = bool(ranks) and all(None not in (r.scheduled.ran_s, r.scheduled.waited_s) for r in ranks)
    reasons = []
    for context in contexts:
        for reason in _reasons(context, shared_cpu or told, limits):
            reasons.append(f"{context.node}: {reason}")
    if told:
        reasons += _waiting(ranks, one_machine, limits)
    return reasons


def _waiting(
    ranks: Sequence[RankScheduled], one_machine: Callable[[str, str], bool], limits: Limits
) -> list[str]:
    """Return what is suspect in how ranks were scheduled: of each node, what its worst rank lost."""
    worst: dict[str, float] = {}
    for index, rank in enumerate(ranks):
        others = [
            other
            for place, other in enumerate(ranks)
            if place != index
            and one_machine(rank.node, other.node)
            and not set(rank.cpus).isdisjoint(other.cpus)
        ]
        lost, of_work = _lost(rank, others)
        if of_work > limits.rank_wait_ratio and lost > limits.rank_wait_of_all * rank.scheduled.lasted_s:
            worst[rank.node] = max(of_work, worst.get(rank.node, 0.0))
    return [
        f"{node}: something else had its CPU {share:.0%} of the time that a rank could have run"
        for node, share in worst.items()
    ]


def _lost(rank: RankScheduled, others: Sequence[RankScheduled]) -> tuple[float, float]:
    """Return how long a rank waited at least for others than its launch [s], and that as a share of its work."""
    cpus = set(rank.cpus).union(*(other.cpus for other in others))
    own_s = sum(other.scheduled.ran_s or 0.0 for other in others) / len(cpus) if cpus else 0.0
    waited_s = rank.scheduled.waited_s or 0.0
    lost_s = max(0.0, waited_s - (own_s if len(others) >= len(cpus) else 0.0))
    work_s = lost_s + (rank.scheduled.ran_s or 0.0)
    return lost_s, lost_s / work_s if work_s > 0 else 0.0


def _reasons(context: NodeContext, ignore_waits: bool, limits: Limits) -> list[str]:
    reasons = []
    foreign, waited, steal = context.foreign_cpu_ratio, context.cpu_wait_ratio, context.steal_ratio
    if foreign is not None and foreign > limits.foreign_cpu_ratio:
        reasons.append(f"other processes used {foreign:.0%} of the CPU time")
    if waited is not None and context.interval_s is not None and not ignore_waits:
        beyond = waited - limits.startup_wait_s / max(context.interval_s, limits.startup_wait_s)
        if beyond > limits.cpu_wait_ratio:
            reasons.append(f"processes waited for a CPU {waited:.0%} of the time")
    if steal is not None and steal > limits.steal_ratio:
        reasons.append(f"the hypervisor took {steal:.1%} of the CPU time")
    normal = {"rx_dropped": limits.rx_dropped_per_s * (context.interval_s or 0.0)}
    grown = [f"{name} +{n}" for name, n in context.nic_errors.items() if n > normal.get(name, 0)]
    if grown:
        reasons.append(f"the interface counted errors: {', '.join(grown)}")
    return reasons


_COMPARED = (
    "interval_s",
    "steal_ratio",
    "foreign_cpu_ratio",
    "busiest_cpu_ratio",
    "cpu_wait_ratio",
    "context_switches_per_s",
    "nic_errors",
    "cpu_joules",
)


class _Difference:
    """The fields of a `NodeContext`, one method each; a method raises `Unknown` when it cannot be told."""

    def __init__(self, before: Snapshot, after: Snapshot, expected_busy_cpus: float | None) -> None:
        self._before = before
        self._after = after
        self._expected = expected_busy_cpus

    def steal_ratio(self) -> float:
        cpus, ticks = self._ticks()
        return ticks[_STEAL] / (_TICKS_PER_S * self.interval_s() * cpus)

    def foreign_cpu_ratio(self) -> float:
        cpus, ticks = self._ticks()
        available = cpus * self.interval_s()
        busy = sum(ticks[index] for index in _BUSY) / _TICKS_PER_S
        return min(1.0, max(0.0, busy - self._own_cpus() * self.interval_s()) / available)

    def busiest_cpu_ratio(self) -> float:
        return max(
            sum(ticks[index] for index in _BUSY) / _TICKS_PER_S / self.interval_s()
            for ticks in self._ticks_by_cpu()
        )

    def context_switches_per_s(self) -> float:
        return self._growth("context_switches") / self.interval_s()

    def cpu_wait_ratio(self) -> float:
        self._own_cpus()
        return min(1.0, self._growth("waited_s") / self.interval_s())

    def _own_cpus(self) -> float:
        if self._expected is None:
            raise Unknown("how many CPUs the launch itself keeps busy is not known")
        return self._expected

    def nic_errors(self) -> dict[str, int]:
        before, after = self._pair("nic_errors")
        grown = {name: after[name] - before[name] for name in after if name in before}
        if any(count < 0 for count in grown.values()):
            raise Unknown("a counter went backwards: the interface was reset")
        return {name: count for name, count in grown.items() if count > 0}

    def cpu_joules(self) -> float:
        before, after = self._pair("joules")
        return energy.spent(before, after, self.interval_s())

    def interval_s(self) -> float:
        elapsed = self._growth("uptime_s")
        if elapsed <= 0:
            raise Unknown("no time passed between the two readings")
        return elapsed

    def _ticks(self) -> tuple[int, list[float]]:
        """Return (number of CPUs, growth of each counter over them), of the CPUs that the node may run on."""
        grown = self._ticks_by_cpu()
        return len(grown), [sum(column) for column in zip(*grown, strict=True)]

    def _ticks_by_cpu(self) -> list[list[float]]:
        """Return the growth of each counter of each CPU that the node may run on."""
        before, after = self._pair("ticks")
        allowed = self._after.cpus
        chosen = [cpu for cpu in after if cpu in before and (allowed is None or cpu in allowed)]
        if not chosen:
            raise Unknown("/proc/stat does not show the CPUs that the node may run on")
        # The kernel may take idle time back; a counter never counts less than nothing here.
        return [
            [max(0.0, after[cpu][index] - before[cpu][index]) for index in range(_FIELDS)] for cpu in chosen
        ]

    def _growth(self, name: str) -> float:
        before, after = self._pair(name)
        if after < before:
            raise Unknown("the counter went backwards: the node was restarted")
        return float(after - before)

    def _pair(self, name: str) -> tuple[Any, Any]:
        for capture in (self._before, self._after):
            if getattr(capture, name) is None:
                raise Unknown(capture.unknown.get(name, "unknown"))
        return getattr(self._before, name), getattr(self._after, name)


def _uptime(tree: Tree) -> float:
    return number((tree.text("uptime").split() or [""])[0], "the uptime")


def _ticks(tree: Tree) -> dict[int, tuple[float, ...]]:
    result = {}
    for line in tree.lines("stat"):
        words = line.split()
        if words[0].startswith("cpu") and len(words) > _FIELDS:
            cpu = whole(words[0][3:], "a CPU")
            result[cpu] = tuple(number(word, "a counter") for word in words[1 : _FIELDS + 1])
    if not result:
        raise Unknown("/proc/stat shows no CPU")
    return result


def _switches(tree: Tree) -> float:
    for line in tree.lines("stat"):
        words = line.split()
        if words[0] == "ctxt" and len(words) == 2:
            return number(words[1], "a counter")
    raise Unknown("/proc/stat shows no context switches")


def _waited(tree: Tree) -> float:
    try:
        for line in tree.lines("pressure"):
            _, found, total = line.partition("total=")
            if line.startswith("some") and found:
                return number(total, "a counter") / 1e6
    except Unknown:
        pass  # the kernel keeps no pressure information: schedstat may do
    try:
        # The eighth number of a CPU: the time tasks waited on it [ns] (Documentation/scheduler/sched-stats).
        columns = [line.split() for line in tree.lines("schedstat")]
        waits = [number(words[8], "a counter") / 1e9 for words in columns if len(words) > 8]
    except Unknown:
        waits = []
    if not waits:
        raise Unknown("the kernel has neither /proc/pressure/cpu (boot it with psi=1) nor /proc/schedstat")
    return sum(waits) / len(waits)


def _load(tree: Tree) -> float:
    return number((tree.text("loadavg").split() or [""])[0], "the load")


def _cpus(tree: Tree) -> list[int]:
    return cpu_list(tree.text("allowed").partition(":")[2])


def _frequency(tree: Tree) -> float:
    values = [number(line.rpartition(":")[2], "a frequency") for line in tree.lines("frequency")]
    if not values:
        raise Unknown("the kernel offers no cpufreq")
    return sum(values) / len(values) * 1000.0


def _nic(tree: Tree) -> dict[str, int]:
    result = {}
    for line in tree.lines("nic"):
        path, _, value = line.rpartition(":")
        result[path.rpartition("/")[2]] = whole(value, "a counter")
    return result


def _joules(tree: Tree) -> energy.Joules:
    return energy.joules(tree.lines("energy"))


_READERS: dict[str, Callable[[Tree], object]] = {
    "uptime_s": _uptime,
    "ticks": _ticks,
    "context_switches": _switches,
    "waited_s": _waited,
    "load1": _load,
    "cpus": _cpus,
    "cpu_frequency_hz": _frequency,
    "nic_errors": _nic,
    "joules": _joules,
}
