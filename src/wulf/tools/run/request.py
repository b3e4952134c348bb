"""What is asked: which command is launched where, and how well its figures are to be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, Argument, Option, PathField, RunsField
from wulf.node.fleet.fields import (
    ClusterField,
    CommandRanksField,
    LaunchesField,
    MarginField,
    MatchField,
    NamesField,
    NodesField,
    PrecisionField,
    SeedField,
)
from wulf.node.programs.batch import SUBMIT

#: Enough to find 5 % where launches scatter by 3 % (bench compare-power).
PAIRS = 20
CommandField = Annotated[
    str | Sequence[str],
    Argument(
        "The command, after --. One word alone is read by a shell on the node, with pipes and variables.",
        metavar="COMMAND...",
    ),
]
DirectoryField = Annotated[
    str | None,
    Option(
        "Where it runs, on the node. Default: the current directory, or the home if the node has none such.",
        metavar="DIRECTORY",
    ),
]
BudgetField = Annotated[float, Option("Time after which no launch is started.", unit=SECONDS)]
BUDGET_S = 1800.0


@dataclass(frozen=True)
class RunRequest:
    """Measure a command: its run time, numbers that it prints, and what it takes of the node.

    It is launched again and again until the median of its run time, and of every number, is as precise as asked or the
    budget is spent; a launch that fails is counted and shown with its reason. What each launch has printed is kept in
    the run, in output/. 'wulf compare RUN RUN' compares two runs; 'wulf compare --interleaved A B --command COMMAND'
    measures two settings in turn, and 'wulf tune --objective "app: COMMAND"' looks for better ones.

    Exit code 3 when launches failed or the precision was not reached.
    """

    command: CommandField
    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    directory: DirectoryField = None
    ranks: CommandRanksField = 0
    mpi: Annotated[str | None, Option("With --ranks: openmpi, mpich, or the path of an mpicc.")] = None
    batch: Annotated[
        Path | str | None,
        Option(
            "A batch script in which $command stands: every launch is a job of its own, whose time in the queue does "
            "not count.",
            metavar="FILE",
        ),
    ] = None
    submit: Annotated[
        str | None,
        Option(
            "With --batch: what hands $script to the queue, with $output, and waits for its end. "
            f"Default: {SUBMIT}."
        ),
    ] = None
    match: MatchField = ()
    names: NamesField = ()
    launches: LaunchesField = None
    precision: PrecisionField = 0.02
    budget_s: BudgetField = BUDGET_S
    seed: SeedField = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse options that would do nothing, or cannot be together.

        Raises
        ------
        UsageError
            Names them.
        """
        if self.submit and self.batch is None:
            raise UsageError("--submit is about --batch")
        if self.mpi and not self.ranks:
            raise UsageError("--mpi is about --ranks")
        if self.batch is not None and self.ranks:
            raise UsageError("--batch: the script says itself how ranks are started: it takes no --ranks")


@dataclass(frozen=True)
class AgainstRequest:
    """Launch two commands in turn and say which is faster, by how much, as ``wulf program run --against`` does."""

    command: CommandField
    other: Annotated[str | Sequence[str], Argument("What is compared with it.")]
    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    directory: DirectoryField = None
    match: MatchField = ()
    names: NamesField = ()
    launches: Annotated[int, Option("Pairs of launches at most.")] = PAIRS
    budget_s: BudgetField = BUDGET_S
    margin: MarginField = 0.02
    seed: SeedField = None
