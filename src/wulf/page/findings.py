"""Findings of an audit on a terminal."""

from __future__ import annotations

from typing import Protocol

from rich.text import Text

from wulf.page.parts import Findings

_SEVERITY = {"fail": "FAIL", "warn": "WARN", "info": "INFO"}
_STYLE = {"fail": "bold red", "warn": "bold yellow", "info": "cyan"}


class Printer(Protocol):
    """What prints lines."""

    def line(self, text: str, style: str = "") -> None:
        """Print a line."""

    def text(self, text: Text) -> None:
        """Print a line of several styles."""


def show(found: Findings, printer: Printer) -> None:
    """Print who did not answer, every finding with its remedy, and what is not known."""
    for nodes, reason in found.unreachable:
        printer.line(f"no answer: {nodes}: {reason}", "red")
    for finding in found.findings:
        printer.line("")
        head = Text(f"{_SEVERITY[finding.severity]}  ", style=_STYLE[finding.severity])
        head.append(finding.title, style="bold")
        head.append("  all nodes" if finding.everywhere else f"  {finding.nodes}")
        head.append(f"  [{finding.id}]", style="dim")
        printer.text(head)
        lines = [*finding.lines[:4], *finding.commands, *finding.lines[4:]]
        for label, text in lines:
            name = label.split(" ", 1)[0] if label.startswith("costs") else label
            shown = f"{label.removeprefix('costs ')}: {text}" if label.startswith("costs") else text
            printer.line(f"      {name:<10} {shown}")
    if found.unknown:
        printer.line("")
        printer.line("Not known:", "bold")
        for titles, reason, nodes in found.unknown:
            printer.line(f"      {reason} ({nodes}): {titles}")
