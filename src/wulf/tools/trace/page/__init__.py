"""A trace as people read it: a page and a terminal. Pure."""

from __future__ import annotations

from rich.console import Console

from wulf.base.records.traced import TraceSummary
from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.trace.page import tables
from wulf.tools.trace.page import view as trace_view

__all__ = ["charts", "render_html", "render_text"]


def render_html(found: TraceSummary) -> str:
    """Return the page of a trace: one file that needs no other and no network."""
    view = trace_view.build(found)
    return page.render("trace.html.j2", view, view.figures, {"run": view.title, "pairs": {}})


def charts(found: TraceSummary) -> tuple[Figure, ...]:
    """Return all charts of a trace."""
    return trace_view.build(found).figures


def render_text(found: TraceSummary, console: Console) -> None:
    """Print what a trace says of its program."""
    printer = Printer(console)
    printer.line(f"{tables.title(found)}: {tables.lede(found)}")
    for line in (*tables.flaws(found), *tables.times(found)):
        printer.line(line)
    printer.line("")
    for table in (tables.calls, tables.ranks, tables.sizes, tables.collective_sizes, tables.pairs):
        printer.table(table(found))
