"""What is asked: which command is launched where, and how well its figures are to be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, Argument, Option, PathField, RunsField, Unit
from wulf.node.fleet.fields import (
    ClusterField,
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
        "Working directory on the node. Default: the current directory, or the home directory if the node "
        "does not have it.",
        metavar="DIRECTORY",
    ),
]
BudgetField = Annotated[float, Option("Time after which no launch is started.", unit=SECONDS)]
BUDGET_S = 1800.0
#: Launches of each number of ranks, where several are compared.
ROUNDS = 8


def _ranks(text: str) -> int | list[int]:
    """Return a number of ranks, or several."""
    words = text.split(",")
    if not all(word.strip().isdigit() for word in words):
        raise UsageError(f"--ranks {text}: a whole number, 0 or more, or several such as 1,2,4,8")
    found = [int(word) for word in words]
    return found[0] if len(found) == 1 else found


RANKS = Unit("", _ranks, str, -1, float("inf"), "0 or more")
RanksField = Annotated[
    int | Sequence[int],
    Option(
        "The command is an MPI program: start this many ranks of it, spread over the nodes of the cluster, with its "
        "MPI library's launcher. Several (1,2,4,8): speed-up and efficiency. Default: 0, the command starts its "
        "ranks itself.",
        unit=RANKS,
        metavar="N[,N...]",
    ),
]


@dataclass(frozen=True)
class RunRequest:
    """Measure a command: its run time, numbers in its output, and the resources that it uses.

    It is launched repeatedly until the median of its run time, and of every number, is as precise as asked or the
    budget is spent; a launch that fails is counted and shown with its reason. The output of each launch is kept in
    the run, in output/. 'wulf compare RUN RUN' compares two runs; 'wulf compare --interleaved A B --command
    COMMAND' measures two settings alternately, and 'wulf tune --objective "app: COMMAND"' looks for better ones.

    With several --ranks the numbers of ranks take turns in random order, and the result is the speed-up, the
    parallel efficiency, what limits them, and what more ranks would gain; {ranks} in the command makes the work
    grow with them.

    Exit code 3 when launches failed or the precision was not reached.
    """

    command: CommandField
    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    directory: DirectoryField = None
    ranks: RanksField = 0
    mpi: Annotated[str | None, Option("With --ranks: openmpi, mpich, or the path of an mpicc.")] = None
    batch: Annotated[
        Path | str | None,
        Option(
            "A batch script that contains $command: every launch is a separate job, whose time in the queue does not "
            "count.",
            metavar="FILE",
        ),
    ] = None
    submit: Annotated[
        str | None,
        Option(
            "With --batch: the command that submits $script, with its output in $output, and waits for it to end. "
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
            raise UsageError("--submit needs --batch")
        if self.mpi and not self.ranks:
            raise UsageError("--mpi needs --ranks")
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
    launches: Annotated[int, Option("Maximum number of pairs of launches.")] = PAIRS
    budget_s: BudgetField = BUDGET_S
    margin: MarginField = 0.02
    seed: SeedField = None


@dataclass(frozen=True)
class ScalingRequest:
    """Launch a program with several numbers of ranks in random order: speed-up, efficiency, and what limits it.

    As ``wulf program run --ranks 1,2,4,8``. Where ``{ranks}`` stands in the command, the work grows with the ranks.
    """

    command: CommandField
    ranks: Annotated[Sequence[int], Option("Numbers of ranks.")]
    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    directory: DirectoryField = None
    ranks_per_node: Annotated[
        int, Option("Use as few nodes as hold this many ranks each. Default: 0, always all nodes.", least=0)
    ] = 0
    mpi: Annotated[str | None, Option("openmpi, mpich, or the path of an mpicc.")] = None
    match: Annotated[
        str | None,
        Option("A time in its output instead of its run time: a regular expression with one group."),
    ] = None
    rounds: Annotated[int, Option("Launches of each number.", least=2)] = ROUNDS
    traces: Annotated[
        bool,
        Option(
            "Record one launch more of each number: which part of the loss is computing, waiting and transfer."
        ),
    ] = False
    budget_s: BudgetField = BUDGET_S
    seed: SeedField = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what shows no course.

        Raises
        ------
        UsageError
            Says what it takes.
        """
        if len(set(self.ranks)) < 2 or min(self.ranks) < 1:
            raise UsageError("--ranks takes two different numbers or more, such as 1,2,4,8, each 1 or more")
