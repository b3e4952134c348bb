"""What a tuning run plans, measures and concludes."""

from __future__ import annotations

from typing import Literal

from wulf.records.base import Record, Verdict
from wulf.records.derived import Estimate
from wulf.records.measured import NodeRecord, RunHead, Workload

#: Knob id → value; a knob that is not in it has its original value.
Values = dict[str, str]
Phase = Literal["control", "screening", "refinement", "forward", "backward", "confirmation"]


class ProbeFigure(Record, frozen=True, kw_only=True):
    """What of the probe's output a metric is."""

    op: str
    size_bytes: int
    #: Of the iterations of one launch.
    statistic: Literal["median", "p99"] = "median"


class Metric(Record, frozen=True, kw_only=True):
    """One figure of every trial."""

    #: Such as ``mpi_pingpong 1 B`` or ``run time``.
    name: str
    #: What it is a measure of: ``ping-pong``, ``stream``, ``broadcast``, ``application`` …
    pattern: str
    #: ``s``, ``B/s`` or the application's own.
    unit: str
    better: Literal["lower", "higher"]
    #: Share in the objective; 0 for a figure that is only watched.
    weight: float
    #: Must not become worse, whatever the objective gains.
    guard: bool = False
    #: What of the probe's output it is; null for the value of the command of this name.
    figure: ProbeFigure | None = None


class Candidate(Record, frozen=True, kw_only=True):
    """A knob that may be changed, and the values worth trying."""

    #: Id of the knob.
    knob: str
    #: As the nodes have it; ``a (2×), b`` where they differ.
    original: str
    #: Values to try; the original is not among them.
    values: list[str]
    #: Values are numbers with an order: the search may try others between the best and its neighbours.
    numeric: bool = False
    #: Expected effect of the best value, as a share of the metric; orders the search.
    effect: float = 0.0
    #: What one change of it costs [s].
    toggle_s: float = 0.0
    #: What may go wrong.
    risk: str = ""


class TunePlan(Record, frozen=True, kw_only=True):
    """What a tuning run is going to do."""

    #: As the user named it: latency, bandwidth, ``app: CMD`` or a file.
    objective: str
    metrics: list[Metric]
    candidates: list[Candidate]
    #: Time after which no trial is started [s].
    budget_s: float
    #: Expected length of one trial [s].
    trial_s: float
    #: Relative change of the objective that does not matter.
    margin: float
    #: Share of the kept settings that may be kept by chance (false-discovery rate).
    false_discovery: float
    confidence: float
    #: Blocks of a comparison, at least and at most.
    min_blocks: int
    max_blocks: int
    #: Of all random orders.
    seed: int


class Trial(Record, frozen=True, kw_only=True, tag="trial"):
    """One complete measuring cycle under one setting: the unit of replication."""

    #: In time order, from 0.
    index: int
    phase: Phase
    #: Counts the steps of a phase, from 0.
    round: int
    #: Trials of a block are neighbours in time and are compared with each other.
    block: int
    #: What is set.
    setting: Values
    #: ISO 8601, UTC.
    started_at: str
    duration_s: float
    status: Literal["ok", "failed"]
    #: Why it failed; a setting under which nothing can be measured is one not to keep.
    error: str | None = None
    #: Metric → value, in the metric's unit.
    values: dict[str, float] = {}
    #: Time of the node-local reference within the trial [s], geometric mean over its launches; null where there was
    #: none.
    reference: float | None = None
    #: Why it is suspect (foreign load, steal); empty when it is clean.
    contamination: list[str] = []


class Control(Record, frozen=True, kw_only=True):
    """What this cluster can show: the same setting against itself."""

    #: Blocks of two trials each.
    blocks: int
    trials: int
    #: Second ÷ first of the objective; should hold 1.
    ratio: Estimate
    #: Spread of one trial of the objective, relative (1.4826 × median absolute deviation within blocks).
    spread: float
    #: Smallest effect a comparison of `effect_blocks` blocks can show, as a share: 0.03 is a decrease
    #: of the time by 3 %.
    smallest_effect: float
    effect_blocks: int
    #: Trials depend on each other beyond what blocks take out.
    drifting: bool


class Effect(Record, frozen=True, kw_only=True):
    """What one setting does on top of another."""

    phase: Phase
    round: int
    #: Knob and value that were compared; in the backward phase the knob that was left out. Empty for a whole set.
    knob: str
    value: str
    #: The setting it was compared with.
    base: Values
    #: The setting that was tried.
    tried: Values
    #: Tried ÷ base of the objective as a time: below 1 is better, whatever the metrics' direction.
    ratio: Estimate
    p_value: float
    #: After Benjamini–Hochberg over all comparisons so far of its family: the search, the backward check, or the
    #: confirmation.
    p_adjusted: float
    verdict: Verdict
    #: Blocks (pairs of values) behind it.
    blocks: int
    #: Trials of the tried setting that succeeded, and that failed.
    trials: int
    failed: int = 0
    #: Metric → tried ÷ base as a cost: below 1 is better also where higher values are.
    metrics: dict[str, Estimate] = {}
    #: Pattern → verdict over its metrics.
    patterns: dict[str, Verdict] = {}
    #: Guard metrics that became worse.
    harmed: list[str] = []
    #: Why it has this verdict, in a few words.
    note: str = ""


class PathStep(Record, frozen=True, kw_only=True):
    """One step of the search: what is set from here on."""

    phase: Phase
    round: int
    action: Literal["start", "keep", "drop", "refine", "confirm", "revert"]
    #: Empty for the start and for whole sets.
    knob: str = ""
    value: str = ""
    #: The setting after this step.
    setting: Values
    #: Objective against the original settings, chained over the steps' effects; confirmation measures it directly.
    ratio: Estimate | None = None
    reason: str = ""


class Tuning(Record, frozen=True, kw_only=True):
    """The conclusion of a search; while it goes on, what is known so far."""

    schema_version: int
    #: Name of the run.
    run_id: str
    #: ``search``: not at its end (budget or interruption).
    status: Literal["complete", "budget", "interrupted", "failed", "search"]
    control: Control | None
    #: Every comparison, in the order in which they were decided.
    effects: list[Effect]
    path: list[PathStep]
    #: What the search decided to keep; empty when nothing is proven to help.
    kept: Values
    #: The kept set against the original settings, in fresh blocks; None when nothing was to be confirmed.
    confirmation: Effect | None
    trials_used: int
    #: Trials that every combination of the planned values would take, each as often as a clear effect is measured.
    trials_factorial: int
    #: What a reader must know.
    notes: list[str] = []


class TuneManifest(RunHead, frozen=True, kw_only=True):
    """Head of a tuning run."""

    plan: TunePlan
    #: Of every trial.
    workload: Workload
    #: latency, throughput or hpc: what the catalogue recommends was chosen for.
    profile: str
    nodes: list[str]
    #: Facts of the nodes before the first change.
    records: list[NodeRecord]
    #: Knob → why it was not tried.
    left_out: dict[str, str] = {}
    #: The confirmed change on the nodes that set what is kept; null when nothing was set.
    change: str | None = None
    #: Knob → file or mechanism that keeps it over a reboot.
    stored: dict[str, str] = {}
