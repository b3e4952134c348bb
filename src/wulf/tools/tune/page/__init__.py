"""A tuning run as people read it: a page, a terminal, and the table that papers print. Pure."""

from __future__ import annotations

from rich.console import Console

from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.tune.page import view as tuning_view
from wulf.tools.tune.page.input import ChangeRow, TuningReport
from wulf.tools.tune.page.paper_table import PublishedRow, published_table
from wulf.tools.tune.page.paper_table import csv as published_csv
from wulf.tools.tune.page.paper_table import latex as published_latex
from wulf.tools.tune.page.paper_table import markdown as published_markdown
from wulf.tools.tune.page.view import TuningView

__all__ = [
    "ChangeRow",
    "PublishedRow",
    "TuningReport",
    "charts",
    "headline",
    "published_csv",
    "published_latex",
    "published_markdown",
    "published_table",
    "render_html",
    "render_text",
]


def render_html(report: TuningReport) -> str:
    """Return the page of a tuning run: one file that needs no other and no network."""
    view = tuning_view.build(report)
    return page.render("tuning.html.j2", view, view.figures, {"run": view.run_id, "pairs": {}})


def charts(report: TuningReport) -> tuple[Figure, ...]:
    """Return all charts of a tuning run."""
    return tuning_view.build(report).figures


def headline(report: TuningReport) -> str:
    """Return the conclusion in one sentence."""
    return tuning_view.build(report).title


def render_text(report: TuningReport, console: Console) -> None:
    """Print a tuning run: the conclusion, what was kept and how to undo it, every effect, the path."""
    view = tuning_view.build(report)
    printer = Printer(console)
    printer.head(f"{view.title}.", view.lede)
    for point in view.points:
        printer.line(point)
    if view.whole:
        printer.table(view.whole)
    _kept(view, printer)
    if view.mended:
        printer.table(view.mended)
    for table in (view.effects, view.path, view.patterns, view.places, view.failures):
        if table is not None and table.rows:
            printer.table(table)
    for title, lines in (("A/A control", view.control), ("Notes", view.notes)):
        if lines:
            printer.section(title)
        for line in lines:
            printer.line(line)


def _kept(view: TuningView, printer: Printer) -> None:
    for kept in view.kept:
        printer.line("")
        printer.line(f"{kept.title}: {kept.original} → {kept.value}  [{kept.knob}]", "bold")
        printer.line(f"  worth   {kept.worth} {kept.worth_note}")
        for label, text, _ in kept.lines:
            printer.line(f"  {label:<7} {text}")
    for note in (view.nothing_kept, view.kept_note, f"Undo all: {view.undo}" if view.undo else ""):
        if note:
            printer.line("")
            printer.line(note)
