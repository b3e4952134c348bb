"""``wulf compare``: what changed from one run to others, or what differs between two settings that take turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.request import RUNS, JsonField, Option, RunsField
from wulf.base.text import count
from wulf.face.cli import complete
from wulf.face.cli.declared import flat
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import Display
from wulf.face.cli.set_values import show_commands, show_rows, telling_of_nodes
from wulf.tools.compare.request import InTurnRequest

if TYPE_CHECKING:
    from wulf.base.records import Comparison, Operation
    from wulf.node.trials import interleaving

SidesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="The base, then the runs to compare with it. With --interleaved: two sides, each 'original' "
        "or KNOB=VALUE,…; a side may also have mpi=openmpi or pairs=node01:node02.",
        autocompletion=complete.runs,
    ),
]


@dataclass(frozen=True)
class Shown:
    """What is compared, and how it is shown."""

    interleaved: Annotated[
        bool,
        Option(
            "Measure two sides now, in pairs of launches in random order, and put everything back. The options above "
            "apply only to this, except --margin."
        ),
    ] = False
    dry_run: Annotated[
        bool, Option("With --interleaved: print every command for every node, and change nothing.")
    ] = False
    html: Annotated[Path | None, Option("Write a page to this file (two runs).", metavar="FILE")] = None
    json: JsonField = False
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        if self.dry_run and not self.interleaved:
            raise UsageError("--dry-run needs --interleaved: a comparison of stored runs changes nothing")
        if self.dry_run and self.json:
            raise UsageError("--dry-run has no --json: it prints commands for people")


@flat
def command(sides: SidesArgument, request: InTurnRequest, shown: Shown) -> None:
    """Compare runs: the change at every size with its interval, and a verdict.

    The first run is the base. Two runs that were measured at different times differ by a few percent as a whole
    even when nothing was changed: a change of up to 10 % is called "different runs", not better or worse. With
    --interleaved two settings, MPI libraries or sets of pairs are measured now, in launches that alternate in
    random order, which shows smaller effects. Settings are changed under the same guard as with 'wulf settings
    set', and put back at the end, also after Ctrl-C; what was measured until then is compared.

    Exit code 3 when a run is worse than the base, when it has nothing in common with it, or when no difference is
    shown although a change of 25 % at large or 50 % at small messages would have gone unseen.
    """
    from wulf.base.store import opened
    from wulf.node.measuring import analysis
    from wulf.tools.compare import work

    if len(sides) < 2:
        raise UsageError("wulf compare needs at least two runs: the base, then what to compare with it")
    if shown.interleaved:
        if len(sides) != 2:
            raise UsageError("--interleaved compares two sides")
        turns = work.turns(replace(request, base=sides[0], candidate=sides[1]))
        measure_in_turn(turns, shown.html, dry_run=shown.dry_run, json=shown.json)
        return
    if request.command or request.names:
        raise UsageError("--command, --match and --as need --interleaved: stored runs say what they measured")
    base, *candidates = [opened(name, shown.runs) for name in sides]
    comparisons = [analysis.compare(base, candidate, request.margin) for candidate in candidates]
    _show(comparisons, base.manifest.operations, shown.html, json=shown.json)


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
        pairs = count(request.launches, "pair")
        sys.stdout.write(f"{pairs} of launches, in random order; at most {request.budget_s:.0f} s\n")
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
    if any(one.verdict in ("worse", "mixed") or not one.cells or one.untold for one in comparisons):
        raise typer.Exit(EXIT_FINDINGS)
