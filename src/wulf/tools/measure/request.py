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

    Every figure is the median of many launches with its 95 % interval; launches are added until the interval
    is narrow enough or the budget is spent. When the budget is short, fewer operations and sizes get the launches
    that an interval takes, in the order of --ops; what does not fit is said before. Ctrl-C keeps what was measured;
    --resume goes on, as the run was begun: of the other options only --budget and --runs count then. Blocks of a
    series (--every) that an interruption has missed are left out.

    Inside a Slurm allocation its nodes are measured and no others; its end caps the budget, less a minute to put
    everything back. --submit asks for an allocation and does it there. Ctrl-C then leaves the job alone.

    Exit code 3 when something could not be measured or the precision was not reached.
    """

    cluster: ClusterField = None
    path: PathField = None
    nodes: NodesField = None
    ops: Annotated[
        Sequence[str] | None,
        Option(
            "Operations, separated by commas; 'list' prints those that there are. Default: the usual ones.",
            separator=",",
            complete="operations",
        ),
    ] = None
    command: Annotated[
        str,
        Option(
            "Measure the run time of this command on the first node; with --ops, these operations, too.",
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
    plan: Annotated[Path | str | None, Option("A file with your own experiments, as those of a suite.")] = (
        None
    )
    ladder: Annotated[
        str | None, Option(f"Message sizes: {', '.join(LADDERS)}. Default: {LADDERS[0]}.", complete=LADDERS)
    ] = None
    max_size_bytes: Annotated[
        int | None, Option("Largest message, such as 64KiB. Default: the ladder's own end.", unit=BYTES)
    ] = None
    pairs: Annotated[
        str,
        Option("all, ring (each node with the next), or pairs: n1:n2,n3:n4.", complete=("all", "ring")),
    ] = "ring"
    at_once: Annotated[
        bool,
        Option(
            "Measure pairs that have no node in common at the same time: what is left of the network when all use it. "
            "With MPI in one job; over sockets one pair is measured while the others do the same."
        ),
    ] = False
    ranks_per_node: Annotated[
        int, Option("Ranks on each node, of operations in which all nodes take part.")
    ] = 1
    directory: Annotated[
        str,
        Option(
            "Directory in which operations on files (mpi_file_write_shared, --suite files) make theirs; all nodes have "
            "it, and share it where the file is one.",
            names=("--dir",),
            metavar="DIR",
        ),
    ] = ""
    thread_level: Annotated[
        str,
        Option(
            f"What the MPI library is asked for: {', '.join(THREAD_LEVELS)}. Default: what MPI_Init gives.",
            complete=THREAD_LEVELS,
        ),
    ] = ""
    precision: PrecisionField = 0.02
    budget_s: Annotated[
        float | None,
        Option(
            "Time after which no launch is started (10m, 1h30m); --resume has it anew. Default: the suite's, or 5m.",
            unit=SECONDS,
        ),
    ] = None
    every_s: Annotated[
        float | None,
        Option(
            "Measure a series: a block with one launch of everything each so often (1h), as long as --for says.",
            metavar="TIME",
            unit=SECONDS,
        ),
    ] = None
    for_s: Annotated[
        float | None, Option("How long the series of --every is. Default: 7d.", metavar="TIME", unit=SECONDS)
    ] = None
    min_launches: Annotated[
        int | None,
        Option("At least so many launches of each operation and pair. Default: 6, which an interval takes."),
    ] = None
    max_launches: Annotated[int, Option("At most so many.")] = 40
    sweeps: Annotated[int, Option("Visits of every size within a launch.")] = 5
    visit_s: Annotated[
        float | None, Option("Length of a visit. Default: that of the suite, or 1ms.", unit=SECONDS)
    ] = None
    reference: Annotated[
        bool,
        Option(
            "Also time something that only the node takes part in, between the visits, to tell a slow node from "
            "a slow network."
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
