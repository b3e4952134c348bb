"""``wulf program run``: any command as an experiment, repeated until its figures are precise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import ConfigError, UsageError
from wulf.base.signals import end_gently
from wulf.base.units import parse_duration, parse_percent
from wulf.face.cli.compare import measure_in_turn
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.measure import show_measured
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import RUNS, ClusterOption, RunsOption
from wulf.face.cli.printed import AsOption, MatchOption
from wulf.node.programs import batch
from wulf.tools.compare.request import LAUNCHES

BUDGET = "30m"
MARGIN = "2%"


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="The command, after --. One word alone is read by a shell on the node, with pipes and variables.",
        ),
    ],
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Name of the new run.")] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    directory: Annotated[
        str | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where it runs, on the node. Default: the current directory, or the home if the node has none such.",
        ),
    ] = None,
    ranks: Annotated[
        int,
        typer.Option(
            help="The command is an MPI program: start so many ranks of it, spread over the nodes, as the cluster's "
            "MPI library and network want it. Default: 0, the command starts its own."
        ),
    ] = 0,
    mpi: Annotated[
        str | None, typer.Option(help="With --ranks: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    batch_file: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="A batch script in which $command stands: every launch is a job of its own, whose time in the queue "
            "does not count.",
        ),
    ] = None,
    submit: Annotated[
        str | None,
        typer.Option(
            help="With --batch: what hands $script to the queue, with $output, and waits for its end. "
            f"Default: {batch.SUBMIT}."
        ),
    ] = None,
    match: MatchOption = None,
    names: AsOption = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Another command: measure both in pairs of launches in random order, and say how they differ.",
        ),
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", help="With --against: write a page to this file.", metavar="FILE")
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(help=f"With --against: differences smaller than this do not matter. Default: {MARGIN}."),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="Exactly so many launches, however precise they are; an interval takes 6."),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="Launches are added until the 95 % interval is ± this wide.")
    ] = "2%",
    budget: Annotated[str, typer.Option(help="Time after which no launch is started.")] = BUDGET,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Measure a command: its run time, numbers that it prints, and what it takes of the node.

    It is launched again and again until the median of its run time, and of every number, is as precise as asked or the
    budget is spent; a launch that fails is counted and shown with its reason. What each launch has printed is kept in
    the run, in output/. 'wulf compare RUN RUN' compares two runs; 'wulf compare --interleaved A B --command COMMAND'
    measures two settings in turn, and 'wulf tune --objective "app: COMMAND"' looks for better ones.

    Exit code 3 when launches failed or the precision was not reached.
    """
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.measuring import session
    from wulf.node.probe.command import JOB_TIME
    from wulf.node.trials import commands, interleaving
    from wulf.node.trials.printed import printed

    end_gently()
    config = resolve(cluster_name)
    chosen = config.select(nodes)
    prints = printed(match or [], names or [])
    _require_sense(
        (
            "--against compares two commands and stores no run: no --ranks, --batch or --run",
            against and (ranks or batch_file or run),
        ),
        ("--html and --margin are about --against", against is None and (html_file or margin)),
        ("--submit is about --batch", submit and batch_file is None),
        ("--mpi is about --ranks", mpi and not ranks),
        (
            f"--repeat {repeat}: with --against at least {interleaving.FEWEST}: fewer show no difference",
            against and repeat is not None and repeat < interleaving.FEWEST,
        ),
    )
    if batch_file is not None and ranks:
        raise UsageError("--batch: the script says itself how ranks are started: it takes no --ranks")
    text = commands.as_text(words)
    if against is not None:
        in_turn = commands.against(
            config,
            chosen,
            (text, against),
            directory=directory or "",
            prints=prints,
            launches=repeat if repeat is not None else LAUNCHES,
            budget_s=parse_duration(budget),
            margin=parse_percent(margin or MARGIN),
            seed=new_seed(seed),
        )
        measure_in_turn(in_turn, html_file, dry_run=False, json=False)
        return
    if batch_file is not None:
        text = batch.job(_read(batch_file), str(batch_file), text, submit or batch.SUBMIT, JOB_TIME)
    request = session.MeasureRequest(
        config=config,
        pairs=[(node, node) for node in chosen],
        ladder="none",
        sizes_bytes=[0],
        command=text,
        command_directory=directory or "",
        command_name=interleaving.RUN_TIME,
        prints=prints,
        command_ranks=ranks,
        mpi=mpi or config.mpi.compiler,
        precision=parse_percent(precision),
        budget_s=parse_duration(budget),
        min_launches=repeat if repeat is not None else 6,
        max_launches=repeat if repeat is not None else 40,
        reference=False,
        seed=new_seed(seed),
    )
    path = new_run(run, runs)
    with MeasureProgress() as progress:
        measured = session.start(request, path, progress)
    show_measured(measured)


def _require_sense(*refusals: tuple[str, object]) -> None:
    """Refuse options that would do nothing, or cannot be together."""
    for reason, applies in refusals:
        if applies:
            raise UsageError(reason)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"cannot read {path}: {reason}") from None
