"""What a run stores: plan, launches, samples, facts of the nodes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec

from wulf.base.records.base import FactValue, Pair, Place, Record, Setting
from wulf.base.records.emulated import ProgramTimes

#: How many take part in an operation that is measured between two nodes.
RANKS_OF_A_PAIR = 2
#: Names of a plan's experiments begin so that are only there to be held against another one at the same size.
ORDER_PREFIX = "order_"
#: Length of a visit of the reference [µs].
REFERENCE_US = 1000


class Parameter(Record, frozen=True, kw_only=True):
    """A whole number that an operation takes: ``NAME:NUMBER``."""

    #: In words: ``stride in doubles``.
    name: str
    usual: int
    low: int
    high: int


class Operation(Record, frozen=True, kw_only=True):
    """One benchmark of the probe, as its ``--list`` prints it."""

    #: As given to ``--ops``, or as a plan calls it.
    name: str
    #: What runs it: the probe with MPI, with sockets, or alone; or a shell on the first node.
    transport: Literal["none", "mpi", "net", "command"]
    #: How many ranks take part; 0 for as many as there are.
    ranks: int
    #: Who sends to whom: ``ping-pong``, ``stream`` …; ``none`` where nobody does.
    pattern: str
    #: What is varied from cell to cell, as a name.
    axis: str
    #: Unit of the axis.
    axis_unit: str
    #: What one value is, in words: ``half round trip``.
    quantity: str
    #: Which values are the good ones.
    better: Literal["lower", "higher"]
    #: Whether axis ÷ value is a bandwidth.
    moves_bytes: bool
    #: Place among the operations that are measured when none is named; 0 for one that is not.
    usual: int
    #: A recorded value in nanoseconds divided by this is the quantity above.
    divisor: float
    #: Whether every iteration is timed or the visit as a whole; a launch may fall back to the visit.
    timing: Literal["iteration", "batch"]
    #: Smallest message it can send.
    min_size_bytes: int
    #: Largest message it can send.
    max_size_bytes: int
    #: Sizes are multiples of it.
    size_step_bytes: int = 1
    #: Datagrams may be lost; then they are counted.
    lossy: bool
    #: One line for people.
    summary: str
    #: The number that it takes; null for none.
    parameter: Parameter | None = None
    #: How the probe is asked for it; empty where that is its name.
    asked: str = ""
    #: The operation of which a value is the time that is left beside a computation as long; null for all others.
    overlaps: str | None = None
    #: Measured while the other nodes stream to each other.
    beside_traffic: bool = False
    #: Who of them streams to whom: two by two where it is empty; all to one, or each to each.
    beside_pattern: Literal["", "incast", "all-to-all"] = ""
    #: On files of a directory that has to be named.
    files: bool = False
    #: Which statistic of a launch each value is, where another program says only that; empty for what is measured here.
    statistic: str = ""
    #: For a shell; empty for an operation of the probe.
    command: str = ""
    #: Regular expression with one group around the number in its output that is the value; empty for the run time.
    match: str = ""
    #: The operation whose launches print this number, too; empty for one that has launches of its own.
    printed_by: str = ""
    #: Unit of a value; seconds for all that is measured, anything for a number that a command prints.
    unit: str = "s"

    @property
    def between_pairs(self) -> bool:
        """Whether it is measured between two nodes."""
        return self.ranks == RANKS_OF_A_PAIR

    @property
    def of_all(self) -> bool:
        """Whether as many ranks as there are take part at once."""
        return self.ranks == 0


class Printed(Record, frozen=True, kw_only=True):
    """A number that a command prints beside what it does."""

    name: str
    #: Regular expression with one group around it.
    match: str
    unit: str = ""
    better: Literal["lower", "higher"] = "lower"


def printed_operation(printed: Printed, command: Operation) -> Operation:
    """Return what a run says of a number that each launch of a command prints."""
    return msgspec.structs.replace(
        command,
        name=printed.name,
        quantity=printed.name,
        better=printed.better,
        summary=f"what {printed.match} finds in its output",
        command="",
        match=printed.match,
        printed_by=command.name,
        unit=printed.unit,
    )


def command_operation(command: str, *, name: str = "command", match: str = "") -> Operation:
    """Return what a run says of a command that it measures."""
    return Operation(
        name=name,
        transport="command",
        ranks=1,
        pattern="application",
        axis="",
        axis_unit="",
        quantity="result" if match else "run time",
        divisor=1,
        better="lower",
        moves_bytes=False,
        usual=0,
        timing="batch",
        min_size_bytes=0,
        max_size_bytes=0,
        lossy=False,
        summary=command,
        command=command,
        match=match,
    )


class MpiParameter(Record, frozen=True, kw_only=True):
    """One parameter of an MPI library, as the library itself describes it."""

    #: Of Open MPI the parameter, of MPICH, UCX and PRRTE the environment's variable.
    name: str
    #: What is in force where nothing is set.
    value: str
    #: In the library's words.
    about: str
    #: What it may be, where that is one of a few: number → name.
    values: dict[str, str]


class Cell(Record, frozen=True, kw_only=True, order=True):
    """What one figure is about: an operation at a size, between these nodes, under a setting."""

    op: str
    size_bytes: int
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    setting: Setting = "default"


class Clock(Record, frozen=True, kw_only=True):
    """The probe's clock on the measuring rank: its resolution and the cost of one reading."""

    #: Name of the clock, as clock_gettime(2) calls it.
    source: str
    #: Smallest step it shows.
    resolution_ns: float
    #: Time one reading takes.
    cost_ns: float


class ProbeInfo(Record, frozen=True, kw_only=True):
    """The ``hello`` line of a launch: which probe, which library, where the ranks ran."""

    #: Version of the probe.
    version: str
    #: Version of docs/protocol.md.
    protocol: int
    #: What the MPI library calls itself; null without MPI.
    mpi: str | None
    #: Host name of every rank, in rank order.
    hosts: list[str]
    #: The CPUs each rank may run on, in rank order.
    cpus: list[list[int]]
    #: Clock of the measuring rank.
    clock: Clock
    #: Ranks give the CPU away while they wait, because they share it.
    yields: bool = False
    #: Sizes up to which the MPI library sends eagerly, as it says itself: its name of the limit → bytes.
    eager_limits: dict[str, int] = {}
    #: How far threads may call the MPI library, as it says: ``single`` … ``multiple``; empty without MPI.
    thread_level: str = ""
    #: What the directory of files is on, on the node of the first rank; empty where there is none.
    filesystem: str = ""


class NodeContext(Record, frozen=True, kw_only=True):
    """What happened on a node around one launch, beside the launch itself."""

    node: str
    #: Time between the looks at the node before and after the launch [s].
    interval_s: float | None = None
    #: Load average over one minute, after the launch.
    load1: float | None = None
    #: Fraction of the node's CPU time taken by the hypervisor (0–1).
    steal_ratio: float | None = None
    #: Fraction of the CPU time used by processes that do not belong to the launch (0–1).
    foreign_cpu_ratio: float | None = None
    #: Fraction of the time in which the busiest of its CPUs was busy, whoever it was with (0–1).
    busiest_cpu_ratio: float | None = None
    #: Fraction of the time in which some process that wanted to run had to wait for a CPU (0–1).
    cpu_wait_ratio: float | None = None
    #: Context switches of the node.
    context_switches_per_s: float | None = None
    #: Mean frequency of the CPUs, after the launch.
    cpu_frequency_hz: float | None = None
    #: Growth of the interface's error and drop counters during the launch, by counter name.
    nic_errors: dict[str, int] = {}
    #: Energy of the CPUs and their memory between the looks before and after the launch, by their counters (RAPL) [J].
    cpu_joules: float | None = None
    #: Why a field above is unknown, by field name.
    unknown: dict[str, str] = {}


class NodesPower(Record, frozen=True, kw_only=True):
    """What all nodes took while something ran, its start and end included, as they measure it."""

    #: CPUs and their memory (RAPL) [W]; null where a node does not say it.
    cpu_w: float | None
    #: Whole nodes (IPMI, DCMI) [W]; null where a node does not say it.
    node_w: float | None
    #: Node → why its CPUs' power is not known.
    lacks: dict[str, str] = {}
    #: Node → why the power of the whole node is not known.
    node_lacks: dict[str, str] = {}


class NodeRecord(Record, frozen=True, kw_only=True, tag="node", gc=False):
    """Facts of a node at the start of a run (provenance)."""

    node: str
    #: Whether the node answered.
    reachable: bool
    #: Fact name → value; null never occurs here, an unknown fact is in `unknown`.
    facts: dict[str, FactValue] = {}
    #: Why a fact is unknown, by fact name.
    unknown: dict[str, str] = {}
    #: What does not exist on the node (no such setting, not installed), by fact name.
    absent: dict[str, str] = {}
    #: What the kernel or the driver says it cannot do, by fact name.
    unsupported: dict[str, str] = {}
    #: Why nothing is known of it.
    error: str | None = None


class Exits(Record, frozen=True, kw_only=True):
    """When the ranks of a collective were done, in one launch."""

    #: Rank → median time from the common start to its exit of each visit [ns], in time order; beside a computation
    #: beyond that.
    medians_ns: list[list[float]]
    #: Iterations that do not count, as some rank began too late.
    late: int
    #: How late a rank may have been for one that counts, in each visit [ns]; 0 where there was no common time.
    tolerances_ns: list[float]
    #: How far two comparisons of the ranks' clocks differed in each visit [ns]; 0 where there was no common time.
    clock_errors_ns: list[float]


class Sample(Record, frozen=True, kw_only=True):
    """All values of one cell in one launch."""

    launch: str
    cell: Cell
    #: Whether a value is an iteration, the mean of a visit, or the one number that another program says of the launch.
    timing: Literal["iteration", "batch", "statistic"]
    #: A recorded value in nanoseconds divided by this is the operation's quantity.
    divisor: float
    #: Iterations of all measured visits.
    iterations: int
    #: Iterations of one visit.
    batch_iterations: int
    #: (value [ns], count), ascending: high dynamic range, 3 significant digits. Nothing is dropped.
    histogram: list[tuple[int, int]]
    #: Smallest value, exactly.
    min_ns: int
    #: Largest value, exactly.
    max_ns: int
    #: Median of each visit [ns], in time order; the warm-up visits are not among them.
    batch_medians_ns: list[float]
    #: When each visit ended, since the launch began to measure [µs]; empty where the probe did not say.
    batch_at_us: list[int] = []
    #: Medians of the warm-up visits [ns], kept apart.
    warmup_medians_ns: list[float]
    #: False when the visits had not settled by the end of the warm-up.
    warmup_settled: bool
    lost: int = 0
    corrupt: int = 0
    #: Of a collective; null for others.
    exits: Exits | None = None
    #: Of each visit, the share of a file's bytes (0–1) that were in the nodes' memory before they were read, or after
    #: they were written; null where a node does not say. Empty for what touches no files.
    in_memory: list[float | None] = []
    #: Of each visit, the rate at which the sender sent datagrams, of bursts that of the fastest one [1/s]; null where
    #: that took no time. Empty for what does not say it.
    sent_per_s: list[float | None] = []


class Reference(Record, frozen=True, kw_only=True):
    """The visits of the reference of one launch: a byte through a pair of Unix sockets and back, on each node alone.

    They are among the visits of the samples, so that what slows a node down can be told from what slows the network
    down.
    """

    #: Node of every rank, as the samples have it.
    place: Place
    #: Rank → median round trip of each visit [ns], in time order.
    medians_ns: list[list[float]]
    #: When each visit ended, on the clock of the samples' `batch_at_us` [µs].
    at_us: list[int]
    #: Which of two settings of the launch, as the cells have it; empty where there is one.
    setting: str = ""

    @property
    def time_s(self) -> float:
        """Time of the reference [s]: of each rank the median over its visits, of these the geometric mean."""
        return statistics.geometric_mean(map(statistics.median, self.medians_ns)) * 1e-9


class Traffic(Record, frozen=True, kw_only=True):
    """What a stream between two other nodes carried while a launch measured."""

    #: The first one sends.
    pair: Pair
    #: Messages that arrived whole.
    moved_bytes: int
    #: Time in which it did [s], on the clock of the node that sends.
    lasted_s: float

    @property
    def bytes_per_s(self) -> float:
        """Return its mean rate [B/s]."""
        return self.moved_bytes / self.lasted_s if self.lasted_s > 0 else 0.0


class Usage(Record, frozen=True, kw_only=True):
    """What the processes of a command took of the node that it was started on."""

    #: Time of CPUs in the program itself, and in the kernel for it [s]; null where the shell does not say.
    user_s: float | None
    system_s: float | None
    #: Memory of its largest process; null where GNU time is not installed there.
    peak_bytes: int | None


class Output(Record, frozen=True, kw_only=True):
    """What a command printed; bytes that are no text are surrogate escapes."""

    #: Its last 16 MiB.
    stdout: str
    #: Its last 64 KiB.
    stderr: str


class Scheduled(Record, frozen=True, kw_only=True):
    """How the kernel scheduled a rank while it measured; what a kernel does not say is null."""

    lasted_s: float
    #: It had a CPU.
    ran_s: float | None
    #: It could have run, and had none.
    waited_s: float | None
    #: Times that another process took its CPU from it.
    displaced: int | None


class Launch(Record, frozen=True, kw_only=True):
    """One fresh probe session: the unit of replication."""

    id: str
    index: int
    op: str
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    #: Pairs of its ranks that it measured at the same time; empty for one that measured `place` as a whole.
    pairs: list[Pair] = []
    #: What other nodes sent to each other meanwhile; empty where they were left in peace.
    beside: list[Traffic] = []
    setting: Setting
    #: A scout only finds out where sizes must be added; estimates use the launches that measure.
    purpose: Literal["scout", "measure"] = "measure"
    #: Message sizes it visited.
    sizes_bytes: list[int]
    #: Seed of its random order.
    seed: int
    #: ISO 8601, UTC.
    started_at: str
    #: Local time of the controller then, minus UTC [s]; null in runs of before this was kept.
    utc_offset_s: int | None = None
    #: From the start of its processes to their end.
    duration_s: float
    #: Whether it finished.
    status: Literal["ok", "failed"]
    #: Names the node and the reason when the status is ``failed``.
    error: str | None
    #: Nodes that could not be reached before or after it.
    unreachable: list[str] = []
    #: Command line on the first node.
    argv: list[str]
    #: What the probe said of itself; null when it did not get that far.
    probe: ProbeInfo | None
    #: Of a command; null for the probe, and where it did not finish.
    usage: Usage | None = None
    #: What else happened on its nodes.
    context: list[NodeContext]
    #: Of every rank, in rank order; empty where they do not say.
    scheduled: list[Scheduled] = []
    #: Why this launch is suspect (other load, steal, NIC errors); empty when it is clean.
    contamination: list[str]

    @property
    def measured(self) -> Sequence[Place]:
        """Who its figures are about."""
        return self.pairs or [self.place]


class LaunchResult(Record, frozen=True, kw_only=True, tag="launch"):
    """A launch with its samples, as one line of the log: it is there as a whole or not at all."""

    #: The launch.
    launch: Launch
    #: One per size; empty for a failed launch.
    samples: list[Sample]
    #: One, or one for each pair that was measured at the same time; empty where none was made.
    references: list[Reference] = []
    #: Of a pattern: how its programs' ranks spent their time.
    programs: list[ProgramTimes] = []
    #: Of a command; it is kept in files of its own, not in the log.
    output: Output | None = None

    @property
    def reference_s(self) -> float | None:
        """Time of the reference of the launch [s], of several pairs the geometric mean; None where none was made."""
        if not self.references:
            return None
        return statistics.geometric_mean(reference.time_s for reference in self.references)


LogRecord = NodeRecord | LaunchResult


class LeftOut(Record, frozen=True, kw_only=True):
    """A node that answers but cannot take part in some operations."""

    node: str
    #: Operations that are not measured with it.
    ops: list[str]
    #: Why, in words that name the node.
    reason: str


class Part(Record, frozen=True, kw_only=True):
    """One operation, and who takes part in it."""

    op: str
    #: To begin with; an adaptive ladder adds more.
    sizes_bytes: list[int]
    #: One measurement for each.
    places: list[Place]
    #: Places are no pairs of nodes: all together, single ones, or two ranks of one.
    group: bool = False


class Workload(Record, frozen=True, kw_only=True):
    """What is measured: by a run once and again, by a tuning run in every trial."""

    #: In the order in which they were named.
    parts: list[Part]
    #: Visits of every size within a launch.
    sweeps: int
    #: Length of a visit that is aimed at.
    visit_us: int
    #: Pairs that have no node in common are measured at the same time, in one job.
    at_once: bool = False
    #: Operations over sockets, where that is so: one pair is measured while the others do the same from before until
    #: after it.
    accompanied: list[str] = []
    #: Length of a visit of the reference that is aimed at; 0 where none are made.
    reference_us: int = 0
    #: Where operations on files have them; empty for none.
    directory: str = ""
    #: How far threads may call the MPI library: what it is asked for; empty for what MPI_Init gives.
    thread_level: str = ""

    @property
    def ops(self) -> list[str]:
        """Operations, in their order."""
        return [part.op for part in self.parts]

    @property
    def places(self) -> list[Place]:
        """All who take part, each once."""
        return list(dict.fromkeys(place for part in self.parts for place in part.places))

    @property
    def groups(self) -> set[str]:
        """Operations that are not measured between pairs."""
        return {part.op for part in self.parts if part.group}

    @property
    def between_pairs(self) -> set[str]:
        """Operations that are measured between two nodes."""
        return {part.op for part in self.parts if not part.group}

    def part(self, op: str) -> Part:
        """Return the part of an operation."""
        return next(part for part in self.parts if part.op == op)


class Series(Record, frozen=True, kw_only=True):
    """Blocks of launches over time: one launch of every operation and pair each so often."""

    #: From the beginning of a block to that of the next [s].
    every_s: float
    #: From the first block to the end of the series [s].
    for_s: float
    #: ISO 8601, UTC: the first block.
    begun_at: str
    #: Of the controller, as it calls it: ``CET (UTC+01:00)``.
    time_zone: str

    @property
    def blocks(self) -> int:
        """Return how many blocks there are when none is missed."""
        return math.ceil(self.for_s / self.every_s)


#: Ladder and cluster of a run that holds outputs of other benchmarks.
IMPORTED = "imported"


class Plan(Record, frozen=True, kw_only=True):
    """What a run is going to measure, and how well."""

    workload: Workload
    #: Name of the ladder of message sizes.
    ladder: str
    #: Largest message.
    max_size_bytes: int
    #: Target for half the interval's width, relative (0.02 = ±2 %).
    precision: float
    #: Of the intervals.
    confidence: float
    #: Time after which no launch is started.
    budget_s: float
    #: Launches of each operation and pair at least.
    min_launches: int
    #: Launches of each operation and pair at most.
    max_launches: int
    #: Launches of each operation and pair from which it is tested whether they depend on each other; so many are made
    #: where the budget allows. 0 in runs of before this was tested.
    tested_launches: int = 0
    #: Seed of all random orders of the run.
    seed: int
    #: Nodes that cannot take part in some of the operations.
    left_out: list[LeftOut] = []
    #: No operation says anything without the others: each gets fewer launches before any gets none.
    all_needed: bool = False
    #: When the launches are made; null for one after the other, until all is precise or the budget is spent.
    series: Series | None = None


class RunHead(Record, frozen=True, kw_only=True):
    """What the head of a run directory says of every kind of run; it is replaced atomically whenever it changes."""

    schema_version: int
    #: Name of the run.
    id: str
    #: ISO 8601, UTC.
    created_at: str
    #: ISO 8601, UTC: last change of the head.
    updated_at: str
    #: ``budget``: the budget ended it before all was done.
    status: Literal["running", "complete", "budget", "interrupted", "failed"]
    #: Version that began the run.
    wulf_version: str
    #: As it was typed.
    command_line: list[str]
    #: The operations that are measured, as the probe describes them.
    operations: list[Operation]
    #: Text of the cluster file in use, or of what was made up in its place.
    cluster: str
    #: Versions and build facts: python, MPI library, compiler, probe hash …
    software: dict[str, FactValue]
    #: Times at which the run was resumed.
    resumed_at: list[str] = []
    #: Why it failed.
    message: str | None = None


class Manifest(RunHead, frozen=True, kw_only=True):
    """Head of a measured run."""

    #: What is measured, and how.
    plan: Plan
