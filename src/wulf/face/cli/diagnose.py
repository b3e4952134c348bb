"""``wulf diagnose``: which node, link or group of nodes is slow."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.request import JsonField, Option
from wulf.face.cli.declared import flat
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import note
from wulf.tools.diagnose.request import MARGIN, DiagnoseRequest


@dataclass(frozen=True)
class Shown:
    """How it is shown."""

    junit: Annotated[Path | None, Option("Write JUnit XML to this file too.", metavar="FILE")] = None
    json: JsonField = False


@flat
def command(request: DiagnoseRequest, shown: Shown) -> None:
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
