"""What networks are worth, as people read it: a page and a terminal. Pure."""

from __future__ import annotations

from rich.console import Console

from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.worth.page import view as worth_view
from wulf.tools.worth.record import Worth

__all__ = ["charts", "render_html", "render_text"]


def render_html(found: Worth) -> str:
    """Return the page: one file that needs no other and no network."""
    view = worth_view.build(found)
    return page.render("worth.html.j2", view, view.figures, {"run": view.title, "pairs": {}})


def charts(found: Worth) -> tuple[Figure, ...]:
    """Return all charts."""
    return worth_view.build(found).figures


def render_text(found: Worth, console: Console) -> None:
    """Print what networks are worth: what it comes to, the figures, what they depend on."""
    view = worth_view.build(found)
    printer = Printer(console)
    printer.head(view.title, view.lede)
    printer.line(view.answer)
    for line in view.conclusion:
        printer.line(line)
    for table in (view.networks, view.instead, view.parts, view.jobs, view.influences):
        printer.table(table)
    printer.section("What must be known")
    for line in view.notes:
        printer.line(f"- {line}")
