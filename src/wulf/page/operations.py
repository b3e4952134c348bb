"""Operations on a terminal: the figures that are read first, a line for each pair, the worst pair in detail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from wulf.page.parts import OperationResult, Table

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24


class Printer(Protocol):
    """What prints lines and tables."""

    def section(self, title: str) -> None:
        """Print a heading."""

    def line(self, text: str, style: str = "") -> None:
        """Print a line."""

    def table(self, table: Table) -> None:
        """Print a table."""


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Return values on a logarithmic scale as `width` blocks at most; others than positive finite ones are skipped."""
    logs = [math.log(value) for value in values if 0 < value < math.inf]
    if not logs:
        return ""
    count = min(width, len(logs))
    picked = [logs[round(i * (len(logs) - 1) / max(count - 1, 1))] for i in range(count)]
    low, high = min(picked), max(picked)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in picked)


def key_figures(printer: Printer, operation: OperationResult) -> None:
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


def _lines(printer: Printer, operation: OperationResult) -> None:
    printer.line("")
    printer.line(f"{operation.quantity}{f' at {operation.span}, logarithmic' if operation.span else ''}:")
    for pair, times, ends in operation.lines:
        printer.line(f"{sparkline(times)}  {pair}: {ends}".strip())
    if operation.left_out:
        printer.line(operation.left_out)


def details(printer: Printer, operation: OperationResult) -> None:
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
