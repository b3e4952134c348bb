"""``wulf program shipped``: the programs to measure with that come with this package."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wulf.face.cli.options import ClusterOption, say, show_table


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Program. Default: list all of them.")
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-08]'.")
    ] = None,
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: the path of an mpicc, 'openmpi' or 'mpich'.")
    ] = None,
    source: Annotated[bool, typer.Option("--source", help="Only print where its source is.")] = False,
) -> None:
    """Build a program that comes with wulf, put it on the nodes, and print its path there.

    It can be used in a command: mpirun -np 2 $(wulf program shipped heat) --steps 1000. Every program checks its
    own result and ends with an exit code other than 0 when it is wrong; --help of the program shows its options.
    """
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.programs import shipping
    from wulf.node.programs.shipped import find

    if name is None:
        _list()
        return
    if source:
        sys.stdout.write(f"{shipping.source(name)}\n")
        return
    find(name)
    config = resolve(cluster_name)
    path = shipping.ship(name, config, config.select(nodes), mpi or config.mpi.compiler, say)
    sys.stdout.write(f"{path}\n")


def _list() -> None:
    from rich.table import Table

    from wulf.node.programs.shipped import SHIPPED

    table = Table(box=None)
    for title in ("name", "what it is", "its figure: --match"):
        table.add_column(title)
    for program in SHIPPED.values():
        table.add_row(program.name, program.summary, program.match)
    show_table(table)
