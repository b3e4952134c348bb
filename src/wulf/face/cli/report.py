"""``wulf report``: a run as a page, as text, as data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wulf.base.errors import StoreError, UsageError
from wulf.base.request import RUNS
from wulf.face.cli.options import RunArgument, RunsOption, console

if TYPE_CHECKING:
    from wulf.page.forms import Form
    from wulf.page.parts import Figure

#: Directory of a run that charts are written into.
CHARTS = "charts"


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
        bool, typer.Option("--markdown", help="Print the tables of a paper as Markdown.")
    ] = False,
    as_latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables of a paper as LaTeX (booktabs).")
    ] = False,
    as_bibtex: Annotated[
        bool, typer.Option("--bibtex", help="Print BibTeX entries of the run and of wulf.")
    ] = False,
    as_svg: Annotated[bool, typer.Option("--svg", help="Write every chart as an SVG file.")] = False,
    as_pdf: Annotated[bool, typer.Option("--pdf", help="Write every chart as a PDF file.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write instead; of --svg and --pdf the directory."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser when there is one.")
    ] = False,
) -> None:
    """Report a run of any kind. Without an option an HTML file is written into it.

    --markdown and --latex give the tables that papers print: of a measured run its pairs and the sizes of the worst
    one, of a tuning run (with --csv, too) setting, mean, deviation, quantiles. --svg and --pdf write the charts into
    the directory 'charts' of the run.
    """
    from wulf.base.store import kinds
    from wulf.compose import rendering
    from wulf.page.terminal import print_page

    forms: dict[Form, bool] = {
        "html": as_html,
        "text": as_text,
        "json": as_json,
        "csv": as_csv,
        "markdown": as_markdown,
        "latex": as_latex,
        "bibtex": as_bibtex,
        "svg": as_svg,
        "pdf": as_pdf,
    }
    chosen = [form for form, wanted in forms.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(f"choose one of {', '.join(f'--{form}' for form in forms)}")
    form: Form = chosen[0] if chosen else "html"
    path = kinds.find_any(run, runs)
    kind = kinds.kind_of(path)
    found, report = kind.read(path), rendering.report_of(kind)
    if form in ("svg", "pdf"):
        _draw(report.figures(found), form, output or path / CHARTS)
    elif form == "text" and output is None:
        print_page(report.text(found), console())
    elif form == "html":
        page = write_page(found, output)
        sys.stdout.write(f"report: {page.resolve()}\n")
        if show:
            _open(page)
    else:
        _emit(rendering.rendered(found, form).encode(), output)


def write_page(run: Any, output: Path | None) -> Path:
    """Write the page of a run of any kind, into the run by default; return where it is."""
    from wulf.base.store import write_atomically
    from wulf.compose import rendering

    page = output or run.path / "report.html"
    write_atomically(page, rendering.rendered(run, "html").encode())
    return page


def _draw(charts: Sequence[tuple[str, Figure]], form: Literal["svg", "pdf"], directory: Path) -> None:
    """Write every chart into the directory; say where they are."""
    from wulf.base.store import write_atomically
    from wulf.page.pictures import pictures

    if not charts:
        raise StoreError("there is no chart: nothing was measured")
    if directory.exists() and not directory.is_dir():
        raise UsageError(
            f"--output {directory}: --{form} writes several files, so that this must be a directory"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in pictures(charts, form):
        write_atomically(directory / name, content)
        sys.stdout.write(f"{directory / name}\n")


def _emit(content: bytes, output: Path | None) -> None:
    from wulf.base.store import write_atomically

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
