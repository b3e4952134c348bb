"""``wulf compare``: what changed from one run to others, or what differs between two settings that take turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.signals import end_gently
from wulf.base.units import parse_duration, parse_percent, parse_size
from wulf.face.cli import complete
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import RUNS, ClusterOption, JsonOption, RunsOption, console, open_run, print_json
from wulf.face.cli.printed import AsOption, MatchOption
from wulf.face.cli.progress import Display
from wulf.face.cli.set_values import RelaxOption, TakeOverOption, show_commands, show_rows, telling_of_nodes

if TYPE_CHECKING:
    from wulf.base.records import Comparison, Operation
    from wulf.node.trials import interleaving

#: Enough to find 5 % where launches scatter by 3 % (bench compare-power).
LAUNCHES = 20
BUDGET = "10m"
SIZES = "1,64,1KiB,64KiB"
_SECTION = "Of --interleaved"


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="The base, then what to compare with it. With --interleaved two sides, each 'original' or "
            "KNOB=VALUE,…; mpi=openmpi and pairs=node01:node02 are among what a side may say.",
            autocompletion=complete.runs,
        ),
    ],
    runs: RunsOption = RUNS,
    margin: Annotated[str, typer.Option(help="Differences smaller than this do not matter.")] = "2%",
    json: JsonOption = False,
    html_file: Annotated[
        Path | None, typer.Option("--html", help="Write a page to this file (two runs).", metavar="FILE")
    ] = None,
    interleaved: Annotated[
        bool,
        typer.Option(
            "--interleaved",
            help="Measure two sides now, in pairs of launches of random order, and put everything back.",
        ),
    ] = False,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    ops: Annotated[
        str | None,
        typer.Option(
            help=f"{_SECTION}: operations, separated by commas. Default: the usual ping-pong.",
            autocompletion=complete.operations,
        ),
    ] = None,
    command_text: Annotated[
        str,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help=f"{_SECTION}: the run time of this command on the first node; with --ops, these operations, too.",
        ),
    ] = "",
    match: MatchOption = None,
    names_: AsOption = None,
    sizes: Annotated[str, typer.Option(help=f"{_SECTION}: message sizes.")] = SIZES,
    pairs: Annotated[
        str, typer.Option(help=f"{_SECTION}: all, ring, or pairs such as n1:n2,n3:n4.")
    ] = "ring",
    launches: Annotated[int, typer.Option(help=f"{_SECTION}: pairs of launches at most.")] = LAUNCHES,
    budget: Annotated[
        str, typer.Option(help=f"{_SECTION}: time after which no pair of launches is begun.")
    ] = BUDGET,
    mpi: Annotated[
        str | None, typer.Option(help=f"{_SECTION}: MPI library of a side that names none.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help=f"{_SECTION}: seed of all random orders.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help=f"{_SECTION}: print every command for every node, and change nothing."
        ),
    ] = False,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
) -> None:
    """Show the shift of every size with its interval, and a verdict.

    The first run is the base. Two runs that were measured at different times differ by a few percent as a whole even
    when nothing was changed: a change up to 10 % is called "different runs", not better or worse. With --interleaved
    two settings, MPI libraries or sets of pairs are measured now, in launches that take turns in random order, which
    shows effects below that. Settings are made under the guard that 'wulf settings set' has, and put back at the
    end, after Ctrl-C too; what was measured until then is compared.

    Exit code 3 when a run is worse than the base, or has nothing in common with it.
    """
    from wulf.node.fleet import change
    from wulf.node.fleet.begin import new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.node.measuring import analysis
    from wulf.node.trials import interleaving
    from wulf.node.trials.printed import printed

    if len(names) < 2:
        raise UsageError("wulf compare needs at least two runs: the base, then what to compare with it")
    width = parse_percent(margin)
    if not interleaved:
        if command_text or match or names_:
            raise UsageError(
                "--command, --match and --as are about --interleaved: stored runs say what they measured"
            )
        if dry_run:
            raise UsageError("--dry-run is about --interleaved: a comparison of stored runs changes nothing")
        base, *candidates = [open_run(name, runs) for name in names]
        comparisons = [analysis.compare(base, candidate, width) for candidate in candidates]
        _show(comparisons, base.manifest.operations, html_file, json=json)
        return
    end_gently()
    if len(names) != 2:
        raise UsageError("--interleaved compares two sides")
    if match and not command_text:
        raise UsageError("--match is a number that a command prints: it takes --command")
    if dry_run and json:
        raise UsageError("--dry-run has no --json: it prints commands for people")
    config = resolve(cluster)
    request = interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(nodes),
        sides=(interleaving.side(names[0]), interleaving.side(names[1])),
        ops=[name.strip() for name in ops.split(",")] if ops else None,
        sizes_bytes=sorted({parse_size(size) for size in sizes.split(",")}),
        pairs=pairs,
        command=command_text,
        prints=printed(match or [], names_ or []),
        launches=launches,
        budget_s=parse_duration(budget),
        margin=width,
        permissions=change.Permissions(take_over=take_over, relax=relax),
        mpi=mpi or config.mpi.compiler,
        seed=new_seed(seed),
    )
    measure_in_turn(request, html_file, dry_run=dry_run, json=json)


def measure_in_turn(
    request: interleaving.InterleaveRequest, html_file: Path | None, *, dry_run: bool, json: bool
) -> None:
    """Measure two sides in turn, and show how they differ."""
    from wulf.node.fleet import change
    from wulf.node.trials import interleaving

    with (
        telling_of_nodes(json=json),
        Display() as display,
        interleaving.prepared(request, display.stage) as ready,
    ):
        if dry_run:
            explained = [change.explain(ready.transport, arm.plan.plans) for arm in ready.arms]
        else:
            found = interleaving.interleave(request, ready, display.stage)
    if dry_run:
        for arm, commands in zip(ready.arms, explained, strict=True):
            sys.stdout.write(f"\n{arm.side.name}: {_measured(arm)}\n")
            show_rows(arm.plan)
            show_commands(commands, {})
        sys.stdout.write(
            f"{request.launches} pairs of launches, in random order; at most {request.budget_s:.0f} s\n"
        )
        return
    if found.interrupted:
        sys.stderr.write("interrupted; everything is put back, and what was measured is compared\n")
    _show([found.comparison], found.operations, html_file, json=json, interrupted=found.interrupted)


def _measured(arm: interleaving.Arm) -> str:
    return "; ".join(
        f"{part.op} between {', '.join('–'.join(place) for place in part.places)}"
        for part in arm.workload.parts
    )


def _show(
    comparisons: Sequence[Comparison],
    operations: Sequence[Operation],
    html_file: Path | None,
    *,
    json: bool,
    interrupted: bool = False,
) -> None:
    from wulf.base.store import write_atomically
    from wulf.page.page import html
    from wulf.page.terminal import print_page
    from wulf.tools.compare import page as report

    if html_file is not None:
        if len(comparisons) > 1:
            raise UsageError("--html shows two runs: name the base and one other")
        write_atomically(html_file, html(report.build(comparisons[0], operations)).encode())
        sys.stderr.write(f"written: {html_file}\n")
    if json:
        print_json(comparisons)
    else:
        for comparison in comparisons:
            print_page(report.build(comparison, operations), console())
    if interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if any(comparison.verdict in ("worse", "mixed") or not comparison.cells for comparison in comparisons):
        raise typer.Exit(EXIT_FINDINGS)
