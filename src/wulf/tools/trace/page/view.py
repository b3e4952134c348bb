"""From a trace to what is shown of it.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from wulf.base.records.traced import TraceSummary
from wulf.page.parts import Figure, Flag, Table
from wulf.tools.trace.page import figures, tables


@dataclass(frozen=True)
class TraceView:
    """A trace, ready to be printed."""

    title: str
    lede: str
    flag: Flag
    points: tuple[str, ...]
    timeline: Figure
    calls_chart: Figure
    calls: Table
    ranks_chart: Figure
    ranks: Table
    matrices: tuple[Figure, ...]
    pairs: Table
    size_charts: tuple[Figure, ...]
    sizes: Table
    collective_sizes: Table

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts of the page."""
        return (self.timeline, self.calls_chart, self.ranks_chart, *self.matrices, *self.size_charts)


def build(found: TraceSummary) -> TraceView:
    """Return all that is shown of a trace."""
    flaws = tuple(tables.flaws(found))
    return TraceView(
        title=tables.title(found),
        lede=tables.lede(found),
        flag="warning" if flaws else "",
        points=(*flaws, *tables.times(found)),
        timeline=figures.timeline(found),
        calls_chart=figures.calls(found),
        calls=tables.calls(found),
        ranks_chart=figures.ranks(found),
        ranks=tables.ranks(found),
        matrices=tuple(figures.matrices(found)),
        pairs=tables.pairs(found),
        size_charts=tuple(figures.sizes(found)),
        sizes=tables.sizes(found),
        collective_sizes=tables.collective_sizes(found),
    )
