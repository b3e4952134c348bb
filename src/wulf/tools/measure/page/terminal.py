"""A measured run on a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from wulf.base.records import Analysis, Launch, Manifest, NodeRecord
from wulf.page.parts import HostsView, OperationView, PatternView, View
from wulf.page.terminal import Printer, plain
from wulf.tools.measure.page import view

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24


def render_text(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    console: Console,
    performed: view.Performed | None = None,
    *,
    brief: bool = False,
) -> None:
    """Print a run; if `brief`, only whether to trust it, what to know first, and the key figures."""
    shown = view.build(manifest, nodes, launches, analysis, performed=performed)
    printer = Printer(console)
    printer.head(shown.title, shown.lede)
    printer.verdict(shown.trust_title, shown.trust, shown.trust_text)
    for warning in shown.warnings:
        printer.warning(warning)
    if shown.pattern is not None:
        _pattern(printer, shown.pattern, brief=brief)
    # The times of a pattern are in its table.
    for operation in shown.operations if shown.pattern is None or not brief else ():
        _key_figures(printer, operation)
        if not brief:
            _details(printer, operation)
    if shown.hosts is not None:
        _hosts(printer, shown.hosts, brief=brief)
    if not brief:
        _rest(printer, shown)


def _rest(printer: Printer, shown: View) -> None:
    for section in shown.across:
        printer.section(section.title)
        printer.table(section.table)
    printer.section("Quality")
    for table in (shown.unreached, shown.launches):
        printer.table(table)
    printer.section("Nodes and provenance")
    for table in (shown.facts, shown.unknown, shown.provenance):
        printer.table(table)
    printer.line(f"command line: {shown.command_line}")
    printer.section("Methods")
    printer.line(shown.methods)


def rendered(
    manifest: Manifest,
    nodes: Sequence[NodeRecord],
    launches: Sequence[Launch],
    analysis: Analysis,
    performed: view.Performed | None = None,
) -> str:
    """Return the report as plain text, for a file."""
    return plain(lambda console: render_text(manifest, nodes, launches, analysis, console, performed))


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Return values on a logarithmic scale as `width` blocks at most; values that are not positive are skipped."""
    logs = [math.log(value) for value in values if value > 0]
    if not logs:
        return ""
    count = min(width, len(logs))
    picked = [logs[round(i * (len(logs) - 1) / max(count - 1, 1))] for i in range(count)]
    low, high = min(picked), max(picked)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in picked)


def _key_figures(printer: Printer, operation: OperationView) -> None:
    printer.section(f"{operation.name}: {operation.title}")
    for figure in operation.key_figures:
        best = f"; best {figure.best.text} ({figure.best_pair})" if figure.best else ""
        worst = "worst " if figure.best else ""
        printer.line(f"{figure.name}: {worst}{figure.worst.text} ({figure.worst_pair}){best}")
        if figure.note:
            printer.line(f"  {figure.note}")
    # One figure of one place has been said by now.
    if operation.span or len(operation.lines) > 1:
        _lines(printer, operation)


def _lines(printer: Printer, operation: OperationView) -> None:
    printer.line("")
    printer.line(f"{operation.quantity}{f' at {operation.span}, logarithmic' if operation.span else ''}:")
    for pair, times, ends in operation.lines:
        printer.line(f"{sparkline(times)}  {pair}: {ends}".strip())
    if operation.left_out:
        printer.line(operation.left_out)


def _details(printer: Printer, operation: OperationView) -> None:
    printer.table(operation.pairs)
    # The worst pair is the first; the page has the others.
    for detail in operation.details[:1]:
        printer.line("")
        printer.line(f"In detail: {detail.pair}", "bold")
        for note in detail.notes:
            printer.line(note)
        if detail.segments is not None:
            printer.table(detail.segments)
        printer.table(detail.sizes)


def _pattern(printer: Printer, pattern: PatternView, *, brief: bool) -> None:
    printer.section(f"Pattern: {pattern.title}")
    for line in (pattern.lede, *pattern.lines):
        printer.line(line)
    printer.table(pattern.times)
    if not brief:
        printer.table(pattern.programs)


def _hosts(printer: Printer, hosts: HostsView, *, brief: bool) -> None:
    printer.section("Hosts")
    for card in hosts.cards:
        printer.line(f"{card.title} ({card.where})", "bold yellow")
        for line in (card.evidence, card.why, f"next: {card.next}"):
            printer.line(f"  {line}")
    if hosts.none:
        printer.line(hosts.none)
    if not brief:
        printer.table(hosts.nodes)
        printer.table(hosts.cpus)
