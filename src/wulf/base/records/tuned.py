"""What a tuning run plans, measures and concludes."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record, Verdict
from wulf.base.records.measured import NodeRecord, RunHead, Workload
from wulf.base.records.procedure import Whole

#: Knob id → value; a knob that is not in it has its original value.
Values = dict[str, str]
Phase = Literal["control", "screening", "refinement", "forward", "backward", "confirmation"]

Statistic = Literal["median", "mean", "p99"]


class ProbeFigure(Record, frozen=True, kw_only=True):
    """What of the probe's output a metric is."""

    op: str
    size_bytes: int
    #: Of the times of one launch. The ``mean`` is that of all its messages, each counted as four medians at most: it
    #: moves as the time of many messages does, and stalls are left to ``p99``. Runs of before there was a mean have
    #: the median.
    statistic: Statistic = "median"


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
    #: As the nodes have it; ``a (2×), b`` where they differ, ``3 (dynamic)`` where it is a mode of the driver.
    original: str
    #: Values to try, the most promising first; one that all nodes have is not among them.
    values: list[str]
    #: Values are numbers with an order: the search may try others between the best and its neighbours. Never where
    #: some number is a mode of a node's driver: between modes there is no scale.
    numeric: bool = False
    #: Value → what it means, of those that are modes.
    meanings: dict[str, str] = {}
    #: Nodes on which the first of the values is a change, folded; the others have it already. Empty for all.
    nodes: str = ""
    #: Expected effect of the best value, as a share of the metric; orders the search.
    effect: float = 0.0
    #: What one change of it costs [s].
    toggle_s: float = 0.0
    #: What may go wrong.
    risk: str = ""
    #: Acts on connections that there are already, so that it can be switched while a probe measures.
    established: bool = False
    #: Changes what a node does by itself, so that its figures must not be adjusted by the node-local reference.
    local: bool = False

    def shown(self, value: str) -> str:
        """Return a value with what it means, where it is a mode: ``1 (dynamic)``."""
        meaning = self.meanings.get(value)
        return f"{value} ({meaning})" if meaning else value


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
    #: Chance that the run says of anything useless that it helps or harms; shared by all values that are tried.
    false_discovery: float
    confidence: float
    #: Of all random orders.
    seed: int
    #: Where two settings can be measured in turn within one launch: how often one of them is made there. 0 where they
    #: cannot.
    dwells: int = 0


class Trial(Record, frozen=True, kw_only=True, tag="trial"):
    """One complete measuring cycle under one setting: the unit of replication."""

    #: In time order, from 0.
    index: int
    phase: Phase
    #: Counts the steps of a phase, from 0.
    round: int
    #: Trials of a block are neighbours in time.
    block: int
    #: What is set.
    setting: Values
    #: Where two settings were measured in turn within the same launches: index of the first of the two trials. Only
    #: their difference says something; both share what is peculiar to the launches.
    within: int | None = None
    #: ISO 8601, UTC.
    started_at: str
    #: With the change.
    duration_s: float
    #: Time that the change from the setting before took [s].
    change_s: float = 0.0
    status: Literal["ok", "failed"]
    #: Why it failed; a setting under which nothing can be measured is one not to keep.
    error: str | None = None
    #: Metric → value, in the metric's unit.
    values: dict[str, float] = {}
    #: Folded pair → metric → its value there, where several pairs were measured; `values` has their geometric mean.
    by_place: dict[str, dict[str, float]] = {}
    #: Why it is suspect (other load, steal); empty when it is clean.
    contamination: list[str] = []
    #: Time of the node-local reference within the trial [s], geometric mean over its launches; null where there was
    #: none.
    reference: float | None = None


class Control(Record, frozen=True, kw_only=True):
    """What this cluster can show: the same setting against itself."""

    #: Blocks of two trials each.
    blocks: int
    trials: int
    #: Second ÷ first of the objective; should hold 1.
    ratio: Estimate
    #: Spread of one trial of the objective, relative (1.4826 × median absolute deviation within blocks).
    spread: float
    #: Smallest effect that the search finds, proves and confirms in nine of ten cases, as a share: 0.03 is a decrease
    #: of the time by 3 %.
    smallest_effect: float
    #: The same of settings that were compared within launches where others were not; null where all were alike.
    smallest_within: float | None = None
    #: Trials behind it with a setting, and as many without.
    effect_blocks: int
    #: Trials of the same setting depend on each other.
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
    #: Times the number of values that are tried (Bonferroni); the confirmation is a single test.
    p_adjusted: float
    verdict: Verdict
    #: Trials with the setting, or without it, whichever are fewer.
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
    #: ``search``: stopped early (budget or interruption).
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
    #: Trials that every combination of the planned values would take, each once.
    trials_factorial: int
    #: What a reader must know.
    notes: list[str] = []
    #: What mending and tuning brought together, where `wulf tune all` did both; only `wulf report --json` says it.
    whole: Whole | None = None


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
