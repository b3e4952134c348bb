"""What was found of collectives as people read it: a page, a terminal.  Pure."""

from __future__ import annotations

from rich.console import Console

from wulf.base.records.collectives import CollectiveTuning
from wulf.page import page
from wulf.page.terminal import Printer
from wulf.tools.collectives.page import view

__all__ = ["render_html", "render_text"]


def render_html(found: CollectiveTuning) -> str:
    """Return the page."""
    shown = view.build(found)
    return page.render("collectives.html.j2", shown, shown.figures, {"run": "collectives", "pairs": {}})


def render_text(found: CollectiveTuning, console: Console) -> None:
    """Print the verdict, every cell, the held-out sizes and what is known of the effect."""
    shown = view.build(found)
    printer = Printer(console)
    printer.head(shown.title, shown.lede)
    printer.verdict(shown.verdict, shown.flag, shown.lines)
    for table in (*shown.cells, shown.effects, shown.held_out, shown.struck_out):
        printer.table(table)
    if shown.usage:
        printer.section("How a job uses it")
        for line in shown.usage:
            printer.line(line)
