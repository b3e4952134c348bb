"""What is asked: two sides, or two MPI libraries, that are measured in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import BYTES, SECONDS, SHARE, Argument, Elsewhere, Option
from wulf.node.fleet.fields import (
    ClusterField,
    MatchField,
    NamesField,
    NodesField,
    RelaxField,
    SeedField,
    TakeOverField,
)

MarginField = Annotated[float, Option("Differences smaller than this do not matter.", unit=SHARE)]
OpsField = Annotated[
    Sequence[str] | None,
    Option(
        "Operations, separated by commas. Default: the usual ping-pong.", separator=",", complete="operations"
    ),
]
SizesField = Annotated[Sequence[int], Option("Message sizes.", unit=BYTES, separator=",")]
PairsField = Annotated[str, Option("all, ring, or pairs such as n1:n2,n3:n4.", complete=("all", "ring"))]
#: Pairs of launches: enough to find 5 % where launches scatter by 3 % (bench compare-power).
LaunchesField = Annotated[int, Option("Maximum number of pairs of launches.")]
BudgetField = Annotated[float, Option("Time in which the last pair of launches is to end.", unit=SECONDS)]
LAUNCHES, BUDGET_S = 20, 600.0


@dataclass(frozen=True)
class InTurnRequest:
    """Measure two settings or MPI libraries in turn, launches in random order; all is put back."""

    base: Annotated[str, Elsewhere("'original' or KNOB=VALUE,…, with mpi=… and pairs=… among them.")]
    candidate: Annotated[str, Elsewhere("As the base.")]
    cluster: ClusterField = None
    nodes: NodesField = None
    ops: OpsField = None
    sizes_bytes: SizesField = (1, 64, 1024, 65536)
    pairs: PairsField = "ring"
    command: Annotated[
        str,
        Option(
            "Measure the run time of this command on the first node; with --ops, also these operations.",
            metavar="COMMAND",
        ),
    ] = ""
    match: MatchField = ()
    names: NamesField = ()
    mpi: Annotated[str | None, Option("MPI library of a side that names none.")] = None
    launches: LaunchesField = LAUNCHES
    budget_s: BudgetField = BUDGET_S
    margin: MarginField = 0.02
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False

    def __post_init__(self) -> None:
        """Refuse a number that nothing prints.

        Raises
        ------
        UsageError
            Says what it takes.
        """
        if self.match and not self.command:
            raise UsageError("--match is a number that a command prints: it takes --command")


@dataclass(frozen=True)
class LibrariesRequest:
    """Measure two MPI libraries on the same nodes in alternating launches, and show every ratio with its interval.

    Operations between two nodes are measured between the pairs, collectives among all nodes. The first library is the
    base. 'wulf compare --interleaved mpi=…,KNOB=VALUE mpi=…' does the same with settings.

    Exit code 3 when the second library is worse somewhere.
    """

    libraries: Annotated[
        Sequence[str], Argument("openmpi, mpich, or the path of a compiler (mpicc).", metavar="MPI MPI")
    ]
    cluster: ClusterField = None
    nodes: NodesField = None
    ops: Annotated[Sequence[str], Option("Operations, separated by commas.", separator=",")] = (
        "mpi_pingpong", "mpi_bcast", "mpi_reduce", "mpi_allreduce", "mpi_allgather", "mpi_alltoall",
    )  # fmt: skip
    sizes_bytes: SizesField = (8, 1024, 65536)
    pairs: PairsField = "ring"
    launches: LaunchesField = LAUNCHES
    budget_s: BudgetField = BUDGET_S
    margin: MarginField = 0.02
    seed: SeedField = None

    def __post_init__(self) -> None:
        """Refuse what are not two.

        Raises
        ------
        UsageError
            Says what it takes.
        """
        if len(self.libraries) != 2:
            raise UsageError("wulf compare libraries takes two libraries, such as openmpi mpich")
