"""What a view is made of.  Both the page and the terminal print these, so they show the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Raw = float | int | str | None
Columns = Mapping[str, Sequence[Raw]]
Datasets = Mapping[str, Columns]
#: Significant digits of raw numbers in a chart.
DIGITS = 7
Flag = Literal["", "good", "warning", "error", "unknown"]


def rounded(values: Sequence[float | None]) -> list[Raw]:
    """Cut numbers to the digits a chart can use; what is unknown, or no number that JSON has, is None."""
    return [
        float(f"{value:.{DIGITS}g}") if value is not None and math.isfinite(value) else None
        for value in values
    ]


@dataclass(frozen=True)
class Item:
    """One entry of a table: what is printed, and the number behind it."""

    text: str
    raw: Raw = None
    flag: Flag = ""


@dataclass(frozen=True)
class Column:
    """Head of a column.

    `numeric` aligns it right, `narrow` keeps it where there is little room, `whole` keeps its values in one piece.
    """

    name: str
    numeric: bool = False
    narrow: bool = True
    whole: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption; `empty` is said when it has no rows."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Item, ...], ...]
    note: str = ""
    empty: str = "nothing to show"
    #: Whether a page shows it in a window of its own, as it may have many rows.
    tall: bool = False


@dataclass(frozen=True)
class KeyFigure:
    """One figure with the pair that is worst at it, and the best one beside it where there are several."""

    name: str
    worst: Item
    worst_pair: str
    best: Item | None = None
    best_pair: str = ""
    #: Why it is no single figure; empty where it is one.
    note: str = ""


@dataclass(frozen=True)
class Variant:
    """One state of a chart: the pair it shows, its data, and what it says in words."""

    label: str
    datasets: Datasets
    summary: str
    caption: str = ""


@dataclass(frozen=True)
class Ticks:
    """Where an axis is marked, and with what."""

    values: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """How figures of one kind are drawn."""

    #: Returns an Altair chart without data.
    draw: Callable[[Figure], Any]
    #: Returns its height [px].
    height: Callable[[Figure], int]


@dataclass(frozen=True)
class Chart:
    """A kind of figures."""

    #: What the page's style and script know it by.
    name: str
    wide: Drawing
    #: For a telephone and for paper, where it is another one.
    narrow: Drawing | None = None
    #: Of a file of its own [px]; rows with words beside their marks need more.
    width: int = 680


@dataclass(frozen=True)
class Figure:
    """A chart with its data.  The first dataset is the one that is offered as CSV."""

    id: str
    chart: Chart
    title: str
    x_title: str
    y_title: str
    variants: tuple[Variant, ...]
    x: Ticks = Ticks((), ())
    y: Ticks = Ticks((), ())
    logarithmic: bool = True


@dataclass(frozen=True)
class PairDetail:
    """What is shown of one pair at a time."""

    pair: str
    sizes: Table
    #: Of a curve; where there is none there are no segments.
    segments: Table | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperationResult:
    """All about one operation."""

    id: str
    name: str
    title: str
    quantity: str
    key_figures: tuple[KeyFigure, ...]
    pairs: Table
    #: Charts that show all pairs, then charts that show one pair at a time.
    overview: tuple[Figure, ...]
    detail: tuple[Figure, ...]
    details: tuple[PairDetail, ...]
    #: Why not all pairs are shown in detail; empty when all are.
    left_out: str = ""
    #: Who takes part: pair, group, node.
    noun: str = "pair"
    #: Smallest and largest size in words; empty where there is no curve.
    span: str = ""
    #: (pair, times in ascending size [s], first and last point in words), for the terminal; without a curve no times.
    lines: tuple[tuple[str, tuple[float, ...], str], ...] = ()


@dataclass(frozen=True)
class Warning:
    """Something the reader must know, how often it occurs, and what to do about it."""

    severity: Literal["error", "warning", "note"]
    kind: str
    advice: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class FindingRow:
    """A finding in words."""

    id: str
    severity: str
    title: str
    nodes: str
    #: The same in a few words.
    where: str
    everywhere: bool
    #: (label, text), in the order in which they are read.
    lines: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...]
    #: All its words and its nodes, for the search.
    searched: str


@dataclass(frozen=True)
class AlikeRow:
    """Nodes that differ from the others in the same things."""

    nodes: str
    count: str
    #: For each group of facts the ones that differ.
    odd: tuple[str, ...]
    #: Groups of which these nodes do not tell what others do.
    gaps: tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """Who differs and in what; what all nodes have in common is a sentence."""

    #: The ones that differ come first; empty when all nodes are alike.
    rows: tuple[AlikeRow, ...]
    note: str

    @property
    def gaps(self) -> bool:
        """Whether there is something that only some nodes do not tell."""
        return any(row.gaps for row in self.rows)


@dataclass(frozen=True)
class Findings:
    """What an audit found: severities and words can be searched, nodes that differ have a table."""

    headline: str
    lede: str
    counts: tuple[tuple[str, int, str], ...]
    findings: tuple[FindingRow, ...]
    alike: Alike
    #: (checks, why they are not known, nodes)
    unknown: tuple[tuple[str, str, str], ...]
    #: (node set, reason)
    unreachable: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Card:
    """A cause that the figures look like, as it is shown."""

    title: str
    where: str
    evidence: str
    why: str
    next: str
    #: Id of the section that has the figures; empty where there is none.
    section: str = ""
