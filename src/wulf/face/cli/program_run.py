"""``wulf program run``: any command as an experiment, repeated until its figures are precise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import SHARE, Option
from wulf.face.cli.compare import measure_in_turn
from wulf.face.cli.declared import flat
from wulf.face.cli.measure import show_measured
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.tools.run.request import PAIRS, AgainstRequest, RunRequest


@dataclass(frozen=True)
class Against:
    """Another command to compare it with."""

    against: Annotated[
        str | None,
        Option(
            "Another command: measure both in pairs of launches in random order, and say how they differ.",
            metavar="COMMAND",
        ),
    ] = None
    html: Annotated[Path | None, Option("With --against: write a page to this file.", metavar="FILE")] = None
    margin: Annotated[
        float | None,
        Option("With --against: differences smaller than this do not matter. Default: 2%.", unit=SHARE),
    ] = None

    def __post_init__(self) -> None:
        if self.against is None and (self.html or self.margin):
            raise UsageError("--html and --margin are about --against")


@flat
def command(request: RunRequest, other: Against) -> None:
    from wulf.tools.run import work

    if other.against is not None:
        measure_in_turn(work.in_turn(_pair(request, other)), other.html, dry_run=False, json=False)
        return
    with MeasureProgress() as progress:
        measured = work.run(request, progress)
    show_measured(measured)


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
