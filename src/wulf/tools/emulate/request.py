"""What is asked: which pattern is performed where, and how well its time is to be known."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, AnyRun, Argument, Option, PathField, RunsField
from wulf.node.fleet.fields import (
    ClusterField,
    LaunchesField,
    MpiField,
    NodesField,
    PrecisionField,
    SeedField,
)

BUDGET_S = 1800.0


@dataclass(frozen=True)
class EmulateRequest:
    """Perform a pattern of messages and computing on the cluster, and say how long it takes.

    A pattern describes programs as tasks over a graph: who sends how much to whom by which method of MPI, and how long
    it computes in between; several programs may run at the same time, also on the same ranks. Launches of it are added
    until its time, that of every program and that of an iteration are as precise as asked, or the budget is spent. What
    has no order (a farm, clients of a server) is made in the order in which it comes.

    The result is a run as others are: 'wulf report' draws the pattern and shows its times, 'wulf compare' holds two
    against each other. 'wulf program predict PATTERN --on RUN' predicts the same file for other networks.

    Exit code 3 when launches failed, messages arrived changed, or the precision was not reached.
    """

    pattern: Annotated[
        Path | str, Argument("A file (.toml), or the name of one of --list.", metavar="PATTERN")
    ]
    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    ranks: Annotated[
        int, Option("Ranks of all programs together. Default: 0, as the pattern says.", least=0)
    ] = 0
    ranks_per_node: Annotated[
        int,
        Option(
            "Fill each node with so many ranks before the next one. Default: 0, spread evenly over the nodes. "
            "Without --ranks there are so many on every node.",
            least=0,
        ),
    ] = 0
    mpi: MpiField = None
    passes: Annotated[
        int,
        Option(
            "So often each launch performs the whole pattern, after what the pattern says to warm up.",
            least=1,
            most=1000,
        ),
    ] = 5
    compute: Annotated[
        Literal["work", "clock", "none"],
        Option(
            "How ranks compute: 'work' (so much arithmetic as takes that long undisturbed), 'clock' (until the clock "
            "says so: what disturbs it within does no harm), 'none' (not at all: the network alone)."
        ),
    ] = "work"
    method: Annotated[
        Literal["messages", "memory", "file"],
        Option(
            "How messages of two ranks go: those of MPI; through memory that ranks of a node share "
            "(MPI_Win_allocate_shared; to other nodes as messages); or through a file (MPI-IO, each write until it is "
            "there), which takes --dir. Collectives are MPI's in any case."
        ),
    ] = "messages"
    directory: Annotated[
        str,
        Option("Directory of --method file, which all nodes share.", names=("--dir",), metavar="DIR"),
    ] = ""
    check: Annotated[
        bool,
        Option(
            "In the first pass of each launch, which does not count, check all that arrives.",
            names=("--check/--no-check",),
        ),
    ] = True
    launches: LaunchesField = None
    precision: PrecisionField = 0.02
    budget_s: Annotated[
        float | None, Option("Time after which no launch is started. Default: 30m.", unit=SECONDS)
    ] = None
    seed: SeedField = None
    predict_on: Annotated[
        AnyRun | None,
        Option(
            "A run of 'wulf measure --suite calibrate' on these nodes: say what the model predicts beside what was "
            "measured.",
            names=("--predict",),
            metavar="RUN",
            complete="runs",
        ),
    ] = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Names the options.
        """
        if (self.method == "file") != bool(self.directory):
            raise UsageError("--method file and --dir go together: the file is made in that directory")
        if self.directory and not self.directory.startswith("/"):
            raise UsageError(f"--dir {self.directory}: give the whole path, as it is on the nodes")
