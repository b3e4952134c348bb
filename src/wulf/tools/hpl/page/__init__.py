"""A run of HPL as people read it: a page and a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wulf.base.records.hpl import HplLaunch, HplManifest, HplResult
from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.hpl.page import view as hpl_view

__all__ = ["charts", "render_html", "render_text"]


def render_html(manifest: HplManifest, launches: Sequence[HplLaunch], result: HplResult) -> str:
    """Return the page of a run of HPL: one file that needs no other and no network."""
    view = hpl_view.build(manifest, launches, result)
    return page.render("hpl.html.j2", view, view.figures, {"run": view.run_id, "pairs": {}})


def charts(manifest: HplManifest, launches: Sequence[HplLaunch], result: HplResult) -> tuple[Figure, ...]:
    """Return all charts of a run of HPL."""
    return hpl_view.build(manifest, launches, result).figures


def render_text(
    manifest: HplManifest, launches: Sequence[HplLaunch], result: HplResult, console: Console
) -> None:
    """Print a run of HPL: the figure, what it was got with, and what must be known."""
    view = hpl_view.build(manifest, launches, result)
    printer = Printer(console)
    printer.head(view.title, view.lede)
    for name, value, where in view.keys:
        printer.line(f"{name}: {value}{f'  ({where})' if where else ''}")
    for point in view.points:
        printer.line(point)
    for table in filter(None, (view.blas, view.best, view.fresh)):
        printer.table(table)
