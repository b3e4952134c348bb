"""A comparison of two runs as people read it: a page, a terminal.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wulf.base.records import Comparison, Operation
from wulf.page import page
from wulf.page.terminal import Printer
from wulf.tools.compare.page import view

__all__ = ["render_html", "render_text"]


def render_html(comparison: Comparison, operations: Sequence[Operation] = ()) -> str:
    """Return the page of a comparison; `operations` say who takes part in them."""
    shown = view.build(comparison, operations)
    return page.render("comparison.html.j2", shown, shown.figures, {"run": "comparison", "pairs": {}})


def render_text(comparison: Comparison, console: Console, operations: Sequence[Operation] = ()) -> None:
    """Print a comparison: verdict, shift of every size with its interval, facts that differ."""
    shown = view.build(comparison, operations)
    printer = Printer(console)
    printer.head(shown.title, shown.lede)
    printer.verdict(shown.verdict, shown.flag, (shown.reason, *shown.limits))
    pairs = [shown.pairs] if shown.pairs is not None else []
    for table in (shown.pooled, *pairs, *shown.cells, shown.facts):
        printer.table(table)
