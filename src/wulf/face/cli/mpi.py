"""``wulf mpi``: the collectives of an MPI library, and MPI libraries against each other."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.request import JsonField, Option
from wulf.face.cli import mpi_parameters
from wulf.face.cli.compare import measure_in_turn
from wulf.face.cli.declared import flat
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import Display, note
from wulf.face.cli.set_values import telling_of_nodes
from wulf.tools.collectives.request import CollectivesRequest
from wulf.tools.compare.request import LibrariesRequest

app = typer.Typer(
    help="Find the best algorithms for an MPI library's collectives, and compare MPI libraries.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("parameters")(mpi_parameters.command)


@dataclass(frozen=True)
class Shown:
    """How it is shown."""

    html: Annotated[Path | None, Option("Write a page to this file.", metavar="FILE")] = None
    json: JsonField = False


@app.command()
@flat
def tune(request: CollectivesRequest, shown: Shown) -> None:
    from wulf.base.store import write_atomically
    from wulf.page.page import html
    from wulf.page.terminal import print_page
    from wulf.tools.collectives import page as report
    from wulf.tools.collectives import session

    _require_place(Path(request.out), "--out")
    if shown.html is not None:
        _require_place(shown.html, "--html")
    task = session.task_of(request, note)
    with telling_of_nodes(json=shown.json), Display() as display:
        found = session.save(session.tune(task, display.stage), task.out)
    if task.out.exists() and found.path != str(task.out.absolute()):
        sys.stderr.write(f"{task.out} is from an earlier search: this one has not written it\n")
    if shown.html is not None:
        write_atomically(shown.html, html(report.build(found)).encode())
        sys.stderr.write(f"written: {shown.html}\n")
    if shown.json:
        print_json(found)
    else:
        print_page(report.build(found), console())
    if found.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    short = found.not_searched or found.not_judged or found.unjudged
    wrong = found.refused or found.dropped or found.slower or short
    if wrong or (found.text and not (found.effective and found.held_out)):
        raise typer.Exit(EXIT_FINDINGS)


@app.command()
@flat
def compare(request: LibrariesRequest, shown: Shown) -> None:
    from wulf.tools.compare import work

    measure_in_turn(work.libraries(request), shown.html, dry_run=False, json=shown.json)


def _require_place(file: Path, option: str) -> None:
    """Raise UsageError where a file cannot be written, before half an hour is spent on it."""
    directory = file.absolute().parent
    if file.is_dir() or not directory.is_dir() or not os.access(directory, os.W_OK):
        raise UsageError(f"{option} {file}: name a file in a directory that is there and can be written to")
