"""``wulf measure import``: outputs of other benchmarks as a run."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.face.cli.help_words import FORMAT_TITLES
from wulf.face.cli.options import RUNS, RunsOption, console


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Outputs; each file is a launch.")],
    name: Annotated[str | None, typer.Option(help="Name of the run. Default: date and time.")] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Where the ranks were, in their order, such as 'c[1-2]'.")
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Import outputs of other benchmarks as a run, to compare, fit and report them.

    A value stays the statistic that it is, such as the mean over the iterations of one launch; what is the same in
    several files is one figure with its interval over them.
    """
    from wulf.node.cluster.names import expand
    from wulf.node.fleet.begin import new_run
    from wulf.node.measuring.imported import import_run, read_files
    from wulf.page.terminal import print_page
    from wulf.tools.measure import page as run_report

    launches = read_files(files)
    run, analysis = import_run(launches, expand(nodes) if nodes else [], new_run(name, runs))
    print_page(run_report.build(run.manifest, run.nodes, run.launches, analysis, brief=True), console())
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path} --html, wulf compare\n")


# Python takes the indentation off by itself since 3.13.
command.__doc__ = (
    f"{inspect.cleandoc(command.__doc__ or '')}\n\nKnown are outputs of {', '.join(FORMAT_TITLES)}."
)
