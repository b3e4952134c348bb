"""High-Performance Linpack: what was tried, what came of it."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record
from wulf.base.records.libraries import BlasRank
from wulf.base.records.measured import NodeRecord, NodesPower, RunHead
from wulf.base.text import count

BROADCASTS = ("1ring", "1ringM", "2ring", "2ringM", "long", "longM")
SWAPS = ("binary exchange", "long", "mix")


class HplSetting(Record, frozen=True, kw_only=True):
    """How a problem is solved: all that HPL.dat says but the order, and the threads of a rank."""

    #: Block size of the distribution and of the update.
    nb: int
    #: Rows and columns of the process grid.
    p: int
    q: int
    #: Threads of the BLAS library in each rank.
    threads: int
    #: Broadcast of panels: 0 1ring, 1 1ringM, 2 2ring, 3 2ringM, 4 long (bandwidth reducing), 5 longM.
    bcast: int
    #: Panels that are factorised ahead of the update.
    depth: int
    #: Exchange of rows: 0 binary exchange, 1 long, 2 a mix of both.
    swap: int
    #: Columns up to which the mix takes the binary exchange.
    swap_threshold: int = 64
    #: Process mapping: 0 row-major, 1 column-major.
    pmap: int = 0
    #: Factorisation of a panel: 0 left-looking, 1 Crout, 2 right-looking.
    pfact: int = 2
    #: Columns at which the recursion in a panel ends.
    nbmin: int = 4
    #: Parts of a panel in its recursion.
    ndiv: int = 2
    #: Recursive factorisation of a panel: 0 left-looking, 1 Crout, 2 right-looking.
    rfact: int = 1
    #: Form of L1 and of U: 0 transposed, 1 not.
    l1: int = 0
    u: int = 0
    #: Equilibration in the spreading of rows: 0 no, 1 yes.
    equil: int = 1
    #: Alignment of memory [8 B words].
    align: int = 8

    @property
    def ranks(self) -> int:
        """Ranks of the job."""
        return self.p * self.q

    @property
    def layout(self) -> str:
        """For people: ``2×4, 1 thread``."""
        return f"{self.p}×{self.q}, {count(self.threads, 'thread')}"

    @property
    def shown(self) -> str:
        """For people: ``2×4, 1 thread, NB 192, 1ringM, depth 1, mix``."""
        broadcast, swap = BROADCASTS[self.bcast], SWAPS[self.swap]
        return f"{self.layout}, NB {self.nb}, {broadcast}, depth {self.depth}, {swap}"


class HplAsked(Record, frozen=True, kw_only=True):
    """A problem that was asked for."""

    #: Order of the matrix.
    n: int
    setting: HplSetting

    @property
    def shown(self) -> str:
        """For people: ``N 37326, 15×16, 1 thread, …``."""
        return f"N {self.n}, {self.setting.shown}"


HplPhase = Literal["size", "blas", "search", "large", "confirm"]


class HplLaunch(Record, frozen=True, kw_only=True):
    """One launch, of one order and setting."""

    #: Number in time order, from 0.
    index: int
    #: ``size``: how long problems take; ``blas``: BLAS libraries, all with one setting; ``search``: settings at
    #: a small order; ``large``: the best of them at the order of the result; ``confirm``: fresh launches of what was
    #: chosen.
    phase: HplPhase
    #: Order of the matrix.
    n: int
    setting: HplSetting
    #: Variables of its environment, beside the threads.
    env: dict[str, str] = {}
    #: ISO 8601, UTC.
    started_at: str
    #: From the start of the launch complete [s].
    wall_s: float
    #: ``cut``: it was so much slower than the best that it was ended; ``failed``: it has no result that is right.
    status: Literal["ok", "cut", "failed"]
    #: Why it failed, or how far it had come when it was cut; empty when all is well.
    reason: str = ""
    #: Time of the solution [s]; null without one.
    time_s: float | None
    #: Rate [GFLOPS]; of a launch that was cut what is expected at its end, at most; null without one.
    gflops: float | None
    #: Scaled residual; null without one. HPL allows 16.
    residual: float | None
    #: Parts of the factorisation [s], where the program says them.
    timings_s: dict[str, float] = {}
    #: (share of the columns, mean rate since the beginning [GFLOPS]), where the program says it.
    progress: list[tuple[float, float]] = []
    #: Command line on the first node.
    argv: list[str] = []
    #: What the nodes took meanwhile; null where nobody looked.
    power: NodesPower | None = None


class PeakPart(Record, frozen=True, kw_only=True):
    """The theoretical peak of nodes that are alike."""

    nodes: list[str]
    cpu: str
    #: Cores of each that are counted.
    cores: int
    #: Double-precision operations of a core in a cycle.
    per_cycle: int
    clock_hz: float
    #: Of all these nodes together [GFLOPS].
    gflops: float
    #: Where operations a cycle and the clock come from.
    derivation: str


class Peak(Record, frozen=True, kw_only=True):
    """The theoretical peak: cores × operations a cycle × clock."""

    #: [GFLOPS].
    gflops: float
    #: Empty when it was given by the user.
    parts: list[PeakPart] = []


class HplPlan(Record, frozen=True, kw_only=True):
    """What is tried, with what, for how long."""

    #: Path of the program on the nodes.
    program: str
    #: HPL alone, or HPC Challenge, which makes all its tests at every launch.
    kind: Literal["xhpl", "hpcc"]
    nodes: list[str]
    #: CPUs of each node that are used.
    cpus: int
    #: Memory that the matrix may take on all nodes together [B]; null when it is unknown.
    memory_bytes: int | None
    #: Order that fills this memory; null when it is unknown.
    largest_n: int | None
    #: Time for all of it [s].
    time_s: float
    #: Fresh launches of what is chosen.
    repeats: int
    seed: int
    #: Values of each parameter that are tried.
    values: dict[str, list[str]]
    #: MPI library that starts the launches, as it was asked for; null for that of the program.
    mpi: str | None = None
    #: Variables of the environment of every launch.
    env: dict[str, str] = {}
    #: BLAS library → variables with which the program is proven to use it; empty where it uses what it finds.
    libraries: dict[str, dict[str, str]] = {}
    #: BLAS library → why it is not tried.
    libraries_left_out: dict[str, str] = {}
    #: What is run without a search; empty where the quickest setting is searched.
    asked: list[HplAsked] = []
    #: Of the HPL.dat that asked for it: the scaled residual up to which a result is right; null without one.
    asked_threshold: float | None = None
    #: Whether nodes are looked at, what they take, during the launches that count.
    measures_power: bool = False
    #: Of the whole machine; null when not given.
    price: float | None = None
    #: The same by names: ``then``, ``today`` …
    prices: dict[str, float] = {}
    watts: float | None = None
    peak: Peak | None = None
    #: Why the theoretical peak is unknown; empty when it is known.
    peak_unknown: str = ""


class TimeModel(Record, frozen=True, kw_only=True):
    """Time of a solution by its order n: surface × n² + volume × n³."""

    #: 0 where launches do not tell it from nothing.
    surface_s: float
    volume_s: float
    #: Of the two, or of the second alone.
    covariance: list[list[float]]
    #: Of single launches around it, as a share.
    scatter: float
    #: Degrees of freedom.
    degrees: int
    #: Smallest and largest order behind it, and launches.
    n_min: int
    n_max: int
    launches: int


class Forecast(Record, frozen=True, kw_only=True):
    """What was predicted of the large problem, before it was run."""

    n: int
    #: Time of one solution [s].
    time: Estimate


class Standing(Record, frozen=True, kw_only=True):
    """Where a result would have stood in a list of the Top500."""

    #: ``June 1993``.
    edition: str
    rank: int
    source: str


class HplFigure(Record, frozen=True, kw_only=True):
    """What came of one problem that was asked for."""

    problem: HplAsked
    #: Median over its launches, with its interval; null where none finished.
    gflops: Estimate | None
    time: Estimate | None
    failed: int


class HplResult(Record, frozen=True, kw_only=True):
    """The conclusion."""

    schema_version: int
    #: Name of the run.
    run_id: str
    status: Literal["complete", "budget", "interrupted", "failed", "running"]
    #: What was chosen; null before anything was.
    n: int | None
    setting: HplSetting | None
    #: Median over fresh launches of what was chosen, with its interval; null before there is one.
    gflops: Estimate | None
    time: Estimate | None
    #: Largest scaled residual of these launches.
    residual: float | None
    #: Share of the theoretical peak; null when that is unknown.
    of_peak: Estimate | None
    #: Price ÷ GFLOPS and MFLOPS ÷ watts; null when they were not given.
    price_per_gflops: Estimate | None
    mflops_per_watt: Estimate | None
    #: By the names of the prices: price ÷ GFLOPS.
    prices_per_gflops: dict[str, Estimate] = {}
    #: As the nodes measure it, medians over launches: of whole nodes, and of CPUs with their memory [W]; null where
    #: they do not say it. With them MFLOPS ÷ watts.
    node_watts: Estimate | None = None
    cpu_watts: Estimate | None = None
    mflops_per_node_watt: Estimate | None = None
    mflops_per_cpu_watt: Estimate | None = None
    #: What was asked for, the fastest first; empty where it was searched.
    figures: list[HplFigure] = []
    model: TimeModel | None
    forecast: Forecast | None
    #: Launches of each phase, those that were cut, and those that failed.
    launches: dict[str, int]
    cut: int
    failed: int
    #: BLAS libraries by their rates in launches that took turns, the fastest first; empty where none were compared.
    blas: list[BlasRank] = []
    #: The BLAS library of the result; empty where none was asked for.
    library: str = ""
    #: Settings that can be tried.
    settings: int
    standings: list[Standing] = []
    #: The last list that it is fast enough for, with its 500th [GFLOPS]; null when for none.
    last_list: str | None = None
    last_entry_gflops: float | None = None
    #: The lists that follow it whose 500th is not known: it may be fast enough for them, too.
    unknown_lists: list[str] = []
    #: What a reader must know.
    notes: list[str] = []


class HplManifest(RunHead, frozen=True, kw_only=True):
    """Head of a run of HPL."""

    plan: HplPlan
    #: Facts of the nodes before the first launch.
    records: list[NodeRecord]
