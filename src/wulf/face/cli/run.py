"""``wulf tune all``: the whole procedure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR
from wulf.base.signals import end_gently
from wulf.base.text import printable
from wulf.base.units import parse_duration, parse_percent
from wulf.face.cli import persist, tune
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import RUNS, ClusterOption, RunsOption, console
from wulf.face.cli.progress import Counting, Display, counting, note, staging
from wulf.face.cli.report import write_tuning_page
from wulf.face.cli.set_values import AllowMissingOption, RelaxOption, TakeOverOption, show, telling_of_nodes
from wulf.face.cli.tune_progress import TuneProgress

if TYPE_CHECKING:
    from wulf.base.records import Audit, Mending
    from wulf.base.store.tuning import TuningRun

BUDGET = "30m"


class Shown:
    """Shows the parts of the procedure, one after the other."""

    def looking(self, nodes: int) -> AbstractContextManager[Counting]:
        """Show a look at so many nodes."""
        return counting(f"looking at {nodes} nodes")

    def audited(self, audit: Audit) -> None:
        """Print the findings in a line each."""
        console().print(f"audit: {len(audit.findings)} findings")
        for finding in audit.findings:
            console().print(
                printable(f"  {finding.severity}: {finding.title}: {finding.found}", 160), markup=False
            )

    @contextmanager
    def mending(self) -> Iterator[Callable[[str], None]]:
        """Show how that is set right which is certainly wrong."""
        with telling_of_nodes(json=False), Display() as display:
            yield display.stage

    def mended(self, found: Mending) -> None:
        """Print what was set right, and what that brought."""
        from wulf.tools.mend import page as mending

        mending.refusals(found.refused, console())
        if found.outcome is not None:
            show(found.outcome, json=False)
        elif not found.findings:
            console().print(mending.NOTHING)
        mending.text(found, console())

    def measuring(self, name: str) -> AbstractContextManager[MeasureProgress]:
        """Show the measurement of curves."""
        sys.stderr.write(f"curves {name}\n")
        return MeasureProgress()

    def searching(self) -> AbstractContextManager[TuneProgress]:
        """Show the search."""
        return TuneProgress()

    def searched(self, run: TuningRun) -> None:
        """Print what the search found."""
        tune.show(run)

    def note(self, text: str) -> None:
        """Say something that stays."""
        note(text)


def command(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Name of the new run.")] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    objective_name: Annotated[
        str, typer.Option("--objective", help="latency, bandwidth, 'app: COMMAND', or a .toml file.")
    ] = "latency",
    knobs: Annotated[
        str | None, typer.Option(help="Only these, separated by spaces; as for 'wulf tune'.")
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for everything, such as 45m or 1h30m.")] = BUDGET,
    margin: Annotated[str, typer.Option(help="Change of the objective that does not matter.")] = "2%",
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    keep_over_reboots: Annotated[
        bool, typer.Option("--persist", help="Also write the files that keep what helps over reboots.")
    ] = False,
    curves: Annotated[
        bool, typer.Option("--curves/--no-curves", help="Measure whole curves as found and as left, too.")
    ] = True,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    allow_missing: AllowMissingOption = 0,
    runs: RunsOption = RUNS,
) -> None:
    """Do everything: audit, measure, mend, tune, confirm, measure again, report what all of it brought.

    The same as 'wulf audit', 'wulf measure', 'wulf mend', 'wulf tune', 'wulf measure', 'wulf audit' and 'wulf report',
    in one run with one page. Ctrl-C puts the nodes back and keeps the results so far. Exit code 3 when the search did
    not come to its end.
    """
    from wulf.base.store.tuning import load_tuning
    from wulf.compose import whole as procedure
    from wulf.node.fleet import allocation, change
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster
    from wulf.node.trials import opening, prepare
    from wulf.tools.tune import apply_result, session
    from wulf.tools.tune import page as report

    end_gently()
    path = new_run(run, runs)
    whole = cluster(cluster_name)
    there = tune.answering(whole, nodes, allow_missing)
    config = whole.without(there.missing)
    compiler = mpi or config.mpi.compiler
    with staging() as say:
        goal = prepare.goal(objective_name, compiler, say)
    request = session.TuneRequest(
        config=config,
        nodes=there.nodes,
        goal=goal,
        patterns=tune.patterns_of(knobs),
        mpi=compiler,
        budget_s=allocation.capped(parse_duration(budget), note),
        margin=parse_percent(margin),
        seed=new_seed(seed),
        permissions=change.Permissions(take_over=take_over, relax=relax),
    )
    found = procedure.run(request, path, Shown(), whole_curves=curves)
    stored = True
    if found.manifest.change is not None:
        if keep_over_reboots:
            stored = persist.keep(config, there.nodes, runs, deadline_s=opening.CONFIRM_WITHIN_S)
        tune.remember_missing(whole, there, found, persist=keep_over_reboots and stored)
    done = load_tuning(path)
    page = write_tuning_page(done, None)
    if done.result is not None:
        sys.stdout.write(f"{report.headline(apply_result.report(done))}.\n")
    sys.stdout.write(f"report: {page.resolve()}\n")
    if not stored:
        raise typer.Exit(EXIT_ERROR)
    tune.leave(found)
