"""``wulf report``: a run as a page, as text, as data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from wulf.cli.options import RUNS, RunArgument, RunsOption, console
from wulf.errors import StoreError, UsageError
from wulf.procedure.analysis import analyze
from wulf.procedure.look import judge
from wulf.procedure.tuning import keep
from wulf.records import Analysis
from wulf.report import export, html, text, tuning
from wulf.report.text import plain
from wulf.store import MANIFEST, Run, find_run, load, write_atomically
from wulf.store.tuning import HEAD, TuningRun, load_tuning


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
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Of a tuning run: the table of a paper.")
    ] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Of a tuning run: the table of a paper.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write instead.")] = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser when there is one.")
    ] = False,
) -> None:
    """Report a measured run or a tuning run. Without an option an HTML file is written into it.

    Of a tuning run --csv, --markdown and --latex give the table that papers print: setting, mean, deviation,
    quantiles.
    """
    forms = {"json": as_json, "csv": as_csv, "text": as_text, "markdown": as_markdown, "latex": as_latex}
    chosen = [form for form, wanted in forms.items() if wanted]
    if len(chosen) + as_html > 1:
        raise UsageError("choose one of --html, --text, --json, --csv, --markdown, --latex")
    path = find_run(run, runs, MANIFEST, HEAD)
    if (path / HEAD).is_file():
        _tuning(load_tuning(path), chosen[0] if chosen else "html", output, show=show)
        return
    if as_markdown or as_latex:
        raise UsageError("--markdown and --latex are for tuning runs")
    loaded = load(path)
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


def write_tuning_page(run: TuningRun, output: Path | None) -> Path:
    """Write the page of a tuning run, into the run by default; return where it is."""
    page = output or run.path / "report.html"
    write_atomically(page, tuning.render_html(keep.report(run)).encode())
    return page


def _tuning(run: TuningRun, form: str, output: Path | None, *, show: bool) -> None:
    if run.result is None:
        raise StoreError(f"{run.path} has no conclusion yet: go on with 'wulf tune --resume {run.path}'")
    if form == "html":
        page = write_tuning_page(run, output)
        sys.stdout.write(f"report: {page.resolve()}\n")
        if show:
            _open(page)
    elif form == "text" and output is None:
        tuning.render_text(keep.report(run), console())
    else:
        _emit(_tuning_data(run, form), output)


def _tuning_data(run: TuningRun, form: str) -> bytes:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(run.result), indent=1) + b"\n"
    found = keep.report(run)
    if form == "csv":
        return tuning.published_csv(tuning.published_table(found)).encode()
    if form == "markdown":
        return tuning.published_markdown(found).encode()
    if form == "latex":
        return tuning.published_latex(found).encode()
    return plain(lambda console: tuning.render_text(found, console)).encode()


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
