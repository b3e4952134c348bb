"""``wulf program predict``: what a traced program would take on other networks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, ConfigError, UsageError
from wulf.face.cli import complete
from wulf.face.cli.help_words import USUAL_NETWORKS, Engine
from wulf.face.cli.networks import show_list
from wulf.face.cli.options import RUNS, JsonOption, RunsOption, console, open_run, print_json
from wulf.face.cli.progress import note, staging

if TYPE_CHECKING:
    from wulf.base.records import Prediction
    from wulf.node.replay.replaying import Replayer

SAMPLES = 200


OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="RUN",
        help="Run of 'wulf measure --suite calibrate' on the nodes of the trace.",
        autocompletion=complete.runs,
    ),
]
OwnOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--network",
        "--networks",
        metavar="FILE",
        help="A network of your own, or a directory of them, beside those in ~/.config/wulf/networks. May be "
        "repeated.",
    ),
]
RanksPerNodeOption = Annotated[
    int,
    typer.Option(
        min=0, help="Put so many ranks on each node, in blocks. Default: 0, as the trace says that they were."
    ),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The MPI library's algorithms of collectives, a line each: COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM "
        "[SEGMENT_BYTES].",
    ),
]
EngineOption = Annotated[
    Engine,
    typer.Option(
        metavar="ENGINE",
        help="static: messages in their recorded order, exactly. events: event by event, with who comes first and what "
        "ranks, uplinks and programs share; slower, of fewer samples. both: run times are static, events beside them. "
        "auto: both where that does not take long; events with --beside or --topology.",
    ),
]
BesideOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--beside",
        metavar="TRACE",
        help="A program that runs at the same time, on nodes of the same names. May be repeated.",
    ),
]
TopologyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Which nodes share which uplinks: Slurm's topology.conf, with the speed of each uplink as LinkSpeed.",
    ),
]
AgainOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--again",
        metavar="TRACE",
        help="Another trace of the same program, of a launch of its own; with two or more of them it is told how "
        "launches differ, and where a single one lies. May be repeated.",
    ),
]
SamplesOption = Annotated[int, typer.Option(min=20, help="Samples behind the intervals.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of these samples.")]
SlurmOption = Annotated[
    str | None,
    typer.Option(
        metavar="OPTIONS",
        help="Replay in pieces, as a job array of Slurm, and follow that: options for sbatch in one word, such as "
        "'--time=00:10:00 --mem=8G', or '' for none. What comes out is the same; after a failed task, or Ctrl-C, the "
        "same command does only what is missing. --runs must be a directory that all nodes see.",
    ),
]


def command(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE...",
            help="A trace (.wtrace), or a pattern (.toml, or its name in 'wulf program emulate --list'); or several.",
            show_default=False,
        ),
    ] = None,
    on: OnOption = None,
    again: AgainOption = None,
    what_if: Annotated[
        str,
        typer.Option(
            "--what-if",
            metavar="LIST",
            help="Networks by name, or changes of the calibrated one: latency=5us, latency=x0.5, latency=5us..100us, "
            "bandwidth=x2, overhead=x0.5, compute=x0.9; @RUN for the network of another calibrated run. "
            "Commas between; + joins several for one.",
        ),
    ] = USUAL_NETWORKS,
    own: OwnOption = None,
    ranks: Annotated[int, typer.Option(min=0, help="Of a pattern that leaves the number open.")] = 0,
    ranks_per_node: RanksPerNodeOption = 0,
    placement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="On which node each rank is: a number for each, in order; those of programs beside it follow.",
        ),
    ] = None,
    rules: RulesOption = None,
    engine: EngineOption = "auto",
    beside: BesideOption = None,
    topology: TopologyOption = None,
    samples: SamplesOption = SAMPLES,
    seed: SeedOption = 1,
    html_file: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page to this file; of several traces, pages to this directory.",
        ),
    ] = None,
    timeline: Annotated[
        str,
        typer.Option(
            metavar="NETWORK",
            help="The page draws where the time of the ranks goes on this network, beside that as it is. Default: "
            "the fastest.",
            show_default=False,
        ),
    ] = "",
    slurm: SlurmOption = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Launch the program of the trace again, on the nodes of the run, and say whether its time lies in "
            "the predicted interval: of the only network asked about, which the cluster has now, else as it is.",
        ),
    ] = False,
    launches: Annotated[int, typer.Option(help="With --verify: so many launches.")] = 6,
    mpi: Annotated[
        str | None,
        typer.Option(
            help="With --verify: MPI library of the program: openmpi, mpich, or the path of an mpicc."
        ),
    ] = None,
    list_networks: Annotated[
        bool,
        typer.Option(
            "--list",
            "--list-networks",
            help="List the networks that have names, with parameters and sources.",
        ),
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(metavar="NETWORK", help="Print the file of a network, to begin one of your own with."),
    ] = None,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Say what a traced program would take on other networks, and whether that is worth anything.

    The network as it is comes from a calibrated run. The longest path of the trace's messages tells how much of the run
    time is latency, bandwidth, CPU time of messages or computing, and how much latency the program bears. Every figure
    has an interval: of the parameters, of the compute times, and of how well the model fits the network as it is.

    A second replay, event by event, says how much contention matters: who comes first, and what ranks, uplinks and
    programs share.

    A trace that cannot be replayed soundly is refused, and it is said why. Exit code 3 when --verify finds the time
    outside of the interval.
    """
    from wulf.base import networks
    from wulf.compose import checking
    from wulf.node.replay import predicting
    from wulf.page.terminal import print_page
    from wulf.tools.predict import page as report

    if list_networks:
        show_list(own or [], json=json)
        return
    if show is not None:
        sys.stdout.write(networks.text(show))
        return
    if not sources or on is None:
        raise UsageError("give a trace, and --on RUN, a run of 'wulf measure --suite calibrate'")
    if len(sources) > 1:
        _require_several(sources, html_file, placement, again or [], verify=verify)
    run = open_run(on, runs)
    requests = [
        predicting.PredictRequest(
            source=source,
            again=again or [],
            run=run,
            what_if=what_if,
            own=own or [],
            ranks=ranks,
            ranks_per_node=ranks_per_node,
            placement=_numbers(placement) if placement is not None else [],
            rules=rules,
            find_run=lambda name: open_run(name, runs),
            samples=samples,
            seed=seed,
            timelines=html_file is not None,
            timeline=timeline,
            engine=engine,
            beside=beside or [],
            topology=topology,
            scratch=runs if slurm is not None else None,
        )
        for source in sources
    ]
    with staging() as say:
        found = predicting.predict_all(requests, say, replayer(slurm, runs))
        if verify:
            found = [checking.verify(found[0], requests[0], launches, mpi, say)]
    if html_file is not None:
        _write_pages(found, html_file)
    if json:
        print_json(found if len(found) > 1 else found[0])
    else:
        for one in found:
            print_page(report.build(one), console())
    if any(one.checked is not None and not one.checked.inside for one in found):
        raise typer.Exit(EXIT_FINDINGS)


def replayer(slurm: str | None, runs: Path) -> Replayer:
    """Return who replays: this machine, or with options of sbatch a job array.

    Raises
    ------
    UsageError
        The options are no words of a shell.
    """
    from wulf.node.replay import replaying
    from wulf.node.replay.fanning import Array

    if slurm is None:
        return replaying.here
    try:
        options = shlex.split(slurm)
    except ValueError as error:
        raise UsageError(f"--slurm {slurm!r}: {error}") from None
    return Array(options=options, directory=runs, watch=note)


def _require_several(
    sources: Sequence[Path], html: Path | None, placement: Path | None, again: Sequence[Path], *, verify: bool
) -> None:
    if again:
        raise UsageError("--again is of one program: give one trace of it before")
    if verify or placement is not None:
        raise UsageError("--verify and --placement are of one trace: give them one")
    names = [source.name for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if html is not None and twice is not None:
        raise UsageError(f"--html: two traces are called {twice}: their pages would be one")
    if html is not None and html.exists() and not html.is_dir():
        raise UsageError(f"--html {html}: of several traces it is a directory, and this is a file")


def _write_pages(found: Sequence[Prediction], place: Path) -> None:
    from wulf.base.store import write_atomically
    from wulf.page.page import html
    from wulf.tools.predict import page as report

    if len(found) == 1:
        write_atomically(place, html(report.build(found[0])).encode())
        return
    place.mkdir(parents=True, exist_ok=True)
    for one in found:
        page = place / f"{Path(one.trace).name}.html"
        write_atomically(page, html(report.build(one)).encode())


def _numbers(path: Path) -> list[int]:
    try:
        words = path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', 'it is no text')}") from None
    for place, word in enumerate(words):
        if not (word.isascii() and word.isdigit()):
            raise ConfigError(f"{path}: number {place + 1}, of rank {place}, is {word!r}: no node")
    return [int(word) for word in words]
