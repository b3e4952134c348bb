"""``wulf program run``: any command as an experiment, repeated until its figures are precise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import UsageError
from wulf.base.request import SHARE, Option
from wulf.face.cli.compare import measure_in_turn
from wulf.face.cli.declared import flat
from wulf.face.cli.measure import show_measured
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.tools.run.request import PAIRS, ROUNDS, AgainstRequest, RunRequest, ScalingRequest


@dataclass(frozen=True)
class Against:
    """Another command to compare it with."""

    against: Annotated[
        str | None,
        Option(
            "Another command: measure both in pairs of launches in random order, and show how they differ.",
            metavar="COMMAND",
        ),
    ] = None
    html: Annotated[
        Path | None, Option("With --against or several --ranks: write a page to it.", metavar="FILE")
    ] = None
    margin: Annotated[
        float | None,
        Option("With --against: differences smaller than this do not matter. Default: 2%.", unit=SHARE),
    ] = None

    def __post_init__(self) -> None:
        if self.against is None and self.margin:
            raise UsageError("--margin needs --against")


@dataclass(frozen=True)
class Several:
    """How several numbers of ranks are spread, and shown."""

    ranks_per_node: Annotated[
        int,
        Option(
            "With several --ranks: use as few nodes as hold this many ranks each, so that nodes are added "
            "with the ranks. Default: 0, always all nodes.",
            least=0,
        ),
    ] = 0
    traces: Annotated[
        bool,
        Option(
            "With several --ranks: record one launch more of each number, and say which part of the loss is computing, "
            "waiting for other ranks, and transfer."
        ),
    ] = False
    json: Annotated[bool, Option("With several --ranks: print JSON (see docs/reference/json.md).")] = False


@flat
def command(request: RunRequest, other: Against, several: Several) -> None:
    from wulf.tools.run import work

    if not isinstance(request.ranks, int):
        _scaled(request, other, several)
        return
    if several.ranks_per_node or several.json or several.traces:
        raise UsageError("--ranks-per-node, --traces and --json need several --ranks, such as 1,2,4,8")
    if other.html is not None and other.against is None:
        raise UsageError("--html needs --against or several --ranks")
    if other.against is not None:
        measure_in_turn(work.in_turn(_pair(request, other)), other.html, dry_run=False, json=False)
        return
    with MeasureProgress() as progress:
        measured = work.run(request, progress)
    show_measured(measured)


def _scaled(request: RunRequest, other: Against, several: Several) -> None:
    """Launch with one number of ranks after the other, and show how the time goes with them."""
    from wulf.compose import traced_scaling
    from wulf.face.cli.progress import Display
    from wulf.face.cli.tool import Shown, show_record
    from wulf.tools.run import page, scaling

    if other.against or request.batch or len(request.match) > 1:
        raise UsageError("several --ranks exclude --against and --batch, and allow one --match")
    assert not isinstance(request.ranks, int)
    wanted = ScalingRequest(
        request.command,
        request.ranks,
        request.cluster,
        request.path,
        nodes=request.nodes,
        directory=request.directory,
        ranks_per_node=several.ranks_per_node,
        mpi=request.mpi,
        match=next(iter(request.match), None),
        rounds=request.launches or ROUNDS,
        traces=several.traces,
        budget_s=request.budget_s,
        seed=request.seed,
        runs=request.runs,
    )
    with Display() as progress:
        found = traced_scaling.measure(wanted, progress)
    show_record(found, page.build(found), Shown(html=other.html, json=several.json))
    code = scaling.exit_code(found)
    if code:
        raise typer.Exit(code)


def _pair(request: RunRequest, other: Against) -> AgainstRequest:
    from wulf.node.trials import interleaving

    if request.ranks or request.batch or request.path:
        raise UsageError("--against compares two commands and stores no run: no --ranks, --batch or --run")
    if request.launches is not None and request.launches < interleaving.FEWEST:
        raise UsageError(
            f"--launches {request.launches}: with --against at least {interleaving.FEWEST}: fewer show no difference"
        )
    return AgainstRequest(
        request.command,
        other.against or "",
        request.cluster,
        nodes=request.nodes,
        directory=request.directory,
        match=request.match,
        names=request.names,
        launches=request.launches or PAIRS,
        budget_s=request.budget_s,
        margin=other.margin or 0.02,
        seed=request.seed,
    )
