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


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all records: immutable, keyword-only, tolerant of fields of later versions."""


class Operation(Record, frozen=True, kw_only=True):
    """One benchmark of the probe, as its ``--list`` prints it."""

    name: str
    transport: Literal["none", "mpi", "net"]
    #: What one value is: half a round trip, the time of one message in a stream, or the probe's own cost.
    quantity: Literal["half_round_trip_time", "message_time", "overhead_time"]
    #: A recorded value in nanoseconds divided by this is the quantity above.
    divisor: float
    timing: Literal["iteration", "batch"]
    min_size_bytes: int
    max_size_bytes: int
    #: Datagrams may be lost; then they are counted.
    lossy: bool
    summary: str


class Cell(Record, frozen=True, kw_only=True, order=True):
    """What one figure is about: an operation at a size, between two nodes, under a setting."""

    op: str
    size_bytes: int
    pair: Pair
    setting: Setting = "default"


class Clock(Record, frozen=True, kw_only=True):
    """The probe's clock on the measuring rank: its resolution and the cost of one reading."""

    source: str
    resolution_ns: float
    cost_ns: float


class ProbeInfo(Record, frozen=True, kw_only=True):
    """The ``hello`` line of a launch: which probe, which library, where the ranks ran."""

    version: str
    protocol: int
    mpi: str | None
    hosts: list[str]
    #: The CPUs each rank may run on, in rank order.
    cpus: list[list[int]]
    clock: Clock
    #: Ranks give the CPU away while they wait, because they share it.
    yields: bool = False


class NodeContext(Record, frozen=True, kw_only=True):
    """What happened on a node around one launch, beside the launch itself."""

    node: str
    #: Time between the looks at the node before and after the launch [s].
    interval_s: float | None = None
    load1: float | None = None
    #: Fraction of the node's CPU time taken by the hypervisor (0–1).
    steal_ratio: float | None = None
    #: Fraction of the CPU time used by processes that do not belong to the launch (0–1).
    foreign_cpu_ratio: float | None = None
    #: Fraction of the time in which some process that wanted to run had to wait for a CPU (0–1).
    cpu_wait_ratio: float | None = None
    context_switches_per_s: float | None = None
    cpu_frequency_hz: float | None = None
    #: Growth of the interface's error and drop counters during the launch, by counter name.
    nic_errors: dict[str, int] = {}
    #: Why a field above is unknown, by field name.
    unknown: dict[str, str] = {}


class NodeRecord(Record, frozen=True, kw_only=True, tag="node"):
    """Facts of a node at the start of a run (provenance)."""

    node: str
    reachable: bool
    facts: dict[str, FactValue] = {}
    #: Why a fact is unknown, by fact name.
    unknown: dict[str, str] = {}
    error: str | None = None


class Sample(Record, frozen=True, kw_only=True):
    """All values of one cell in one launch."""

    launch: str
    cell: Cell
    timing: Literal["iteration", "batch"]
    #: A recorded value in nanoseconds divided by this is the operation's quantity.
    divisor: float
    iterations: int
    batch_iterations: int
    #: (value [ns], count), ascending: high dynamic range, 3 significant digits. Nothing is dropped.
    histogram: list[tuple[int, int]]
    min_ns: int
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
    sizes_bytes: list[int]
    seed: int
    started_at: str
    duration_s: float
    status: Literal["ok", "failed"]
    #: Names the node and the reason when the status is ``failed``.
    error: str | None
    argv: list[str]
    probe: ProbeInfo | None
    context: list[NodeContext]
    #: Why this launch is suspect (foreign load, steal, NIC errors); empty when it is clean.
    contamination: list[str]


class LaunchResult(Record, frozen=True, kw_only=True, tag="launch"):
    """A launch with its samples, as one line of the log: it is there as a whole or not at all."""

    launch: Launch
    samples: list[Sample]


LogRecord = NodeRecord | LaunchResult


class Plan(Record, frozen=True, kw_only=True):
    """What a run is going to measure."""

    ops: list[str]
    pairs: list[Pair]
    ladder: str
    #: Sizes to begin with; an adaptive ladder adds more.
    sizes_bytes: list[int]
    max_size_bytes: int
    precision: float
    confidence: float
    budget_s: float
    min_launches: int
    max_launches: int
    sweeps: int
    visit_us: int
    seed: int


class Manifest(Record, frozen=True, kw_only=True):
    """Head of a run directory; replaced atomically whenever it changes."""

    schema_version: int
    id: str
    created_at: str
    updated_at: str
    status: Literal["running", "complete", "budget", "interrupted", "failed"]
    wulf_version: str
    command_line: list[str]
    plan: Plan
    operations: list[Operation]
    #: Text of the cluster file in use, or of what was made up in its place.
    cluster: str
    #: Versions and build facts: python, MPI library, compiler, probe hash …
    software: dict[str, FactValue]
    #: Times at which the run was resumed.
    resumed_at: list[str] = []
    message: str | None = None


# --- derived: everything below is computed from the records above and can be computed again -------------


class Estimate(Record, frozen=True, kw_only=True):
    """A figure with its interval. No number leaves the statistics without one."""

    value: float
    low: float | None
    high: float | None
    confidence: float
    unit: str
    #: Number of independent replicates (launches) behind it.
    n: int
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
    median_s: float
    quantiles_s: dict[str, float]
    modes: int
    contaminated: bool


class CellEstimate(Record, frozen=True, kw_only=True):
    """One row of the result."""

    cell: Cell
    #: Median over launches of the launch medians [s].
    time: Estimate
    #: size / time; None for a size of zero or an operation that moves nothing [B/s].
    bandwidth: Estimate | None
    #: Quantiles over all iterations of all launches [s]: min p5 p25 p50 p75 p95 p99 p99.9 max.
    quantiles_s: dict[str, float]
    launches: list[LaunchPoint]
    iterations: int
    #: Values beyond Tukey's outer fences of their launch (3 interquartile ranges); counted, not dropped.
    outlying: int = 0
    lost: int
    corrupt: int
    #: 1 when the launch medians form one cluster, more when there are several.
    modes_between: int
    target: float
    reached: bool
    notes: list[str] = []


class Segment(Record, frozen=True, kw_only=True):
    """One straight piece of time against size."""

    first_size_bytes: int
    last_size_bytes: int
    intercept: Estimate
    slope: Estimate
    #: Where the next segment begins; None for the last one.
    breakpoint_bytes: int | None
    #: Sizes between which the break lies, and what it is likely to be.
    breakpoint_interval: tuple[int, int] | None
    cause: str | None


class LineFit(Record, frozen=True, kw_only=True):
    """T = α + m/β."""

    method: Literal["theil-sen", "least-squares"]
    alpha: Estimate
    inverse_beta: Estimate
    r_squared: float
    residual_spread_s: float
    #: (size [B], fitted time [s], prediction low [s], prediction high [s])
    curve: list[tuple[float, float, float, float]]


class CurveModel(Record, frozen=True, kw_only=True):
    """The models of one operation between one pair of nodes."""

    op: str
    pair: Pair
    setting: Setting
    robust: LineFit | None
    least_squares: LineFit | None
    segments: list[Segment]
    zero_byte_latency: Estimate | None
    asymptotic_bandwidth: Estimate | None
    n_half_bytes: Estimate | None
    notes: list[str] = []


class Advice(Record, frozen=True, kw_only=True):
    """Something the reader must know, with what to do about it."""

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
    severity: Literal["error", "warning", "note"]
    subject: str
    text: str
    advice: str


class Analysis(Record, frozen=True, kw_only=True):
    """All that is derived from a run."""

    schema_version: int
    run_id: str
    cells: list[CellEstimate]
    models: list[CurveModel]
    warnings: list[Advice]
    launches_ok: int
    launches_failed: int
    launches_contaminated: int


class CellComparison(Record, frozen=True, kw_only=True):
    """Shift of one cell from the first run to another."""

    op: str
    #: −1 in a figure that is pooled over sizes and pairs.
    size_bytes: int
    pair: Pair
    #: Candidate ÷ base of the time; below 1 is faster. Hodges–Lehmann on logarithms.
    ratio: Estimate
    p_value: float
    #: After Benjamini–Hochberg over the cells compared.
    p_adjusted: float
    verdict: Verdict


class Comparison(Record, frozen=True, kw_only=True):
    """Two runs against each other."""

    schema_version: int
    base: str
    candidate: str
    #: Facts that differ between the runs: name → (base, candidate).
    differing_facts: dict[str, tuple[str, str]]
    cells: list[CellComparison]
    pooled: dict[str, CellComparison]
    #: The effect these runs could have shown at best (A/A limit), as a ratio above 1.
    smallest_effect: float | None
    margin: float
    verdict: Verdict
    reason: str
