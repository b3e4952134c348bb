"""``wulf measure import``: outputs of other benchmarks as a run."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.request import RUNS
from wulf.face.cli.help_words import FORMAT_TITLES
from wulf.face.cli.options import RunsOption, console


def command(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Outputs; each file is a launch.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run. Default: date and time.")] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Nodes of the ranks, in rank order, such as 'c[1-2]'.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN|LIST",
            help="Outputs of many pairs: the pattern of their names, 'lat-{}-{}.txt', "
            "or a file with lines NODE,NODE,FILE.",
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of ranks where an output does not state it. Default: one on each node."
        ),
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Import outputs of other benchmarks as a run, to compare, fit and report them.

    Values keep their statistic, such as the mean over the iterations of one launch; the same quantity in several
    files becomes one figure with an interval over them. What distinguishes tables (types, buffers, directions,
    windows) goes into the names of operations. What is not understood is refused with its line.
    """
    from wulf.node.cluster.names import expand
    from wulf.node.fleet.new_run import new_run
    from wulf.node.measuring.imported import import_run, read_files
    from wulf.node.measuring.imported_from import placed
    from wulf.page.terminal import print_page
    from wulf.tools.measure import page as run_report

    names = expand(nodes) if nodes else []
    left_out: list[str] = []
    launches = read_files(placed(files or [], pairs, names), left_out)
    run, analysis = import_run(launches, names, new_run(name, runs), ranks)
    print_page(run_report.build(run.manifest, run.nodes, run.launches, analysis, brief=True), console())
    for words in left_out:
        sys.stderr.write(f"{words}\n")
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path} --html, wulf compare\n")


# Python takes the indentation off by itself since 3.13.
command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\nKnown formats: {', '.join(FORMAT_TITLES)}."
