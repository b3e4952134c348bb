"""``wulf predict``: what a traced program would take on other networks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from wulf import networks
from wulf.cli import complete
from wulf.cli.options import RUNS, JsonOption, RunsOption, console, open_run, print_json, show_table
from wulf.cli.progress import staging
from wulf.errors import EXIT_FINDINGS, ConfigError, UsageError
from wulf.procedure import checking, predicting
from wulf.report import predict as report
from wulf.store import write_atomically

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
        "--network", metavar="FILE", help="A network of your own, or a directory of them. May be repeated."
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
SamplesOption = Annotated[int, typer.Option(min=20, help="Samples behind the intervals.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of these samples.")]


def command(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="TRACE", help="A trace (.wtrace), or a pattern (.toml).", show_default=False),
    ] = None,
    on: OnOption = None,
    what_if: Annotated[
        str,
        typer.Option(
            "--what-if",
            metavar="LIST",
            help="Networks by name, or changes of the calibrated one: latency=5us, latency=x0.5, latency=5us..100us, "
            "bandwidth=x2, overhead=x0.5, compute=x0.9; @RUN for the network of another calibrated run. "
            "Commas between; + joins several for one.",
        ),
    ] = predicting.USUAL,
    own: OwnOption = None,
    ranks: Annotated[int, typer.Option(min=0, help="Of a pattern that leaves the number open.")] = 0,
    ranks_per_node: RanksPerNodeOption = 0,
    placement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="On which node each rank is: a number for each, in order."),
    ] = None,
    rules: RulesOption = None,
    samples: SamplesOption = SAMPLES,
    seed: SeedOption = 1,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to this file.")
    ] = None,
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
    list_networks: Annotated[bool, typer.Option("--list", help="List the networks that have names.")] = False,
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

    A trace that cannot be replayed soundly is refused, and it is said why. Exit code 3 when --verify finds the time
    outside of the interval.
    """
    if list_networks:
        _list()
        return
    if show is not None:
        sys.stdout.write(networks.text(show))
        return
    if source is None or on is None:
        raise UsageError("give a trace, and --on RUN, a run of 'wulf measure --suite calibrate'")
    request = predicting.PredictRequest(
        source=source,
        run=open_run(on, runs),
        what_if=what_if,
        own=own or [],
        ranks=ranks,
        ranks_per_node=ranks_per_node,
        placement=_numbers(placement) if placement is not None else [],
        rules=rules,
        find_run=lambda name: open_run(name, runs),
        samples=samples,
        seed=seed,
    )
    with staging() as say:
        found = predicting.predict(request, say)
        if verify:
            found = checking.verify(found, request, launches, mpi, say)
    if html_file is not None:
        write_atomically(html_file, report.render_html(found).encode())
    if json:
        print_json(found)
    else:
        report.render_text(found, console())
    if found.checked is not None and not found.checked.inside:
        raise typer.Exit(EXIT_FINDINGS)


def _list() -> None:
    table = Table("name", "year", "network", "parameters from", box=None)
    for one in networks.networks().values():
        sources = "; ".join(f"{e.source} ({e.how_known})" for e in one.evidence)
        table.add_row(one.id, str(one.year), one.title, sources)
    show_table(table)


def _numbers(path: Path) -> list[int]:
    try:
        words = path.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', 'it is no text')}") from None
    for place, word in enumerate(words):
        if not (word.isascii() and word.isdigit()):
            raise ConfigError(f"{path}: number {place + 1}, of rank {place}, is {word!r}: no node")
    return [int(word) for word in words]
