"""``wulf measure``: one measured run, from the nodes to the run directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from wulf.base import user_files
from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.signals import end_gently
from wulf.base.text import printable
from wulf.base.units import parse_duration, parse_percent, parse_size
from wulf.face.cli import complete, submitting
from wulf.face.cli.help_words import ADAPTIVE, LADDERS, VISIT
from wulf.face.cli.measure_progress import MeasureProgress, what_fits
from wulf.face.cli.options import RUNS, ClusterOption, RunsOption, console, show_table
from wulf.face.cli.progress import staging

if TYPE_CHECKING:
    from wulf.base import store
    from wulf.base.records import Analysis
    from wulf.node.measuring import session
    from wulf.node.probe import suites

BUDGET = "5m"
FOR = "7d"
#: The suite that predictions are made by.
CALIBRATE = "calibrate"


def _suites() -> list[str]:
    return [source.id for source in user_files.sources("suites")]


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Name of the new run; with --resume, the run to go on with.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-04]'.")
    ] = None,
    ops: Annotated[
        str | None,
        typer.Option(
            help="Operations, separated by commas; 'list' prints those that there are. Default: the usual ones.",
            autocompletion=complete.operations,
        ),
    ] = None,
    command_text: Annotated[
        str,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="Measure the run time of this command on the first node; with --ops, these operations, too.",
        ),
    ] = "",
    suite: Annotated[
        str | None,
        typer.Option(
            help=f"Experiments that belong together, each with its own sizes: {', '.join(_suites())}.",
            autocompletion=complete.one_of(_suites()),
        ),
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", help="A file with your own experiments, as those of a suite.")
    ] = None,
    ladder_name: Annotated[
        str | None,
        typer.Option(
            "--ladder",
            help=f"Message sizes: {', '.join(LADDERS)}. Default: {ADAPTIVE}.",
            autocompletion=complete.one_of(LADDERS),
        ),
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(help="Largest message, such as 64KiB. Default: the ladder's own end.")
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            help="all, ring (each node with the next), or pairs: n1:n2,n3:n4.",
            autocompletion=complete.one_of(("all", "ring")),
        ),
    ] = "ring",
    at_once: Annotated[
        bool,
        typer.Option(
            "--at-once",
            help="Measure pairs that have no node in common at the same time, in one MPI job: what is left of the "
            "network when all use it.",
        ),
    ] = False,
    ranks_per_node: Annotated[
        int, typer.Option(help="Ranks on each node, of operations in which all nodes take part.")
    ] = 1,
    precision: Annotated[
        str, typer.Option(help="Launches are added until the 95 % interval is ± this wide.")
    ] = "2%",
    budget: Annotated[
        str | None,
        typer.Option(
            help=f"Time after which no launch is started (10m, 1h30m); --resume has it anew. Default: {BUDGET}."
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Measure a series: a block with one launch of everything each so often (1h), as long as --for says.",
        ),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help=f"How long the series of --every is. Default: {FOR}."),
    ] = None,
    min_launches: Annotated[
        int, typer.Option(help="At least so many launches of each operation and pair; an interval takes 6.")
    ] = 6,
    max_launches: Annotated[int, typer.Option(help="At most so many.")] = 40,
    sweeps: Annotated[int, typer.Option(help="Visits of every size within a launch.")] = 5,
    visit: Annotated[
        str | None,
        typer.Option(help=f"Length of a visit. Default: that of the suite, or {VISIT}."),
    ] = None,
    reference: Annotated[
        bool,
        typer.Option(
            help="Also time something that only the node takes part in, between the visits, to tell a slow node from "
            "a slow network."
        ),
    ] = True,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what fits into the budget; look at the nodes, start nothing."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    submit: Annotated[
        str | None,
        typer.Option(
            "--submit",
            metavar="OPTIONS",
            help="Do it as a batch job of Slurm, and follow that: options for sbatch in one word, such as "
            "'--nodes=4 --time=00:30:00' ('' for none), or a file, a batch script with {wulf} where the command goes.",
        ),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option("--follow", metavar="JOB", help="Only follow a job that was submitted before."),
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Measure the interconnect between pairs of nodes.

    Every figure is the median of many launches with its 95 % interval; launches are added until the interval
    is narrow enough or the budget is spent. When the budget is short, fewer operations and sizes get the launches
    that an interval takes, in the order of --ops; what does not fit is said before. Ctrl-C keeps what was measured;
    --resume goes on, as the run was begun: of the other options only --budget and --runs count then. Blocks of a
    series (--every) that an interruption has missed are left out.

    Inside a Slurm allocation its nodes are measured and no others; its end caps the budget, less a minute to put
    everything back. --submit asks for an allocation and does it there. Ctrl-C then leaves the job alone.

    Exit code 3 when something could not be measured or the precision was not reached.
    """
    from wulf.base import store
    from wulf.node.cluster import inventory
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.measuring import session
    from wulf.node.probe import ladder, suites

    if follow is not None:
        submitting.follow(follow)
        return
    end_gently()
    if resume and submit is not None:
        found = store.find_run(run or "latest", runs)
        submitting.submit(submit, found, named=run is not None, dry_run=dry_run)
        return
    if resume and dry_run:
        raise UsageError("--dry-run is about a new run: it takes no --resume")
    if resume:
        with MeasureProgress() as progress:
            more_s = parse_duration(budget) if budget else None
            measured = session.go_on(run or "latest", runs, more_s, progress)
        show_measured(measured)
        return
    if ops == "list":
        _list_operations(mpi)
        return
    experiments = _experiments(suite, plan_file, ops, ladder_name)
    from_where = f"suite {suite}" if suite is not None else str(plan_file)
    largest = parse_size(max_size) if max_size else None
    if submit is not None:
        submitting.submit(submit, new_run(run, runs), named=run is not None, dry_run=dry_run)
        return
    path = None if dry_run else new_run(run, runs)
    config = resolve(cluster_name)
    chosen = config.select(nodes)
    request = session.MeasureRequest(
        config=config,
        ops=_names(ops),
        command=command_text,
        mpi=mpi or config.mpi.compiler,
        pairs=inventory.pairs(pairs, chosen),
        experiments=tuple(experiments.experiment) if experiments else (),
        ladder=from_where if experiments else ladder_name or ladder.ADAPTIVE,
        sizes_bytes=[largest or sys.maxsize]
        if experiments
        else ladder.base_sizes(ladder_name or ladder.ADAPTIVE, largest),
        precision=parse_percent(precision),
        budget_s=_time(budget, every, for_),
        every_s=parse_duration(every) if every else None,
        min_launches=min_launches,
        max_launches=max_launches,
        sweeps=sweeps,
        visit_us=round(parse_duration(visit or (experiments.visit if experiments else suites.VISIT)) * 1e6),
        reference=reference,
        seed=new_seed(seed),
        at_once=at_once,
        ranks_per_node=ranks_per_node,
    )
    if path is None:
        with MeasureProgress() as progress:
            plan, fit = session.foretell(request, progress)
        sys.stdout.writelines(f"{line}\n" for line in what_fits(plan, fit))
        return
    with MeasureProgress() as progress:
        measured = session.start(request, path, progress)
    show_measured(measured, lacking=_lacking(measured[0]) if suite == CALIBRATE else "")


def _lacking(run: store.Run) -> str:
    """Say of a run that predictions are to be made by what they lack; empty when nothing."""
    from wulf.tools.emulate import work

    try:
        work.require_calibrated(run)
    except UsageError as error:
        return f"not enough for 'wulf program predict --on {run.path.name}': {error}"
    return ""


def _experiments(
    suite: str | None, plan_file: Path | None, ops: str | None, ladder_name: str | None
) -> suites.Suite | None:
    """Return the suite or the plan that is named."""
    from wulf.node.probe import suites

    if suite is None and plan_file is None:
        return None
    option = "--suite" if suite is not None else "--plan"
    for other, given in (("--plan", suite and plan_file), ("--ops", ops), ("--ladder", ladder_name)):
        if given:
            raise UsageError(f"{option} says what is measured, and at which sizes: it takes no {other}")
    return suites.named(suite) if suite is not None else suites.from_file(cast("Path", plan_file))


def _time(budget: str | None, every: str | None, for_: str | None) -> float:
    """Return how long is measured [s]."""
    if every is None:
        if for_ is not None:
            raise UsageError("--for is how long a series is: it takes --every")
        return parse_duration(budget or BUDGET)
    if budget is not None:
        raise UsageError("--every measures for as long as --for says: it takes no --budget")
    return parse_duration(for_ or FOR)


def _list_operations(mpi: str | None) -> None:
    """Print what can be measured here, the usual ones first."""
    from rich.table import Table

    from wulf.node.fleet import site

    with staging() as say:
        tools = site.toolbox(None, mpi, say)
    table = Table("operation", "usual", "pattern", "a value is", "", box=None, pad_edge=False)
    for operation in sorted(tools.known, key=lambda op: (op.usual == 0, op.usual, op.name)):
        takes = operation.parameter
        name = operation.name if takes is None else f"{operation.name}[:{takes.usual}]"
        words = [name, "yes" if operation.usual else "no", operation.pattern, operation.quantity]
        table.add_row(*(printable(word, 60) for word in words), printable(operation.summary, 200))
    show_table(table)


def _names(ops: str | None) -> list[str] | None:
    names = [name.strip() for name in ops.split(",")] if ops is not None else None
    if names is not None and ("" in names or len(set(names)) < len(names)):
        raise UsageError(f"--ops {ops!r}: names separated by commas, each once")
    return names


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
