"""Predictions as people read them: a page and a terminal. Pure."""

from __future__ import annotations

from rich.console import Console

from wulf.base.records import Prediction
from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.predict.page import view as predict_view

__all__ = ["charts", "render_html", "render_text"]


def render_html(found: Prediction) -> str:
    """Return the page of a prediction: one file that needs no other and no network."""
    view = predict_view.build(found)
    return page.render("predict.html.j2", view, view.figures, {"run": view.title, "pairs": {}})


def charts(found: Prediction) -> tuple[Figure, ...]:
    """Return all charts of a prediction."""
    return predict_view.build(found).figures


def render_text(found: Prediction, console: Console) -> None:
    """Print a prediction: what it comes to, the networks side by side, where the latencies come from."""
    view = predict_view.build(found)
    printer = Printer(console)
    printer.head(view.title, view.lede)
    printer.line(view.answer)
    for line in view.conclusion:
        printer.line(line)
    printer.table(view.networks)
    if view.contention is not None:
        printer.table(view.contention)
        for line in view.contention_in_words:
            printer.line(line)
    if view.others is not None:
        printer.table(view.others)
    for line in view.hops_in_words:
        printer.line(line)
    printer.table(view.hops)
    for table in (view.tolerance, view.needs):
        if table.rows:
            printer.table(table)
    printer.section("What must be known")
    for line in view.notes:
        printer.line(f"- {line}")
