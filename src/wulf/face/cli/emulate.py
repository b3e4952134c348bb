"""``wulf program emulate``: a pattern of messages performed on the cluster, and timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.base.signals import end_gently
from wulf.base.text import printable
from wulf.base.units import format_bytes, format_time, parse_duration, parse_percent
from wulf.face.cli import complete
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.measure import end_with_findings, show_measured
from wulf.face.cli.measure_progress import MeasureProgress, what_fits
from wulf.face.cli.options import (
    RUNS,
    ClusterOption,
    JsonOption,
    RunsOption,
    open_run,
    print_json,
    show_table,
)
from wulf.face.cli.progress import note, staging

if TYPE_CHECKING:
    from wulf.base import store
    from wulf.base.records import Plan
    from wulf.base.records.emulated import EmulatedPattern
    from wulf.node.measuring import session

BUDGET = "30m"


def command(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN", help="A file (.toml), or the name of one of --list.", show_default=False
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Name of the new run.")] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    ranks: Annotated[
        int, typer.Option(min=0, help="Ranks of all programs together. Default: 0, as the pattern says.")
    ] = 0,
    ranks_per_node: Annotated[
        int,
        typer.Option(
            min=0,
            help="Fill each node with so many ranks before the next one. Default: 0, spread evenly over the nodes. "
            "Without --ranks there are so many on every node.",
        ),
    ] = 0,
    mpi: Annotated[str | None, typer.Option(help="openmpi, mpich, or the path of an mpicc.")] = None,
    passes: Annotated[
        int,
        typer.Option(
            help="So often each launch performs the whole pattern, after what the pattern says to warm up."
        ),
    ] = 5,
    compute: Annotated[
        str,
        typer.Option(
            help="How ranks compute: 'work' (so much arithmetic as takes that long undisturbed), 'clock' (until the "
            "clock says so: what disturbs it within does no harm), 'none' (not at all: the network alone)."
        ),
    ] = "work",
    check: Annotated[
        bool,
        typer.Option(help="In the first pass of each launch, which does not count, check all that arrives."),
    ] = True,
    repeat: Annotated[
        int | None,
        typer.Option(help="Exactly so many launches, however precise they are; an interval takes 6."),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="Launches are added until the 95 % interval is ± this wide.")
    ] = "2%",
    budget: Annotated[
        str | None, typer.Option(help=f"Time after which no launch is started. Default: {BUDGET}.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="A run of 'wulf measure --suite calibrate' on these nodes: say what the model predicts beside "
            "what was measured.",
            autocompletion=complete.runs,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be performed, where and how often; start nothing."),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="RUN", help="Go on with an interrupted run.", autocompletion=complete.runs
        ),
    ] = None,
    list_patterns: Annotated[
        bool, typer.Option("--list", help="List the patterns that come with wulf.")
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Print one of them, to begin one of your own with."),
    ] = None,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Perform a pattern of messages and computing on the cluster, and say how long it takes.

    A pattern describes programs as tasks over a graph: who sends how much to whom by which method of MPI, and how long
    it computes in between; several programs may run at the same time, also on the same ranks. Launches of it are added
    until its time, that of every program and that of an iteration are as precise as asked, or the budget is spent. What
    has no order (a farm, clients of a server) is made in the order in which it comes.

    The result is a run as others are: 'wulf report' draws the pattern and shows its times, 'wulf compare' holds two
    against each other. 'wulf program predict PATTERN --on RUN' predicts the same file for other networks.

    Exit code 3 when launches failed, messages arrived changed, or the precision was not reached.
    """
    from wulf.node.fleet import allocation
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.measuring import session
    from wulf.node.replay import patterns
    from wulf.tools.emulate import work

    if list_patterns:
        _list()
        return
    if show is not None:
        sys.stdout.write(patterns.named(show))
        return
    calibrated = open_run(predict, runs) if predict is not None else None
    if calibrated is not None:
        work.require_calibrated(calibrated)
    end_gently()
    if resume is not None:
        if pattern is not None or dry_run:
            raise UsageError(
                "--resume goes on as the run was begun: of the other options only --budget and --predict count"
            )
        with MeasureProgress() as progress:
            measured = session.go_on(resume, runs, parse_duration(budget) if budget else None, progress)
        _show(measured, calibrated, json=json)
        return
    if pattern is None:
        raise UsageError("give a pattern: a file, or one of 'wulf program emulate --list'")
    config = resolve(cluster_name)
    request = work.EmulateRequest(
        config=config,
        nodes=config.select(nodes),
        source=pattern,
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        mpi=mpi,
        passes=passes,
        compute=compute,
        check=check,
        precision=parse_percent(precision),
        budget_s=allocation.capped(parse_duration(budget or BUDGET), note),
        min_launches=repeat if repeat is not None else 6,
        max_launches=repeat if repeat is not None else 40,
        seed=new_seed(seed),
    )
    if dry_run:
        with MeasureProgress() as progress:
            performed, plan, fit = work.foretell(request, progress)
        sys.stdout.writelines(f"{line}\n" for line in _what(performed, plan))
        sys.stdout.writelines(f"{line}\n" for line in what_fits(plan, fit))
        return
    path = new_run(run, runs)
    with MeasureProgress() as progress:
        measured = work.start(request, path, progress)
    _show(measured, calibrated, json=json)


def _show(measured: session.Outcome, calibrated: store.Run | None, *, json: bool) -> None:
    from wulf.tools.emulate import work

    run, analysis = measured
    if calibrated is not None:
        with staging() as say:
            work.predict(run, analysis, calibrated, say)
    if json:
        print_json(work.result(run, analysis))
        end_with_findings(measured)
    else:
        show_measured(measured)


def _list() -> None:
    from rich.table import Table

    from wulf.node.replay import patterns

    table = Table("name", "ranks", "what it is", box=None, pad_edge=False)
    for name in patterns.gallery():
        pattern = patterns.read(name).pattern
        table.add_row(name, str(pattern.ranks or "any"), f"{pattern.title}: {pattern.what}")
    show_table(table)


def _what(pattern: EmulatedPattern, plan: Plan) -> Iterator[str]:
    """Say what is performed, and where."""
    (place,) = plan.workload.places
    yield f"{printable(pattern.title, 100)}: {pattern.ranks} ranks on {_nodes(place)}"
    for program in pattern.programs:
        where = fold(sorted({place[rank] for rank in program.ranks}))
        yield (
            f"  {printable(program.name, 60)}: {program.iterations} iterations on {len(program.ranks)} ranks, {where}"
        )
        for step in program.steps:
            yield f"    {printable(step, 200)}"
    yield (
        f"a pass: {pattern.messages} messages, {format_bytes(pattern.bytes)}, beside collectives; at least "
        f"{format_time(pattern.least_s)} were the network without delay"
    )
    yield f"each launch: {pattern.warm_ups} + {pattern.passes} passes, the first {pattern.warm_ups} to warm up"


def _nodes(place: tuple[str, ...]) -> str:
    nodes = list(dict.fromkeys(place))
    counts = sorted({place.count(node) for node in nodes})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{fold(nodes)}, {each} a node"
