"""``wulf measure``: one measured run, from the nodes to the run directory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.request import Option
from wulf.base.text import printable
from wulf.face.cli import submitting
from wulf.face.cli.declared import flat
from wulf.face.cli.measure_progress import MeasureProgress, what_fits
from wulf.face.cli.options import MovedArgument, ResumeField, console, require_named, show_table
from wulf.face.cli.progress import staging
from wulf.tools.measure.request import CALIBRATE, MeasureRequest

if TYPE_CHECKING:
    from wulf.base import store
    from wulf.base.records import Analysis
    from wulf.node.measuring import session


@dataclass(frozen=True)
class Begun:
    """How a run is begun: anew, where another ended, or as a job."""

    dry_run: Annotated[
        bool, Option("Only show what fits into the budget: the nodes are inspected, nothing is started.")
    ] = False
    resume: ResumeField = None
    submit: Annotated[
        str | None,
        Option(
            "Run as a batch job of Slurm and follow it: options for sbatch as one argument, such as "
            "'--nodes=4 --time=00:30:00' ('' for none), or a batch script with {wulf} where the command goes.",
            metavar="OPTIONS",
            goes_on=True,
        ),
    ] = None
    follow: Annotated[str | None, Option("Only follow a job that was submitted earlier.", metavar="JOB")] = (
        None
    )


@flat
def command(request: MeasureRequest, begun: Begun, moved: MovedArgument = None) -> None:
    from wulf.base import store
    from wulf.node.fleet.new_run import new_run
    from wulf.node.measuring import session
    from wulf.tools.measure import work

    require_named(moved)
    if begun.follow is not None:
        submitting.follow(begun.follow)
        return
    if begun.submit is not None:
        if begun.resume is not None:
            path = store.find_run(begun.resume, request.runs)
        else:
            with staging() as say:
                work.require_known(request, say)
            path = new_run(request.path, request.runs)
        named = begun.resume is not None or request.path is not None
        submitting.submit(begun.submit, path, named=named, dry_run=begun.dry_run)
    elif begun.resume is not None:
        with MeasureProgress() as progress:
            measured = session.go_on(begun.resume, request.runs, request.budget_s, progress)
        show_measured(measured)
    elif request.ops == ["list"]:
        _list_operations(request.mpi)
    elif begun.dry_run:
        with MeasureProgress() as progress:
            plan, fit = session.foretell(work.measurement(request), progress)
        sys.stdout.writelines(f"{line}\n" for line in what_fits(plan, fit))
    else:
        path = new_run(request.path, request.runs)
        with MeasureProgress() as progress:
            measured = session.start(work.measurement(request), path, progress)
        show_measured(measured, lacking=_lacking(measured[0]) if request.suite == CALIBRATE else "")


def _lacking(run: store.Run) -> str:
    """Say of a run that predictions are to be made by what they lack; empty when nothing."""
    from wulf.tools.emulate import work

    try:
        work.require_calibrated(run)
    except UsageError as error:
        return f"not enough for 'wulf program predict --on {run.path.name}': {error}"
    return ""


def _list_operations(mpi: str | None) -> None:
    """Print what can be measured here, the usual ones first."""
    from rich.table import Table

    from wulf.node.fleet import preparation

    with staging() as say:
        tools = preparation.toolbox(None, mpi, say)
    table = Table("operation", "usual", "pattern", "a value is", "", box=None, pad_edge=False)
    for operation in sorted(tools.known, key=lambda op: (op.usual == 0, op.usual, op.name)):
        takes = operation.parameter
        name = operation.name if takes is None else f"{operation.name}[:{takes.usual}]"
        words = [name, "yes" if operation.usual else "no", operation.pattern, operation.quantity]
        table.add_row(*(printable(word, 60) for word in words), printable(operation.summary, 200))
    show_table(table)


def show_measured(outcome: session.Outcome, *, lacking: str = "") -> None:
    """Print what a run gave; end with the exit code that says whether all of it was measured."""
    from wulf.page.terminal import print_page
    from wulf.tools.emulate import work
    from wulf.tools.measure import page as run_report

    run, analysis = outcome
    performed = work.shown(run, analysis)
    shown = run_report.build(run.manifest, run.nodes, run.launches, analysis, performed=performed, brief=True)
    print_page(shown, console())
    if lacking:
        sys.stdout.write(f"\n{printable(lacking)}\n")
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path} --html (or --text, --csv, --json)\n")
    end_with_findings(outcome)


def end_with_findings(outcome: session.Outcome) -> None:
    """End with the exit code that says that not all was measured as it should be; go on where it was."""
    if _findings(*outcome):
        raise typer.Exit(EXIT_FINDINGS)


def _findings(run: store.Run, analysis: Analysis) -> bool:
    # A series has no precision to reach.
    precise = run.manifest.plan.series is None
    return (
        run.manifest.status != "complete"
        or analysis.launches_failed > 0
        or bool(run.manifest.plan.left_out)
        or any(not record.reachable for record in run.nodes)
        or any(cell.corrupt or (precise and not cell.reached) for cell in analysis.cells)
    )
