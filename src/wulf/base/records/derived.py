"""What is computed from a run and can be computed again."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from wulf.base.must_see import must_see
from wulf.base.records.base import Estimate, Place, Record, Setting, Verdict
from wulf.base.records.host import HostNoise
from wulf.base.records.measured import Cell
from wulf.base.units import undoing


class LaunchPoint(Record, frozen=True, kw_only=True):
    """Quantiles of one launch of a cell [s]."""

    launch: str
    index: int
    #: Median of the launch.
    median_s: float
    #: min, p5 … p99.9, max of the launch.
    quantiles_s: dict[str, float]
    #: How many values these are quantiles of; 0 where that was not kept.
    values: int = 0
    #: Modes of the values within the launch.
    modes: int
    #: (median [s], share of the values) of each mode, ascending; empty where there is one.
    modes_at: list[tuple[float, float]] = []
    #: Whether the launch ran under other load.
    contaminated: bool
    #: Of its nodes, how busy the busiest CPU was (0–1); null where that is not known.
    busiest_cpu_ratio: float | None = None
    #: Time of the node-local reference of the launch [s]; null where none was made.
    reference_s: float | None = None


class Adjusted(Record, frozen=True, kw_only=True):
    """A cell's time at one time of the node-local reference: what it is while the nodes are as fast as that says."""

    #: Median over all launches, each moved along the slope to the stated reference and to no other load [s].
    time: Estimate
    #: The stated time of the reference [s]: figures are comparable where it is the same.
    reference_s: float
    #: Relative change of the time for a small relative change of the reference.
    slope: Estimate
    #: Variance of the operation's launches without ÷ with the adjustment.
    gain: float


class CellMode(Record, frozen=True, kw_only=True):
    """One of two times that a message takes within the same launch."""

    #: Median over launches of the mode's median [s].
    time_s: float
    #: Smallest of these launches [s].
    low_s: float
    #: Largest of these launches [s].
    high_s: float
    #: Share of the values of a launch, median over launches (0–1).
    share: float


class ExitEstimate(Record, frozen=True, kw_only=True):
    """When the ranks of a collective were done, over all launches."""

    #: Rank → median over launches of its time from the common start to its exit [s]; beside a computation beyond that.
    ranks_s: list[float]
    #: Share of the iterations that do not count, as some rank began too late (0–1).
    late: float
    #: How late a rank may have been for one that counts, median over visits [s]; 0 without a common time.
    tolerance_s: float
    #: How far two comparisons of the ranks' clocks differed: median over visits, and the largest [s].
    clock_error_s: float
    clock_error_max_s: float


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
    #: How much wider the interval of the time is than that of as many independent launches; 1 where they are too few
    #: to tell (`Plan.tested_launches`).
    widened: float = 1.0
    #: Launches within which the values have several modes.
    launches_with_modes: int = 0
    #: Fastest and slowest mode within these launches; empty where they are few (less than a fifth) or less than 10 %
    #: apart.
    modes_within: list[CellMode] = []
    #: Times between which nine of ten launch medians lie [s], where they form several groups or lie further from the
    #: middle than five times the wanted precision: then no single figure describes the cell. Null where one does.
    range_s: tuple[float, float] | None = None
    #: 1 when the launch medians form one cluster, more when there are several.
    modes_between: int
    #: Precision that was wanted, relative.
    target: float
    #: Whether half the interval's width is within the target; true in a series, which has none.
    reached: bool
    #: The time with what the reference explains taken out; null where that is not proven to help.
    adjusted: Adjusted | None = None
    #: Of a collective; null for others.
    exits: ExitEstimate | None = None
    #: Of a file's bytes the share (0–1) that were in the nodes' memory, before they were read or after they were
    #: written: median over launches. Null where no file is touched, or no node says it.
    in_memory: float | None = None
    notes: list[str] = []


class Segment(Record, frozen=True, kw_only=True):
    """One straight piece of time against size."""

    #: Smallest measured size of the segment.
    first_size_bytes: int
    #: Largest measured size of the segment.
    last_size_bytes: int
    #: Where its line meets the axis; null when the data do not determine it.
    intercept: Estimate | None
    #: Time per byte; null when the data do not determine it.
    slope: Estimate | None
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
    """The models of one operation between the nodes of one place."""

    op: str
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
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


class LogGP(Record, frozen=True, kw_only=True):
    """LogGP's parameters of a message between two ranks (Alexandrov and others, 1995); null where it is not known."""

    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    setting: Setting
    #: L: what is left of the time of the smallest message without what both calls take [s].
    latency: Estimate | None = None
    #: o_s: what MPI_Send takes by itself, of the smallest message [s].
    send_overhead: Estimate | None = None
    #: o_r: what MPI_Recv takes of a message that has arrived, of the smallest [s].
    receive_overhead: Estimate | None = None
    #: g: time between two messages one after the other, however small [s].
    gap: Estimate | None = None
    #: G: what each byte adds to that [s/B].
    gap_per_byte: Estimate | None = None
    #: Largest measured size that was sent eagerly and smallest that waited for its receiver [B]; null where one of
    #: them was not seen.
    eager_limit: tuple[int, int] | None = None
    #: The MPI library's own limit that lies there: its name and size [B].
    eager_limit_said: tuple[str, int] | None = None
    #: What is not known, and why.
    notes: list[str] = []


class Advice(Record, frozen=True, kw_only=True):
    """Something the reader must know, with what to do about it."""

    #: What it is about.
    kind: Literal[
        "not_reached",
        "contaminated",
        "late_starts",
        "order_effect",
        "scheduler_tick",
        "shared_cpu",
        "bimodal",
        "modes",
        "lost",
        "corrupt",
        "failed_launch",
        "unreachable_node",
        "left_out_node",
        "not_begun",
        "one_machine",
        "clock_cost",
        "few_launches",
        "warmup",
        "drift",
        "dependent",
        "not_tested",
        "one_run",
        "company",
        "adjusted",
        "files_in_memory",
        "files_remote",
        "files_unknown",
        "files_kept",
        "files_cached",
    ]
    #: How bad it is.
    severity: Literal["error", "warning", "note"]
    #: Operation, pair or node.
    subject: str
    #: What is the case.
    text: str
    #: What to do about it.
    advice: str


class Overhead(Record, frozen=True, kw_only=True):
    """What an operation costs over another that was measured between the same nodes in the same run."""

    op: str
    #: What it is held against.
    base: str
    size_bytes: int
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    #: Of which statistic of a launch: ``p50`` is its median.
    quantile: str = "p50"
    #: Time of what it is held against [s].
    base_s: float
    #: Time ÷ that time.
    ratio: Estimate


class Overlap(Record, frozen=True, kw_only=True):
    """How much of a non-blocking operation goes on during a computation that lasts as long as it does alone."""

    #: The operation beside the computation.
    op: str
    #: The same operation without it.
    base: str
    size_bytes: int
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    #: Time of the operation without the computation [s].
    base_s: float
    #: 1 − time that did not overlap ÷ that time; below 0 where computing delays it.
    share: Estimate


class Resources(Record, frozen=True, kw_only=True):
    """What a launch of a command takes of the node that it is started on: medians over launches."""

    op: str
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    #: Time of CPUs [s]; null where the node's shell does not say.
    cpu: Estimate | None
    #: The part of it in the kernel [s].
    kernel: Estimate | None
    #: CPUs that it keeps busy on average: their time ÷ run time.
    busy: Estimate | None
    #: Memory of its largest process [B]; null where GNU time is not installed.
    peak: Estimate | None
    #: Energy of the CPUs of all its nodes and their memory, by their counters (RAPL), from just before to just after a
    #: launch [J]; null where not all nodes say it, or a launch is short beside that.
    cpu_energy: Estimate | None = None
    #: Node → what was looked at and does not say it, where it is null.
    energy_lacks: dict[str, str] = {}


class PeriodEstimate(Record, frozen=True, kw_only=True):
    """A cell in one part of the week or of the day."""

    cell: Cell
    #: ``weekday``, ``weekend`` (Saturday and Sunday), or the hour of the day (``00`` to ``23``); in the local time of
    #: the controller.
    period: str
    #: Different days that its launches were made on.
    days: int
    #: Median over launches of the launch medians [s].
    time: Estimate
    #: Quantiles over all iterations of its launches [s], as those of a cell.
    quantiles_s: dict[str, float]
    #: Of its launches.
    iterations: int


class WeekendRatio(Record, frozen=True, kw_only=True):
    """What the weekend changes of a cell."""

    cell: Cell
    #: Time on weekdays [s].
    weekday_s: float
    #: Time at the weekend ÷ time on weekdays.
    ratio: Estimate
    #: Different days that its launches were made on.
    weekdays: int
    #: The same of the weekend.
    weekend_days: int


class Analysis(Record, frozen=True, kw_only=True):
    """All that is derived from a run."""

    schema_version: int
    #: Name of the run.
    run_id: str
    #: One per operation, pair and size.
    cells: list[CellEstimate]
    #: One per operation and pair.
    models: list[CurveModel]
    #: One for each place of which calls or gaps were measured.
    parameters: list[LogGP] = []
    #: MPI over TCP, where a run has both.
    overheads: list[Overhead] = []
    #: Requests under load over those without, where a run has both.
    loads: list[Overhead] = []
    #: Overlap of non-blocking operations with a computation, where a run has them with and without.
    overlaps: list[Overlap] = []
    #: What commands take of their node.
    resources: list[Resources] = []
    #: What the nodes do by themselves, one for each where that was measured.
    hosts: list[HostNoise] = []
    #: Of a series: every cell on weekdays, at the weekend and at each hour of the day.
    periods: list[PeriodEstimate] = []
    #: Of a series: the weekend against weekdays, where both have the launches that an interval takes.
    weekends: list[WeekendRatio] = []
    #: What a reader must know, the worst first.
    warnings: list[Advice]
    #: Launches of any kind and outcome that the run had when this was derived.
    launches_seen: int = -1
    #: Launches that the figures are made of.
    launches_ok: int
    #: Launches that failed.
    launches_failed: int
    #: Launches that ran under other load.
    launches_contaminated: int


class CellComparison(Record, frozen=True, kw_only=True):
    """Shift of one cell from the first run to another."""

    op: str
    #: −1 in a figure that is pooled over sizes and pairs.
    size_bytes: int
    #: Node of every rank, in rank order.
    place: Place = msgspec.field(name="pair")
    #: Candidate ÷ base of the time; below 1 is faster. Hodges–Lehmann on logarithms.
    ratio: Estimate
    #: Two-sided: Mann–Whitney of separate runs, Wilcoxon's signed ranks of interleaved launches.
    p_value: float
    #: After Benjamini–Hochberg over the cells compared.
    p_adjusted: float
    #: Of this cell.
    verdict: Verdict
    #: Of interleaved launches: times of base and candidate of each pair of launches [s], in time order.
    pairs_s: list[tuple[float, float]] = []


class AdjustedRatio(Record, frozen=True, kw_only=True):
    """What an operation's change is when both runs are brought to the same time of the node-local reference."""

    #: Candidate ÷ base of the reference.
    reference: Estimate
    #: Candidate ÷ base of the time at the same reference; null where that is not to be told.
    ratio: Estimate | None = None
    #: Why it is not.
    reason: str = ""


class Comparison(Record, frozen=True, kw_only=True):
    """Two runs, or two settings in turn, against each other."""

    schema_version: int
    #: Name of the first run, or what was first named.
    base: str
    #: Name of the other.
    candidate: str
    #: ``runs`` were measured at different times; ``interleaved`` launches of both took turns in random order.
    design: Literal["runs", "interleaved"] = "runs"
    #: A change up to this, as a share, is not told from what else makes two runs differ; 0 for interleaved launches.
    offset: float = 0.0
    #: Launches that failed, each reason once with how often: of base and candidate.
    failures: tuple[dict[str, int], dict[str, int]] = ({}, {})
    #: Facts that differ between the runs: ``node: fact`` → (base, candidate); one ``node: all facts`` where a node was
    #: looked at in one run only.
    differing_facts: dict[str, tuple[str, str]]
    #: One per cell that both runs have.
    cells: list[CellComparison]
    #: Operation → pairs, groups or nodes of which only one run has figures of it: of base and candidate.
    unshared: tuple[dict[str, list[Place]], dict[str, list[Place]]] = ({}, {})
    #: Operation → all its sizes and pairs together, one vote per launch.
    pooled: dict[str, CellComparison]
    #: Smallest decrease of the time that these runs could have shown, as a share (0.03 = −3 %), of the operation that
    #: shows least; null where none is known.
    smallest_effect: float | None
    #: Operation → the same for it alone; null where its launches depend on each other or have no interval.
    smallest_effects: dict[str, float | None] = {}
    #: Relative difference that does not matter.
    margin: float
    #: Of the whole comparison.
    verdict: Verdict
    #: Why this verdict.
    reason: str
    #: Operation → the same change, adjusted by the reference; the verdict is made of the raw one.
    adjusted: dict[str, AdjustedRatio] = {}

    @property
    def untold(self) -> list[str]:
        """Operations of which nothing is said, and a change that matters would have gone unseen.

        What matters is what `wulf.base.must_see` says, of the smallest change of any of its sizes.
        """
        sizes: dict[str, list[int]] = {}
        for cell in self.cells:
            sizes.setdefault(cell.op, []).append(cell.size_bytes)
        return [
            op
            for op, found in self.pooled.items()
            if found.verdict == "no decision" and not self._seen(op) <= min(map(must_see, sizes.get(op, [0])))
        ]

    def _seen(self, op: str) -> float:
        """Return the increase of an operation's time that would have been seen, as a share."""
        effect = self.smallest_effects.get(op, self.smallest_effect)
        return math.inf if effect is None else undoing(effect)
