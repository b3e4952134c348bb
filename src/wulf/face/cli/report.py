"""``wulf report``: a run as a page, as text, as data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wulf.base.errors import StoreError, UsageError
from wulf.base.request import RUNS, JsonField, Option
from wulf.face.cli.declared import flat
from wulf.face.cli.options import RunArgument, RunsOption, console

if TYPE_CHECKING:
    from wulf.page.formats import Form
    from wulf.page.parts import Figure

#: Directory of a run that charts are written into.
CHARTS = "charts"


@dataclass(frozen=True)
class Forms:
    """The forms of a report, of which one is asked for."""

    html: Annotated[bool, Option("Write one self-contained HTML file (default).")] = False
    text: Annotated[bool, Option("Print tables to the terminal.")] = False
    json: JsonField = False
    csv: Annotated[bool, Option("Print one line per operation, pair and size.")] = False
    markdown: Annotated[bool, Option("Print the tables of a paper as Markdown.")] = False
    latex: Annotated[bool, Option("Print the tables of a paper as LaTeX (booktabs).")] = False
    bibtex: Annotated[bool, Option("Print BibTeX entries of the run and of wulf.")] = False
    svg: Annotated[bool, Option("Write every chart as an SVG file.")] = False
    pdf: Annotated[bool, Option("Write every chart as a PDF file.")] = False

    def chosen(self) -> Form:
        """Return the one that is asked for.

        Raises
        ------
        UsageError
            There are several.
        """
        names: list[Any] = [field.name for field in fields(self)]
        asked = [name for name in names if getattr(self, name)]
        if len(asked) > 1:
            raise UsageError(f"choose one of {', '.join(f'--{name}' for name in names)}")
        form: Form = asked[0] if asked else "html"
        return form


@flat
def command(
    *,
    run: RunArgument = "latest",
    runs: RunsOption = RUNS,
    forms: Forms,
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

    form = forms.chosen()
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
    if opener and sys.stderr.isatty():
        subprocess.run([opener, str(page)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
