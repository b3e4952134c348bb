"""``wulf report``: a run as a page, as text, as data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.cli.options import RUNS, RunArgument, RunsOption, console, open_run
from wulf.errors import UsageError
from wulf.procedure.analysis import analyze
from wulf.procedure.look import judge
from wulf.records import Analysis
from wulf.report import export, html, text
from wulf.store import Run, write_atomically


def command(
    run: RunArgument = "latest",
    runs: RunsOption = RUNS,
    as_html: Annotated[
        bool, typer.Option("--html", help="Write one self-contained HTML file (default).")
    ] = False,
    as_text: Annotated[bool, typer.Option("--text", help="Print tables to the terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (see docs/reference/json.md).")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print one line per operation, pair and size.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write instead.")] = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser when there is one.")
    ] = False,
) -> None:
    """Report a run. Without an option an HTML file is written into the run and its name printed."""
    if sum((as_html, as_text, as_json, as_csv)) > 1:
        raise UsageError("choose one of --html, --text, --json, --csv")
    loaded = open_run(run, runs)
    analysis = loaded.analysis() or analyze(loaded)
    if as_text and output is None:
        text.render(loaded.manifest, loaded.nodes, loaded.launches, analysis, console())
    elif as_json or as_csv or as_text:
        _emit(_data(loaded, analysis, "json" if as_json else "csv" if as_csv else "text"), output)
    else:
        page = output or loaded.path / "report.html"
        write_atomically(page, _page(loaded, analysis).encode())
        sys.stdout.write(f"report: {page.resolve()}\n")
        if show:
            _open(page)


def _page(run: Run, analysis: Analysis) -> str:
    # Runs of versions before 0.2 know too little of their nodes to judge them.
    audit = judge(run.nodes, "hpc") if any("kernel.release" in node.facts for node in run.nodes) else None
    return html.render(run.manifest, run.nodes, run.launches, analysis, audit)


def _data(run: Run, analysis: Analysis, form: str) -> bytes:
    if form == "json":
        return export.json(run.manifest, run.nodes, run.launches, analysis) + b"\n"
    if form == "csv":
        return export.csv(analysis).encode()
    return text.rendered(run.manifest, run.nodes, run.launches, analysis).encode()


def _emit(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_atomically(output, content)
        sys.stderr.write(f"written: {output}\n")


def _open(page: Path) -> None:
    opener = shutil.which("xdg-open")
    if opener and sys.stdout.isatty():
        subprocess.run([opener, str(page)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
