"""What is asked: which command is traced, where it runs, and where the trace goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from wulf.base.request import BYTES, Argument, Option
from wulf.node.fleet.fields import AnyCluster, ClusterField, CommandRanksField, NodesField

#: Formats of traces that are imported.
ImportFormat = Literal["goal", "smpi", "otf2"]


@dataclass(frozen=True)
class TraceRequest:
    """Run a command, record every call of MPI, and write the trace.

    With --cluster or --ranks it runs on the first node; otherwise here. Programs in C, C++ and Fortran can be
    traced if they are linked dynamically. A program that dies leaves a trace up to that moment. Exit code: that of
    the command.
    """

    command: Annotated[
        str | Sequence[str],
        Argument("The command, after --. One word alone is read by a shell.", metavar="COMMAND..."),
    ]
    path: Annotated[Path | str, Option("File for the trace.", names=("-o", "--output"), metavar="FILE")] = (
        Path("app.wtrace")
    )
    cluster: ClusterField = None
    nodes: NodesField = None
    ranks: CommandRanksField = 0
    mpi: Annotated[
        str | None,
        Option(
            "MPI library of the program: openmpi, mpich, or the path of an mpicc. Default: that of the mpirun that "
            "the command begins with, else the one that the program is linked with."
        ),
    ] = None
    limit_bytes: Annotated[
        int,
        Option("Maximum size of each rank's file: calls beyond it are counted but not recorded.", unit=BYTES),
    ] = 1 << 30
    again: Annotated[
        int,
        Option(
            "Number of additional launches, each with its own trace next to the first (app-2.wtrace …): with two of "
            "them 'wulf program predict --again' shows how launches differ.",
            metavar="N",
            least=0,
        ),
    ] = 0

    @property
    def words(self) -> list[str]:
        """The command; one word is for a shell."""
        return [self.command] if isinstance(self.command, str) else list(self.command)

    @property
    def output(self) -> Path:
        """File for the trace."""
        return Path(self.path)

    def output_of(self, launch: int) -> Path:
        """Return where the trace of a launch goes, the first being 1."""
        return self.output if launch == 1 else self.output.with_stem(f"{self.output.stem}-{launch}")

    @property
    def where(self) -> AnyCluster:
        """The cluster on which it runs: this machine, where neither cluster nor ranks are named."""
        return self.cluster if self.cluster is not None or self.ranks else "local"
