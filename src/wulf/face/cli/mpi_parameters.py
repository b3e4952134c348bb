"""``wulf tune parameters``: what an MPI library says of its own parameters."""

from __future__ import annotations

import fnmatch
from typing import Annotated

import typer

from wulf.base.errors import BuildError, UsageError
from wulf.base.text import nearest, printable
from wulf.face.cli.options import JsonOption, print_json, show_table
from wulf.face.cli.progress import staging


def command(
    pattern: Annotated[
        str, typer.Argument(metavar="[PATTERN]", help="Only those whose names match, such as 'btl_tcp_*'.")
    ] = "*",
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the parameters of the MPI library with the values that apply on this machine when nothing is set.

    The library is asked by its tool interface (MPI_T), and UCX by ucx_info where MPICH was built for it. A job takes a
    parameter from its environment: of Open MPI OMPI_MCA_NAME, of the others (MPICH, UCX, PRRTE) the name itself. 'wulf
    tune' tries those of them that are knobs.
    """
    from rich.table import Table

    from wulf.base.native import build
    from wulf.node.probe import library

    with staging() as say:
        found = build.find_mpi(mpi)
        if not found:
            raise BuildError(
                "no MPI library was found: install one, or give the path of its compiler with --mpi"
            )
        say(f"building the probe with {found[0].version}")
        known = library.parameters(build.build(found[0]), {})
    chosen = [known[name] for name in sorted(known) if fnmatch.fnmatchcase(name, pattern)]
    if not chosen:
        raise UsageError(f"{found[0].version} has no parameter {pattern!r}{nearest(pattern, known)}")
    if json:
        print_json(chosen)
        return
    table = Table("parameter", "value", "", box=None, pad_edge=False)
    for one in chosen:
        may_be = ", ".join(f"{number} {name}" for number, name in one.values.items())
        about = f"{one.about} ({may_be})" if may_be else one.about
        table.add_row(printable(one.name, 100), printable(one.value, 60), printable(about, 300))
    show_table(table)
