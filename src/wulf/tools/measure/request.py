"""What is asked: what is measured, between which nodes, and how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from wulf.base import user_files
from wulf.base.errors import UsageError
from wulf.base.request import BYTES, RUNS, SECONDS, Option, PathField, RunsField
from wulf.node.fleet.fields import ClusterField, MpiField, NodesField, PrecisionField, SeedField

#: The suite that predictions are made by.
CALIBRATE = "calibrate"
BUDGET_S = 300.0
SERIES_S = 7 * 86400.0
#: `wulf.node.probe.ladder.NAMES`; it stands here again, since importing that takes long.
LADDERS = ("adaptive", "imb", "rfc2544", "short", "long")
#: How far threads may call the MPI library (MPI-3.1, section 12.4), by the names that the probe knows.
THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
_SUITES = tuple(source.id for source in user_files.sources("suites"))


@dataclass(frozen=True)
class MeasureRequest:
    """Measure the interconnect between pairs of nodes.

    Every figure is the median of many launches with its 95 % interval; launches are added until the interval is
    narrow enough or the budget is spent. When the budget is short, fewer operations and sizes get the launches that
    an interval needs, in the order of --ops; what does not fit is announced first. Ctrl-C keeps what was measured;
    --resume continues the run with its original options: of the others only --budget and --runs count then. Blocks
    of a series (--every) that were missed during an interruption are left out.

    Inside a Slurm allocation only its nodes are measured; its end limits the budget, less a minute to put
    everything back. --submit asks for an allocation and measures there; Ctrl-C then leaves the job running.

    Exit code 3 when something could not be measured or the precision was not reached.
    """

    cluster: ClusterField = None
    path: PathField = None
    nodes: NodesField = None
    ops: Annotated[
        Sequence[str] | None,
        Option(
            "Operations, separated by commas; 'list' prints all of them. Default: the usual ones.",
            separator=",",
            complete="operations",
        ),
    ] = None
    command: Annotated[
        str,
        Option(
            "Measure the run time of this command on the first node; with --ops, also these operations.",
            metavar="COMMAND",
        ),
    ] = ""
    suite: Annotated[
        str | None,
        Option(
            f"Experiments that belong together, each with its own sizes: {', '.join(_SUITES)}.",
            complete=_SUITES,
        ),
    ] = None
    plan: Annotated[
        Path | str | None, Option("A file with your own experiments, in the format of a suite.")
    ] = None
    ladder: Annotated[
        str | None, Option(f"Message sizes: {', '.join(LADDERS)}. Default: {LADDERS[0]}.", complete=LADDERS)
    ] = None
    max_size_bytes: Annotated[
        int | None, Option("Largest message, such as 64KiB. Default: that of the ladder.", unit=BYTES)
    ] = None
    pairs: Annotated[
        str,
        Option("all, ring (each node with the next), or pairs: n1:n2,n3:n4.", complete=("all", "ring")),
    ] = "ring"
    at_once: Annotated[
        bool,
        Option(
            "Measure pairs without a common node at the same time: what the network delivers when all use it. "
            "With MPI in one job; over sockets one pair is measured while the others do the same."
        ),
    ] = False
    ranks_per_node: Annotated[
        int, Option("Ranks on each node, for operations in which all nodes take part.")
    ] = 1
    directory: Annotated[
        str,
        Option(
            "Directory for operations on files (mpi_file_write_shared, --suite files). It must exist on all nodes, and "
            "be shared for operations on one common file.",
            names=("--dir",),
            metavar="DIR",
        ),
    ] = ""
    thread_level: Annotated[
        str,
        Option(
            f"Thread support requested from the MPI library: {', '.join(THREAD_LEVELS)}. Default: that of MPI_Init.",
            complete=THREAD_LEVELS,
        ),
    ] = ""
    precision: PrecisionField = 0.02
    budget_s: Annotated[
        float | None,
        Option(
            "Time after which no launch is started (10m, 1h30m); with --resume it starts again. Default: "
            "the suite's, or 5m.",
            unit=SECONDS,
            goes_on=True,
        ),
    ] = None
    every_s: Annotated[
        float | None,
        Option(
            "Measure a series: a block with one launch of everything at this interval (1h), for as long as --for says.",
            metavar="TIME",
            unit=SECONDS,
        ),
    ] = None
    for_s: Annotated[
        float | None, Option("Length of the series of --every. Default: 7d.", metavar="TIME", unit=SECONDS)
    ] = None
    min_launches: Annotated[
        int | None,
        Option("Minimum number of launches of each operation and pair. Default: 6, as an interval needs."),
    ] = None
    max_launches: Annotated[int, Option("Maximum number of launches.")] = 40
    sweeps: Annotated[int, Option("Visits of every size within a launch.")] = 5
    visit_s: Annotated[
        float | None, Option("Length of a visit. Default: that of the suite, or 1ms.", unit=SECONDS)
    ] = None
    reference: Annotated[
        bool,
        Option(
            "Between visits, also time work that involves only the node itself (the reference), to tell a slow "
            "node from a slow network."
        ),
    ] = True
    seed: SeedField = None
    mpi: MpiField = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Names the options.
        """
        if self.suite is not None or self.plan is not None:
            option = "--suite" if self.suite is not None else "--plan"
            others = {"--plan": self.suite and self.plan, "--ops": self.ops, "--ladder": self.ladder}
            for other in (name for name, given in others.items() if given):
                raise UsageError(f"{option} says what is measured, and at which sizes: it takes no {other}")
        if self.thread_level and self.thread_level not in THREAD_LEVELS:
            raise UsageError(f"--thread-level {self.thread_level}: it is one of {', '.join(THREAD_LEVELS)}")
        if self.directory and not self.directory.startswith("/"):
            raise UsageError(f"--dir {self.directory}: give the whole path, as it is on the nodes")
        if self.every_s is None and self.for_s is not None:
            raise UsageError("--for is how long a series is: it takes --every")
        if self.every_s is not None and self.budget_s is not None:
            raise UsageError("--every measures for as long as --for says: it takes no --budget")

    @property
    def time_s(self) -> float:
        """How long is measured at most [s]."""
        return (self.budget_s or BUDGET_S) if self.every_s is None else (self.for_s or SERIES_S)
