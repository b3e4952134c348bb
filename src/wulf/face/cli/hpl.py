"""``wulf bench hpl``: High-Performance Linpack, tuned and repeated."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.nodeset import fold
from wulf.base.request import JsonField
from wulf.base.text import count
from wulf.base.units import format_value
from wulf.face.cli.declared import flat
from wulf.face.cli.options import ResumeField, console, print_json
from wulf.face.cli.progress import Display, duration
from wulf.tools.hpl.request import HplRequest

if TYPE_CHECKING:
    from wulf.tools.hpl.record import HplLaunch, HplManifest
    from wulf.tools.hpl.store import HplRun


class HplProgress(Display):
    """Shows where a run of HPL stands."""

    def __init__(self) -> None:
        super().__init__()
        self._best = 0.0

    def begun(self, path: Path, manifest: HplManifest) -> None:
        """Say where the run is, and with what."""
        plan = manifest.plan
        self.note(f"run: {path}")
        self.note(
            f"{plan.program} on {fold(plan.nodes)}, {count(plan.cpus, 'CPU')} each, {duration(plan.time_s)}"
        )

    def launched(self, launch: HplLaunch, spent_s: float, left_s: float) -> None:
        """Show what came of a launch, and the time left."""
        if launch.status == "failed":
            self.note(f"launch {launch.index} (N {launch.n}, {launch.setting.shown}) failed: {launch.reason}")
        found = launch.gflops if launch.status == "ok" and launch.gflops else 0.0
        self._best = max(self._best, found)
        said = format_value(found, "GFLOPS") if found else launch.status
        text = f"launch {launch.index + 1}: N {launch.n}, {launch.setting.shown}: {said} · "
        text += f"best so far {format_value(self._best, 'GFLOPS')} · at most {duration(left_s)} left"
        self.show(text, spent_s, left_s)

    def interrupted(self, path: Path) -> None:
        """Say how to go on."""
        self.note(f"interrupted; what was measured is kept: wulf bench hpl --resume {path}")


@dataclass(frozen=True)
class Begun:
    """How it is begun and shown."""

    resume: ResumeField = None
    json: JsonField = False


@flat
def command(request: HplRequest, begun: Begun) -> None:
    from wulf.base.store import find_run
    from wulf.tools.hpl import session
    from wulf.tools.hpl.store import HEAD

    with HplProgress() as progress:
        if begun.resume is not None:
            finished = session.go_on(find_run(begun.resume, request.runs, HEAD), request.budget_s, progress)
        else:
            finished = session.start(request, progress)
    _show(finished, json=begun.json)


def _show(run: HplRun, *, json: bool) -> None:
    from wulf.page.terminal import print_page
    from wulf.tools.hpl import page as report
    from wulf.tools.hpl import session

    result = session.conclude(run.manifest, run.launches)
    if json:
        print_json(result)
    else:
        print_page(report.build(run.manifest, run.launches, result), console())
        sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path}\n")
    failed = any((launch.phase, launch.status) == ("confirm", "failed") for launch in run.launches)
    if failed or run.manifest.status != "complete":
        raise typer.Exit(EXIT_FINDINGS)
