"""A watch, as people and other programs read it: page, terminal, JUnit, metrics. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from rich.console import Console

from wulf.base.records.watched import WatchedSeries, WatchReport, WatchRun
from wulf.base.text import printable
from wulf.page import page
from wulf.page.parts import Figure
from wulf.page.terminal import Printer
from wulf.tools.watch.page import view as watch_view
from wulf.tools.watch.page import words

__all__ = ["charts", "junit", "render_html", "render_text"]


def render_html(report: WatchReport, runs: Sequence[WatchRun], series: Sequence[WatchedSeries]) -> str:
    """Return the page: one file that needs no other and no network."""
    view = watch_view.build(report, runs, series)
    return page.render("watch.html.j2", view, view.figures, {"run": view.title, "pairs": {}})


def charts(
    report: WatchReport, runs: Sequence[WatchRun], series: Sequence[WatchedSeries]
) -> tuple[Figure, ...]:
    """Return all charts."""
    return watch_view.build(report, runs, series).figures


def render_text(report: WatchReport, runs: Sequence[WatchRun], console: Console) -> None:
    """Print what a watch says: the verdict, what has changed, what was done."""
    view = watch_view.build(report, runs, [])
    printer = Printer(console)
    printer.head(view.title, view.lede)
    printer.verdict(view.verdict, view.flag, view.lines)
    for table in (view.open, view.closed, view.shown, view.runs):
        if table.rows:
            printer.table(table)
    printer.section("What must be known")
    for line in view.notes:
        printer.line(f"- {line}")


def junit(report: WatchReport) -> str:
    """Return the open alarms as JUnit XML: a test case for every node, for the links, and for all nodes together."""
    suite = ElementTree.Element("testsuite", name="wulf watch")
    cases: dict[str, list[str]] = {f"{node} has not changed": [] for node in report.nodes}
    cases |= {"no link has changed": [], "the cluster as a whole has not changed": []}
    for alarm in report.open:
        names = {"node": f"{''.join(alarm.nodes)} has not changed", "link": "no link has changed"}
        name = names.get(alarm.level, "the cluster as a whole has not changed")
        cases.setdefault(name, []).append(words.sentence([alarm], report))
    for title, failures in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname="wulf.watch", name=printable(title))
        if failures:
            ElementTree.SubElement(case, "failure", message=printable("; ".join(failures), 1000))
        elif report.learning:
            ElementTree.SubElement(case, "skipped", message=report.learning)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(bool(failures) for failures in cases.values())))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
