"""From a trace to what is shown of it.  Pure."""

from __future__ import annotations

from wulf.base.records.traced import TraceSummary
from wulf.page.blocks import Matrices, Page, Section, Verdict
from wulf.tools.trace.page import figures, tables


def build(found: TraceSummary) -> Page:
    """Return all that is shown of a trace."""
    flaws = tuple(tables.flaws(found))
    points = (*flaws, *tables.times(found))
    return Page(
        title=tables.title(found),
        lede=tables.lede(found),
        kind="Trace",
        verb="program trace",
        head=(Verdict("warning" if flaws else "", points),) if points else (),
        sections=(
            Section("time", "Time", (figures.timeline(found), figures.calls(found), tables.calls(found))),
            Section("ranks", "Ranks", (figures.ranks(found), tables.ranks(found))),
            Section(
                "partners",
                "Who sends to whom",
                (Matrices(tuple(figures.matrices(found))), tables.pairs(found)),
            ),
            Section(
                "sizes",
                "Sizes",
                (*figures.sizes(found), tables.sizes(found), tables.collective_sizes(found)),
            ),
        ),
    )
