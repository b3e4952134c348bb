"""``wulf program worth``: what another network is worth to a mix of jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from wulf.base.errors import UsageError
from wulf.face.cli.options import RUNS, JsonOption, RunsOption, console, open_run, print_json
from wulf.face.cli.predict import (
    SAMPLES,
    OnOption,
    OwnOption,
    RanksPerNodeOption,
    RulesOption,
    SamplesOption,
    SeedOption,
    SlurmOption,
    replayer,
)
from wulf.face.cli.progress import staging

NETWORKS = "10gbe,25gbe,25gbe-roce"
TUNED = "1gbe-tuned"


def command(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TRACE...", help="Traces of the jobs.", show_default=False),
    ] = None,
    on: OnOption = None,
    jobs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the cluster is used for: --template jobs.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What things cost: --template prices.")
    ] = None,
    what_if: Annotated[
        str, typer.Option("--what-if", metavar="LIST", help="Networks by name, with commas between.")
    ] = NETWORKS,
    tuned: Annotated[
        str,
        typer.Option(
            metavar="NETWORK",
            help="What the network as it is becomes when it is tuned; 'none' to leave it out.",
        ),
    ] = TUNED,
    own: OwnOption = None,
    ranks_per_node: RanksPerNodeOption = 0,
    rules: RulesOption = None,
    as_traced: Annotated[
        bool,
        typer.Option(
            "--as-traced",
            help="Take traces with receives from anybody, too, as if messages came in the same order on every network.",
        ),
    ] = False,
    samples: SamplesOption = SAMPLES,
    seed: SeedOption = 1,
    slurm: SlurmOption = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to this file.")
    ] = None,
    template: Annotated[
        Literal["jobs", "prices"] | None,
        typer.Option(help="Print a file to begin with, with all its keys explained."),
    ] = None,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Say what other networks are worth: node-hours saved a year, against ports and power.

    Each trace is predicted as 'wulf program predict' does, and stands for its share of the cluster's node-hours.
    Of every network: value, cost, the price of a port at which it pays, when it has paid, how many nodes the same
    money buys, and what it brings beyond tuning what there is. Every figure has an interval: of the predictions
    and of the prices.

    A trace that cannot carry the question is refused: one that cannot be replayed soundly, was cut off, is of one node
    or of other ranks or nodes than the jobs, or has receives from anybody; and of a network that changes less than the
    traces vary by themselves it is not said that it pays.
    """
    from wulf.base.store import write_atomically
    from wulf.page.page import html
    from wulf.page.terminal import print_page
    from wulf.tools.worth import money, work
    from wulf.tools.worth import page as report

    if template is not None:
        sys.stdout.write(money.JOBS if template == "jobs" else money.PRICES)
        return
    if not traces or on is None or jobs is None or prices is None:
        raise UsageError(
            "give traces, --on RUN, --jobs FILE and --prices FILE (--template prints either file)"
        )
    request = work.WorthRequest(
        traces=traces,
        run=open_run(on, runs),
        jobs=jobs,
        prices=prices,
        what_if=what_if,
        tuned="" if tuned == "none" else tuned,
        own=own or [],
        ranks_per_node=ranks_per_node,
        rules=rules,
        samples=samples,
        seed=seed,
        as_traced=as_traced,
        scratch=runs if slurm is not None else None,
    )
    with staging() as say:
        found = work.value(request, say, replayer(slurm, runs))
    if html_file is not None:
        write_atomically(html_file, html(report.build(found)).encode())
    if json:
        print_json(found)
    else:
        print_page(report.build(found), console())
