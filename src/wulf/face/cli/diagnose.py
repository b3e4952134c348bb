"""``wulf diagnose``: which node, link or group of nodes is slow."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.request import JsonField, Option
from wulf.face.cli.declared import flat
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import note
from wulf.tools.diagnose.request import MARGIN, DiagnoseRequest


@dataclass(frozen=True)
class Shown:
    """How it is shown."""

    paths: Annotated[
        bool,
        Option(
            "Judge the single paths between nodes instead, like 'wulf diagnose paths', which has more options."
        ),
    ] = False
    incast: Annotated[
        bool,
        Option("Send from many to one instead, like 'wulf diagnose incast', which has more options."),
    ] = False
    junit: Annotated[Path | None, Option("Also write JUnit XML to this file.", metavar="FILE")] = None
    json: JsonField = False


@flat
def command(request: DiagnoseRequest, shown: Shown) -> None:
    if shown.paths or shown.incast:
        _instead(request, shown)
        return
    from wulf.base import store
    from wulf.page.sections import diagnosis as report
    from wulf.page.terminal import print_page
    from wulf.tools.diagnose import all_pairs, work

    earlier = store.opened(request.baseline, request.runs) if request.baseline is not None else None
    loaded, whole = all_pairs.judged(request, MeasureProgress, note)
    found = work.diagnose(loaded, request.wanted)
    if earlier is not None:
        found = work.against(found, loaded, earlier, request.margin or MARGIN)
    if shown.junit is not None:
        store.write_atomically(shown.junit, report.junit(found).encode())
        sys.stderr.write(f"written: {shown.junit}\n")
    if shown.json:
        print_json(found)
    else:
        print_page(report.page(found), console())
        console().print(f"all figures: wulf report {loaded.path}", markup=False, soft_wrap=True)
    if not whole or not found.fine or (found.gate is not None and not found.gate.holds):
        raise typer.Exit(EXIT_FINDINGS)


def _instead(request: DiagnoseRequest, shown: Shown) -> None:
    """Do what 'wulf diagnose paths' or 'wulf diagnose incast' does with the options that both have."""
    from wulf.base.tool import tools
    from wulf.face.cli.progress import Display
    from wulf.face.cli.tool import Shown as Form
    from wulf.face.cli.tool import show_record

    word = "paths" if shown.paths else "incast"
    if shown.paths and shown.incast:
        raise UsageError("--paths or --incast: one at a time")
    if request.run is not None or request.baseline is not None or shown.junit is not None:
        raise UsageError(f"--{word} measures anew: it takes no run, no --baseline and no --junit")
    tool = tools()[f"diagnose {word}"]
    asked = tool.part(tool.request)(request.cluster, nodes=request.nodes, budget_s=request.budget_s)
    with Display() as progress:
        found = tool.part(tool.work)(asked, progress)
    show_record(found, tool.part(tool.page)(found), Form(json=shown.json))
    if code := tool.part(tool.exit_code)(found):
        raise typer.Exit(code)
