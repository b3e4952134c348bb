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
    """Find the best algorithm for each collective, size and number of ranks, and write the library's file of rules.

    The installed library says which algorithms it has. All are measured against its own decision, launches in
    random order; at every size the better half stays in until one is left. That one is judged in fresh launches, in
    which the library's own decision is also compared with itself: an algorithm that is not faster by more than that
    difference is not written. An algorithm that fails, hangs or gives wrong data is excluded and named.

    The file has the format of the installed version (Open MPI: text of version 1 or 2, or JSON; MPICH: its decision
    tree, or lines of variables); what was not measured is left to the library. Where the library cannot tell sizes
    apart (variables; scan), one algorithm applies to all: it must not be slower at any measured size. The file is
    tried, proven to be in effect (by the messages that the library sends; MPICH must abort a job whose rule names
    another collective's algorithm, or whose variable has a nonsense value), and measured against the default at
    intermediate sizes.

    After Ctrl-C what was found so far is written; a file that was not tried yet gets .untried added to its name.
    Exit code 3 when the file is not in effect, is refused for a collective or as a whole, fails or is slower at an
    intermediate size or could not be measured there, or when a collective could not be searched, or there was no
    time for enough launches to prove a gain.
    """

    cluster: ClusterField = None
    out: Annotated[
        Path | str,
        Option(
            "File for the rules; all results are written to the same name with .json added.",
            names=("--out", "-o"),
        ),
    ] = Path("rules.conf")
    nodes: NodesField = None
    #: The default is what most programs wait for.
    collectives: Annotated[
        Sequence[str], Option("Collectives, by the library's names, separated by commas.", separator=",")
    ] = ("bcast", "reduce", "allreduce", "allgather", "alltoall")
    max_size_bytes: Annotated[int, Option("Largest message.", unit=BYTES)] = 1 << 20
    ranks: Annotated[
        Sequence[int],
        Option(
            "Numbers of ranks, separated by commas. Default: one on each node.", unit=_RANKS, separator=","
        ),
    ] = ()
    budget_s: Annotated[float, Option("Total time.", unit=SECONDS)] = 1800.0
    mpi: MpiField = None
    seed: SeedField = None
