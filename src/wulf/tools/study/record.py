"""What a study compares, what its runs gave, and what follows from them."""

from __future__ import annotations

from typing import Literal

import msgspec

from wulf.base.records.base import Estimate, Record, Verdict
from wulf.base.records.measured import RunHead
from wulf.base.records.tuned import Values

#: How the levels of the factors are put together.
DesignKind = Literal["full", "one at a time", "fractional"]
#: What a metric is measured by.
MetricKind = Literal["operation", "command", "hpl", "jobs"]
#: What a mix of jobs tells: its name → its unit, and which is better.
OF_JOBS: dict[str, tuple[str, Literal["lower", "higher"]]] = {
    "jobs a day": ("jobs/d", "higher"),
    "utilisation": ("ratio", "higher"),
    "turnaround": ("s", "lower"),
}


class StudyLevel(Record, frozen=True, kw_only=True):
    """One of the values of a factor: what it makes different; all else is as it is."""

    name: str
    #: Knob → value on the nodes or of the jobs.
    set: Values = {}
    #: MPI library, as ``--mpi`` takes it.
    mpi: str = ""
    #: BLAS library, as ``wulf bench blas`` names it, or its path.
    blas: str = ""
    #: Variables of every job and command.
    environment: dict[str, str] = {}
    #: Interface that is measured.
    interface: str = ""
    #: A cluster file, or what else ``--cluster`` takes.
    cluster: str = ""
    #: As ``--pairs`` takes it.
    pairs: str = ""
    #: Ranks of operations of all nodes, and of commands; 0 for what is usual.
    ranks: int = 0
    ranks_per_node: int = 0
    #: What stands in commands where they name the factor.
    command: str = ""
    #: A command that is run on the first node once, before anything is measured.
    build: str = ""


class StudyFactor(Record, frozen=True, kw_only=True):
    """What is varied."""

    name: str
    about: str = ""
    #: The first one is the base.
    levels: list[StudyLevel]


class StudyProblem(Record, frozen=True, kw_only=True):
    """A problem of HPL that every run solves."""

    n: int
    nb: int
    #: Rows and columns of the grid; 0 for the squarest that the nodes have ranks for.
    p: int = 0
    q: int = 0


class StudyJob(Record, frozen=True, kw_only=True):
    """Jobs of a mix that are alike."""

    name: str
    #: Of the batch script; ``{NAME}`` is the level of that factor.
    command: str
    count: int
    #: Of ``sbatch``, as for a shell.
    options: str = ""


class StudyMetric(Record, frozen=True, kw_only=True):
    """What every run measures."""

    name: str
    kind: MetricKind
    unit: str = "s"
    better: Literal["lower", "higher"] = "lower"
    #: Of the probe.
    op: str = ""
    sizes_bytes: list[int] = []
    #: Size ÷ time instead of the time.
    bandwidth: bool = False
    #: For a shell on the first node; with ranks a program and its arguments.
    command: str = ""
    ranks: int = 0
    #: Of the number that a command prints; empty for its run time.
    match: str = ""
    hpl: StudyProblem | None = None
    #: Path or name of the HPL program; empty for the one that is found.
    program: str = ""
    #: A mix that Slurm runs.
    jobs: list[StudyJob] = []
    #: Mean time between two submissions [s]; 0 where all are submitted at once.
    gap_s: float = 0.0
    #: Of a command: the energy of a run is a figure, too, of CPUs and memory (RAPL) or of whole nodes (IPMI).
    energy: Literal["", "cpu", "node"] = ""
    #: A straight line is fitted through the values by size.
    line: bool = False
    #: How long a run of it takes, as the file says [s]; null where it does not.
    takes_s: float | None = None

    @property
    def figures(self) -> list[tuple[str, int]]:
        """Names of what it gives, and the size that each is at; one without sizes is at 0."""
        if self.kind == "jobs":
            return [(f"{self.name} {what}", 0) for what in OF_JOBS]
        if self.energy:
            return [(self.name, 0), (self.energy_figure, 0)]
        if self.kind != "operation" or len(self.sizes_bytes) == 1:
            return [(self.name, self.sizes_bytes[0] if self.sizes_bytes else 0)]
        return [(f"{self.name} {size} B", size) for size in self.sizes_bytes]

    @property
    def energy_figure(self) -> str:
        """What the energy of its runs is called; empty where nobody asks for it."""
        return f"{self.name} energy" if self.energy else ""

    def of(self, figure: str) -> StudyMetric:
        """Return the metric with the unit of one of its figures, and which of its values are better."""
        if figure == self.energy_figure:
            return msgspec.structs.replace(self, name=figure, unit="J", better="lower")
        if self.kind != "jobs":
            return self
        unit, better = OF_JOBS[figure.removeprefix(f"{self.name} ")]
        return msgspec.structs.replace(self, unit=unit, better=better)


class StudyPublished(Record, frozen=True, kw_only=True):
    """A value that somebody else has published of the same."""

    #: Name of a figure.
    figure: str
    #: Factor → level; empty for a value of another machine that no level stands for.
    levels: dict[str, str] = {}
    #: Whose it is, where no level says that.
    of: str = ""
    #: In the figure's unit.
    value: float
    note: str = ""


class StudyPrice(Record, frozen=True, kw_only=True):
    """What the machine costs, in any currency."""

    name: str
    price: float


class StudyPlan(Record, frozen=True, kw_only=True):
    """What a study is going to do."""

    #: Name of the study.
    study: str
    title: str
    source: str = ""
    factors: list[StudyFactor]
    metrics: list[StudyMetric]
    design: DesignKind
    #: Level of every factor, of each combination; the base is the first.
    cells: list[list[str]]
    #: Of a fractional design: which effects it cannot tell apart, in words.
    aliases: list[str] = []
    #: Pairs of runs (the combination and the base) for each combination.
    replications: int
    #: Time in which the last run is to end; the first is always made [s].
    budget_s: float
    margin: float
    #: Of all random orders.
    seed: int
    published: list[StudyPublished] = []
    prices: list[StudyPrice] = []
    watts: float | None = None
    #: ``factor: level`` or ``metric`` → why it cannot be had here.
    left_out: dict[str, str] = {}
    nodes: list[str]
    mpi: str | None = None
    sweeps: int = 12
    visit_us: int = 1000

    def levels_of(self, cell: int) -> dict[str, str]:
        """Return the level of every factor of a combination."""
        return {factor.name: level for factor, level in zip(self.factors, self.cells[cell], strict=True)}

    @property
    def figures(self) -> list[tuple[str, StudyMetric]]:
        """Names of all that is measured, and of which metric each is."""
        return [(name, metric.of(name)) for metric in self.metrics for name, _ in metric.figures]


class StudyManifest(RunHead, frozen=True, kw_only=True):
    """Head of a study's run."""

    plan: StudyPlan


class StudyTrial(Record, frozen=True, kw_only=True):
    """One run of all metrics under one combination."""

    #: In time order, from 0.
    index: int
    replication: int
    #: Number of the combination whose turn it is.
    cell: int
    #: Whether this is the run of the base that stands beside it.
    is_base: bool
    #: ISO 8601, UTC.
    started_at: str
    wall_s: float
    #: Figure → value; one that failed is not among them.
    values: dict[str, float]
    #: Metric → why it failed.
    failures: dict[str, str] = {}
    #: Signs that something else was going on.
    contamination: list[str] = []


class StudyFigure(Record, frozen=True, kw_only=True):
    """A figure under a combination."""

    figure: str
    #: Null where every run failed.
    value: Estimate | None
    #: Against the base, of runs that took turns; null for the base itself.
    ratio: Estimate | None = None
    verdict: Verdict | None = None
    published: float | None = None
    #: Reason → runs that failed for it.
    failures: dict[str, int] = {}


class StudyCell(Record, frozen=True, kw_only=True):
    """What a combination gave."""

    levels: dict[str, str]
    figures: list[StudyFigure]


class StudyEffect(Record, frozen=True, kw_only=True):
    """What a level brings, averaged over the levels of the other factors; or what two bring beyond both."""

    figure: str
    #: Factor → level: one, or two of an interaction.
    levels: dict[str, str]
    #: Level ÷ base; of an interaction both together ÷ the product of each alone.
    ratio: Estimate | None
    p_value: float | None = None
    verdict: Verdict = "no decision"
    #: Why there is no figure.
    reason: str = ""


class StudyLine(Record, frozen=True, kw_only=True):
    """A straight line through a metric's values by size, under a combination or as it was published."""

    metric: str
    levels: dict[str, str] = {}
    #: Whose it is, where it was published.
    of: str = ""
    intercept: Estimate
    slope: Estimate
    r_squared: float


class StudyCost(Record, frozen=True, kw_only=True):
    """What a rate costs under a combination."""

    levels: dict[str, str]
    figure: str
    #: Name of the price; empty for the power.
    price: str
    #: Price per GFLOPS, or MFLOPS per watt.
    value: Estimate


class StudyResult(Record, frozen=True, kw_only=True):
    """What follows from the runs of a study."""

    schema_version: int
    run_id: str
    status: Literal["running", "complete", "budget", "interrupted", "failed"]
    cells: list[StudyCell]
    effects: list[StudyEffect]
    #: Why there are no interactions; empty where there are.
    no_interactions: str = ""
    lines: list[StudyLine]
    costs: list[StudyCost]
    #: Runs that were made, and that the design has.
    runs: int
    wanted: int
    contaminated: int


class KnownStudy(Record, frozen=True, kw_only=True):
    """A study file that can be run by its name."""

    name: str
    title: str
    source: str
    #: Path of the file; empty for one that comes with wulf.
    file: str = ""


class StudyForecast(Record, frozen=True, kw_only=True):
    """How much there is to do."""

    runs: int
    #: Of metrics whose length is known [s].
    time_s: float
    #: Metrics whose length is not known.
    unknown: list[str]
    #: What only the nodes tell, in words.
    at_the_run: list[str] = []


class Study(Record, frozen=True, kw_only=True):
    """What is known of studies: which there are, what one would do, or what it has found."""

    schema_version: int
    known: list[KnownStudy] = []
    plan: StudyPlan | None = None
    forecast: StudyForecast | None = None
    result: StudyResult | None = None
    #: Directory of the run.
    run: str = ""
