"""What is asked: for which collectives, sizes and numbers of ranks the best algorithms are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import BYTES, SECONDS, Option, Unit
from wulf.node.fleet.fields import ClusterField, MpiField, NodesField, SeedField


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 1):
        raise UsageError(f"{text!r}: give whole numbers from 2 on, separated by commas")
    return int(text)


_RANKS = Unit("", _number, str)


@dataclass(frozen=True)
class CollectivesRequest:
    """Find the algorithm that is best for each collective, size and number of ranks, and write the library's file.

    The installed library says which algorithms it has. All are measured against its own decision, launches in random
    order; at every size the better half goes on until one is left. That one is judged in launches of its own, where the
    library's own decision runs against itself, too: what is not faster by more than that differs is not written. An
    algorithm that fails, hangs or gives wrong data is struck out and named.

    The file has the format of the installed version (Open MPI: text of version 1 or 2, or JSON; MPICH: its decision
    tree, or lines of variables) and leaves to the library what was not measured. Where the library cannot tell sizes
    apart (variables; scan), one algorithm is for all: it must be slower at none that was measured. The file is tried,
    proven to be in effect (by the messages that the library sends; MPICH must end a job that has another collective's
    algorithm in the rule's place, of variables one with a nonsense), and measured against the default at sizes between.

    After Ctrl-C what was found until then is written; a file that was not tried yet with .untried added to its name.
    Exit code 3 when the file is not in effect, is refused for a collective or wholly, fails or is slower at a size
    between or could not be measured there, or when a collective could not be searched.
    """

    cluster: ClusterField = None
    out: Annotated[
        Path | str,
        Option("The file of rules; beside it, with .json added, all that was found.", names=("--out", "-o")),
    ] = Path("rules.conf")
    nodes: NodesField = None
    #: The default is what most programs wait for.
    collectives: Annotated[
        Sequence[str], Option("As the library calls them, separated by commas.", separator=",")
    ] = ("bcast", "reduce", "allreduce", "allgather", "alltoall")
    max_size_bytes: Annotated[int, Option("Largest message.", unit=BYTES)] = 1 << 20
    ranks: Annotated[
        Sequence[int],
        Option(
            "Numbers of ranks, separated by commas. Default: one on each node.", unit=_RANKS, separator=","
        ),
    ] = ()
    budget_s: Annotated[float, Option("Time for all of it.", unit=SECONDS)] = 1800.0
    mpi: MpiField = None
    seed: SeedField = None
