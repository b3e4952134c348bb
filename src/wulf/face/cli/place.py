"""``wulf program place``: ranks by the measured speed of the nodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import UsageError
from wulf.base.text import count, printable


def command(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run of 'wulf bench hpcc' (DGEMM of each node) or of 'wulf measure --suite host' (fixed work).",
        ),
    ],
    ranks: Annotated[int, typer.Option(min=1, help="Total number of ranks.")],
    form: Annotated[
        str,
        typer.Option(
            help="openmpi or mpich: a hostfile; slurm: a line for each rank, for SLURM_HOSTFILE with "
            "--distribution=arbitrary."
        ),
    ] = "openmpi",
    even: Annotated[
        bool,
        typer.Option("--even", help="The same number on every node: the placement to compare with."),
    ] = False,
    runs: Annotated[Path, typer.Option(help="Directory that holds the runs.")] = Path("runs"),
) -> None:
    """Distribute ranks over nodes that are not equally fast, as a hostfile for launchers.

    Each rank is assumed to have the same work. Ranks are distributed so that the last node finishes as early as
    possible. The gain from computing alone is estimated on standard error; measure the real gain against the even
    placement (--even).
    """
    from wulf.base.store import find_run, load
    from wulf.compose.node_speeds import speeds_of
    from wulf.node.fleet import placement

    if form not in placement.FORMS:
        raise UsageError(f"--form {form}: {', '.join(placement.FORMS)}")
    found = speeds_of(load(find_run(run, runs)))
    usual = placement.even(list(found.speeds), ranks)
    given = usual if even else placement.ranks_of(found.speeds, ranks)
    for line in placement.lines(given, form):
        sys.stdout.write(f"{printable(line, 300)}\n")
    sys.stderr.write(f"by {printable(found.what, 100)}\n")
    for node, speed in found.speeds.items():
        share = speed / max(found.speeds.values())
        sys.stderr.write(
            f"  {printable(node, 60)}: {share:.0%} of the fastest, {count(given[node], 'rank')}\n"
        )
    if not even:
        change = placement.gain(found.speeds, given, usual) - 1
        sys.stderr.write(
            f"against even placement: {change:+.1%} of the time, if there were nothing but computing\n"
        )
