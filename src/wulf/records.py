"""The records that stages exchange and the run directory stores.

Every record is immutable. Field names carry their unit (``_s``, ``_ns``, ``_bytes``).
``None`` means *unknown*; it never means zero.

Schema history
--------------
1. First version (wulf 0.1).
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = 1

Setting = str
Pair = tuple[str, str]
FactValue = str | int | float | bool | None
#: "mixed" is only said of whole runs: some operations are better, some worse.
Verdict = Literal["better", "worse", "no difference", "no decision", "mixed"]


#: Facts that every node has of its own: that they differ between nodes says nothing.
OWN_FACTS = frozenset(
    {
        "node.hostname",
        "network.addresses",
        "network.own_name",
        "nic.addresses",
        "nic.device",
        "cpu.allowed",
        "irq.affinity",
    }
)
#: Facts of the moment: that they differ between two looks says nothing.
PASSING_FACTS = frozenset(
    {
        "node.up_s",
        "node.load1",
        "node.load_per_cpu",
        "cpu.steal_ratio",
        "nic.interrupts_per_s",
        "nic.interrupt_queues",
        "nic.interrupt_cpus",
        "network.errors",
        "network.drops",
        "network.backlog_drops",
        "network.budget_squeezes",
        "network.resolve_s",
        "network.retransmitted_ratio",
        "firewall.tracked_connections",
        "time.offset_s",
    }
)


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, keyword-only, tolerant of fields of later versions."""


class Operation(Record, frozen=True, kw_only=True):
    """One benchmark of the probe, as its ``--list`` prints it."""

    #: As given to ``--ops``.
    name: str
    #: Which probe runs it: with MPI, with sockets, or none.
    transport: Literal["none", "mpi", "net"]
    #: What one value is: half a round trip, the time of one message in a stream, or the probe's own cost.
    quantity: Literal["half_round_trip_time", "message_time", "overhead_time"]
    #: A recorded value in nanoseconds divided by this is the quantity above.
    divisor: float
    #: Whether every iteration is timed or the visit as a whole; a launch may fall back to the visit.
    timing: Literal["iteration", "batch"]
    #: Smallest message it can send.
    min_size_bytes: int
    #: Largest message it can send.
    max_size_bytes: int
    #: Datagrams may be lost; then they are counted.
    lossy: bool
    #: One line for people.
    summary: str


class Cell(Record, frozen=True, kw_only=True, order=True):
    """What one figure is about: an operation at a size, between two nodes, under a setting."""

    op: str
    size_bytes: int
    pair: Pair
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
    #: Fraction of the time in which some process that wanted to run had to wait for a CPU (0–1).
    cpu_wait_ratio: float | None = None
    #: Context switches of the node.
    context_switches_per_s: float | None = None
    #: Mean frequency of the CPUs, after the launch.
    cpu_frequency_hz: float | None = None
    #: Growth of the interface's error and drop counters during the launch, by counter name.
    nic_errors: dict[str, int] = {}
    #: Why a field above is unknown, by field name.
    unknown: dict[str, str] = {}


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


class Sample(Record, frozen=True, kw_only=True):
    """All values of one cell in one launch."""

    launch: str
    cell: Cell
    #: Whether a value is an iteration or the mean of a visit.
    timing: Literal["iteration", "batch"]
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
    #: Medians of the warm-up visits [ns], kept apart.
    warmup_medians_ns: list[float]
    #: False when the visits had not settled by the end of the warm-up.
    warmup_settled: bool
    lost: int = 0
    corrupt: int = 0


class Launch(Record, frozen=True, kw_only=True):
    """One fresh probe session: the unit of replication."""

    id: str
    index: int
    op: str
    pair: Pair
    setting: Setting
    #: A scout only finds out where sizes must be added; estimates use the launches that measure.
    purpose: Literal["scout", "measure"] = "measure"
    #: Message sizes it visited.
    sizes_bytes: list[int]
    #: Seed of its random order.
    seed: int
    #: ISO 8601, UTC.
    started_at: str
    #: From the start of its processes to their end.
    duration_s: float
    #: Whether it came to its end.
    status: Literal["ok", "failed"]
    #: Names the node and the reason when the status is ``failed``.
    error: str | None
    #: Nodes that could not be reached before or after it.
    unreachable: list[str] = []
    #: Command line on the first node.
    argv: list[str]
    #: What the probe said of itself; null when it did not get that far.
    probe: ProbeInfo | None
    #: What else happened on its nodes.
    context: list[NodeContext]
    #: Why this launch is suspect (foreign load, steal, NIC errors); empty when it is clean.
    contamination: list[str]


class LaunchResult(Record, frozen=True, kw_only=True, tag="launch"):
    """A launch with its samples, as one line of the log: it is there as a whole or not at all."""

    #: The launch.
    launch: Launch
    #: One per size; empty for a failed launch.
    samples: list[Sample]


LogRecord = NodeRecord | LaunchResult


class Plan(Record, frozen=True, kw_only=True):
    """What a run is going to measure."""

    #: Operations, in the order they were named.
    ops: list[str]
    #: Pairs of nodes; the first of each measures.
    pairs: list[Pair]
    #: Name of the ladder of message sizes.
    ladder: str
    #: Sizes to begin with; an adaptive ladder adds more.
    sizes_bytes: list[int]
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
    #: Visits of every size within a launch.
    sweeps: int
    #: Length of a visit that is aimed at.
    visit_us: int
    #: Seed of all random orders of the run.
    seed: int


class Manifest(Record, frozen=True, kw_only=True):
    """Head of a run directory; replaced atomically whenever it changes."""

    schema_version: int
    #: Name of the run.
    id: str
    #: ISO 8601, UTC.
    created_at: str
    #: ISO 8601, UTC: last change of the manifest.
    updated_at: str
    #: ``budget``: the budget ended it before all was precise.
    status: Literal["running", "complete", "budget", "interrupted", "failed"]
    #: Version that began the run.
    wulf_version: str
    #: As it was typed.
    command_line: list[str]
    #: What is measured, and how.
    plan: Plan
    #: The operations of the plan, as the probe describes them.
    operations: list[Operation]
    #: Text of the cluster file in use, or of what was made up in its place.
    cluster: str
    #: Versions and build facts: python, MPI library, compiler, probe hash …
    software: dict[str, FactValue]
    #: Times at which the run was resumed.
    resumed_at: list[str] = []
    #: Why it failed.
    message: str | None = None


# --- derived: everything below is computed from the records above and can be computed again -------------


class Estimate(Record, frozen=True, kw_only=True):
    """A figure with its interval. No number leaves the statistics without one."""

    #: The figure.
    value: float
    #: Lower bound of the interval; null when it is not determined.
    low: float | None
    #: Upper bound of the interval; null when it is not determined.
    high: float | None
    #: Of the interval (0.95).
    confidence: float
    #: ``s``, ``B/s``, ``s/B``, ``B`` or ``ratio``.
    unit: str
    #: Number of independent replicates (launches) behind it.
    n: int
    #: How the figure and its interval were made.
    method: str

    @property
    def half_width_ratio(self) -> float | None:
        """Half the interval's width relative to the value; None when unknown."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


class LaunchPoint(Record, frozen=True, kw_only=True):
    """Quantiles of one launch of a cell [s]."""

    launch: str
    index: int
    #: Median of the launch.
    median_s: float
    #: min, p5 … p99.9, max of the launch.
    quantiles_s: dict[str, float]
    #: Modes of the values within the launch.
    modes: int
    #: Whether the launch ran beside foreign load.
    contaminated: bool


class CellEstimate(Record, frozen=True, kw_only=True):
    """One row of the result."""

    #: What the figures are about.
    cell: Cell
    #: Median over launches of the launch medians [s].
    time: Estimate
    #: size / time; None for a size of zero or an operation that moves nothing [B/s].
    bandwidth: Estimate | None
    #: Quantiles over all iterations of all launches [s]: min p5 p25 p50 p75 p95 p99 p99.9 max.
    quantiles_s: dict[str, float]
    #: One point per launch, in time order.
    launches: list[LaunchPoint]
    #: Of all launches.
    iterations: int
    #: Values beyond Tukey's outer fences of their launch (3 interquartile ranges); counted, not dropped.
    outlying: int = 0
    lost: int
    corrupt: int
    #: 1 when the launch medians form one cluster, more when there are several.
    modes_between: int
    #: Precision that was wanted, relative.
    target: float
    #: Whether half the interval's width is within the target.
    reached: bool
    notes: list[str] = []


class Segment(Record, frozen=True, kw_only=True):
    """One straight piece of time against size."""

    #: Smallest measured size of the segment.
    first_size_bytes: int
    #: Largest measured size of the segment.
    last_size_bytes: int
    #: Where its line meets the axis.
    intercept: Estimate
    #: Time per byte.
    slope: Estimate
    #: Where the next segment begins; None for the last one.
    breakpoint_bytes: int | None
    #: Sizes between which the break lies, and what it is likely to be.
    breakpoint_interval: tuple[int, int] | None
    #: What a break there usually comes from; null when nothing is known.
    cause: str | None


class LineFit(Record, frozen=True, kw_only=True):
    """T = α + m/β."""

    #: Robust (Theil–Sen) or ordinary least squares.
    method: Literal["theil-sen", "least-squares"]
    #: Intercept α.
    alpha: Estimate
    #: Slope 1/β.
    inverse_beta: Estimate
    #: Coefficient of determination.
    r_squared: float
    #: Spread of the residuals: median absolute deviation × 1.4826, or standard error.
    residual_spread_s: float
    #: (size [B], fitted time [s], prediction low [s], prediction high [s])
    curve: list[tuple[float, float, float, float]]


class CurveModel(Record, frozen=True, kw_only=True):
    """The models of one operation between one pair of nodes."""

    op: str
    pair: Pair
    setting: Setting
    #: Hockney's line by robust regression; null when not identifiable.
    robust: LineFit | None
    #: Hockney's line by least squares; null when not identifiable.
    least_squares: LineFit | None
    #: Straight pieces, ascending in size.
    segments: list[Segment]
    #: Time of an empty message.
    zero_byte_latency: Estimate | None
    #: Inverse slope of the last segment.
    asymptotic_bandwidth: Estimate | None
    #: Size at which half of that bandwidth is reached.
    n_half_bytes: Estimate | None
    notes: list[str] = []


class Advice(Record, frozen=True, kw_only=True):
    """Something the reader must know, with what to do about it."""

    #: What it is about.
    kind: Literal[
        "not_reached",
        "contaminated",
        "scheduler_tick",
        "shared_cpu",
        "bimodal",
        "lost",
        "corrupt",
        "failed_launch",
        "unreachable_node",
        "clock_cost",
        "few_launches",
        "warmup",
        "drift",
    ]
    #: How bad it is.
    severity: Literal["error", "warning", "note"]
    #: Operation, pair or node.
    subject: str
    #: What is the case.
    text: str
    #: What to do about it.
    advice: str


class Analysis(Record, frozen=True, kw_only=True):
    """All that is derived from a run."""

    schema_version: int
    #: Name of the run.
    run_id: str
    #: One per operation, pair and size.
    cells: list[CellEstimate]
    #: One per operation and pair.
    models: list[CurveModel]
    #: What a reader must know, the worst first.
    warnings: list[Advice]
    #: Launches of any kind and outcome that the run had when this was derived.
    launches_seen: int = -1
    #: Launches that the figures are made of.
    launches_ok: int
    #: Launches that failed.
    launches_failed: int
    #: Launches that ran beside foreign load.
    launches_contaminated: int


class CellComparison(Record, frozen=True, kw_only=True):
    """Shift of one cell from the first run to another."""

    op: str
    #: −1 in a figure that is pooled over sizes and pairs.
    size_bytes: int
    pair: Pair
    #: Candidate ÷ base of the time; below 1 is faster. Hodges–Lehmann on logarithms.
    ratio: Estimate
    #: Mann–Whitney, two-sided.
    p_value: float
    #: After Benjamini–Hochberg over the cells compared.
    p_adjusted: float
    #: Of this cell.
    verdict: Verdict


class Comparison(Record, frozen=True, kw_only=True):
    """Two runs against each other."""

    schema_version: int
    #: Name of the first run.
    base: str
    #: Name of the other run.
    candidate: str
    #: Facts that differ between the runs: name → (base, candidate).
    differing_facts: dict[str, tuple[str, str]]
    #: One per cell that both runs have.
    cells: list[CellComparison]
    #: Operation → all its sizes and pairs together, one vote per launch.
    pooled: dict[str, CellComparison]
    #: The effect these runs could have shown at best (A/A limit), as a ratio above 1.
    smallest_effect: float | None
    #: Relative difference that does not matter.
    margin: float
    #: Of the whole comparison.
    verdict: Verdict
    #: Why this verdict.
    reason: str


class Finding(Record, frozen=True, kw_only=True):
    """Something about some nodes that is not as it should be, with what to do about it."""

    #: Id of the check, the knob or the rule.
    id: str
    #: A check of each node, a knob's recommended value, or nodes that differ from the others.
    kind: Literal["check", "knob", "consistency"]
    title: str
    severity: Literal["fail", "warn", "info"]
    #: What it costs: latency, bandwidth, stability, security.
    costs: list[str]
    #: Expected effect of mending it, as a share of the metric (0–1); orders the findings.
    effect: float
    #: Where it is so.
    nodes: list[str]
    #: What is.
    found: str
    #: What should be.
    wanted: str
    #: Why, in words.
    why: str
    #: The command that would change it now; empty where no single one does.
    fix: str
    #: The file or mechanism that would keep it.
    keep: str
    #: What may go wrong when it is changed.
    risk: str
    #: Where the claim comes from.
    evidence: list[str]


class Judgement(Record, frozen=True, kw_only=True):
    """What one check says of some nodes. There is one for every node: nothing passes silently."""

    id: str
    title: str
    status: Literal["ok", "finding", "unknown", "not applicable"]
    #: Why it is unknown or not applicable.
    reason: str
    nodes: list[str]


class GroupState(Record, frozen=True, kw_only=True):
    """Whether a group of facts of some nodes is like the other nodes'."""

    group: str
    state: Literal["same", "odd", "unknown"]
    #: Names of the facts that differ or are unknown.
    facts: list[str]
    nodes: list[str]


class Audit(Record, frozen=True, kw_only=True):
    """The result of ``wulf audit``."""

    #: latency, throughput or hpc.
    profile: str
    #: All nodes that were asked.
    nodes: list[str]
    #: Node → why nothing is known of it.
    unreachable: dict[str, str]
    #: By severity, then by expected effect.
    findings: list[Finding]
    judgements: list[Judgement]
    #: Groups of facts × nodes, folded.
    matrix: list[GroupState]
