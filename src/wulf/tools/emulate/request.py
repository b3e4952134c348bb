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
    """Run a pattern of messages and computing on the cluster, and measure how long it takes.

    A pattern describes programs as tasks over a graph: who sends how much to whom with which MPI method, and how
    long it computes in between; several programs may run at the same time, also on the same ranks. Launches are
    added until the time of the whole, of every program and of an iteration are as precise as asked, or the budget
    is spent. Messages without a fixed order (a farm, clients of a server) are handled as they arrive.

    The result is a run like any other: 'wulf report' draws the pattern and shows its times, 'wulf compare' compares
    two. 'wulf program predict PATTERN --on RUN' predicts the same file for other networks.

    Exit code 3 when launches failed, messages arrived corrupted, or the precision was not reached.
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
            "Fill each node with this many ranks before the next. Default: 0, spread evenly over the nodes. "
            "Without --ranks, every node gets this many.",
            least=0,
        ),
    ] = 0
    mpi: MpiField = None
    passes: Annotated[
        int,
        Option(
            "How often each launch performs the whole pattern, after the pattern's warm-up.",
            least=1,
            most=1000,
        ),
    ] = 5
    compute: Annotated[
        Literal["work", "clock", "none"],
        Option(
            "How ranks compute: 'work' (the amount of arithmetic that takes that long when undisturbed), 'clock' "
            "(until that time has passed, whatever disturbs it), 'none' (not at all: the network alone)."
        ),
    ] = "work"
    method: Annotated[
        Literal["messages", "memory", "file"],
        Option(
            "How messages between two ranks are sent: as MPI messages; through memory that the ranks "
            "of a node share (MPI_Win_allocate_shared; as messages to other nodes); or through a file (MPI-IO, each "
            "write synchronised), which needs --dir. Collectives always use MPI."
        ),
    ] = "messages"
    directory: Annotated[
        str,
        Option("Directory of --method file, which all nodes share.", names=("--dir",), metavar="DIR"),
    ] = ""
    check: Annotated[
        bool,
        Option(
            "Check all data that arrive in the first pass of each launch, which does not count.",
            names=("--check/--no-check",),
        ),
    ] = True
    launches: LaunchesField = None
    precision: PrecisionField = 0.02
    budget_s: Annotated[
        float | None,
        Option("Time after which no launch is started. Default: 30m.", unit=SECONDS, goes_on=True),
    ] = None
    seed: SeedField = None
    predict_on: Annotated[
        AnyRun | None,
        Option(
            "A run of 'wulf measure --suite calibrate' on these nodes: also show what the model predicts.",
            names=("--predict",),
            metavar="RUN",
            complete="runs",
            goes_on=True,
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
