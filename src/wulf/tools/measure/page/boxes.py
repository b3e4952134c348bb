"""Distributions as the data of box plots: one box for each size, or for each launch where there is one size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.base.records import CellEstimate, LaunchPoint, Place
from wulf.base.text import count
from wulf.base.units import format_bytes
from wulf.page import ticks
from wulf.page.parts import Figure, Raw, Variant, rounded
from wulf.page.words import Terms
from wulf.tools.measure.page import charts

QUANTILES = ("min", "p5", "p25", "p50", "p75", "p95", "p99", "p99.9", "max")
BOX_TEXT = "Box: 25th to 75th percentile with the median; thick whisker: 5th to 95th; thin whisker: minimum to maximum."

Groups = Mapping[Place, Sequence[CellEstimate]]


def size_boxes(id_: str, terms: Terms, groups: Groups, pairs: Sequence[Place]) -> Figure:
    """Box plot per size: whiskers from minimum to maximum, as in RFC 2544 work."""
    every = [cell for pair in pairs for cell in groups[pair]]
    return Figure(
        id=id_,
        chart=charts.BOX,
        title=f"Distribution of {terms.quantity} per size",
        x_title=terms.axis,
        y_title=terms.quantity,
        y=ticks.times(value for cell in every for value in cell.quantiles_s.values()),
        variants=tuple(_size_variant(terms, pair, groups[pair]) for pair in pairs),
    )


def _size_variant(terms: Terms, pair: Place, cells: Sequence[CellEstimate]) -> Variant:
    drawn = [cell for cell in cells if cell.quantiles_s.get("min", 0) > 0]
    main: dict[str, Sequence[Raw]] = {
        "size_bytes": [cell.cell.size_bytes for cell in drawn],
        "size": [format_bytes(cell.cell.size_bytes) for cell in drawn],
        "iterations": [cell.iterations for cell in drawn],
    }
    return Variant(
        label=terms.name(pair),
        datasets={"main": main | columns([cell.quantiles_s for cell in drawn])},
        summary=f"Box plot of {terms.quantity} on {terms.name(pair)} for {count(len(drawn), 'size')}, "
        f"over {count(sum(cell.iterations for cell in drawn), 'iteration')}.",
        caption=f"All iterations of all launches, none dropped. {BOX_TEXT}",
    )


def launch_boxes(id_: str, terms: Terms, groups: Groups, pairs: Sequence[Place]) -> list[Figure]:
    """Box plot per launch of what was measured at one size; nothing where a launch is a single value."""
    every = [cell for pair in pairs for cell in groups[pair]]
    boxes = [point for cell in every for point in _boxes(cell)]
    if not boxes or all(cell.iterations <= len(cell.launches) for cell in every):
        return []
    return [
        Figure(
            id=id_,
            chart=charts.LAUNCHES,
            title=f"Distribution of {terms.value} per launch",
            x_title="launch, in the order of time",
            y_title=terms.quantity,
            y=ticks.times(value for point in boxes for value in point.quantiles_s.values()),
            variants=tuple(_launch_variant(terms, pair, groups[pair]) for pair in pairs),
        )
    ]


def _boxes(cell: CellEstimate) -> list[LaunchPoint]:
    return [point for point in cell.launches if point.quantiles_s.get("min", 0) > 0]


def _launch_variant(terms: Terms, pair: Place, cells: Sequence[CellEstimate]) -> Variant:
    drawn = [point for cell in cells for point in _boxes(cell)]
    main: dict[str, Sequence[Raw]] = {
        "launch": [point.launch for point in drawn],
        "contaminated": [int(point.contaminated) for point in drawn],
    }
    return Variant(
        label=terms.name(pair),
        datasets={"main": main | columns([point.quantiles_s for point in drawn])},
        summary=f"Box plot of {terms.value} on {terms.name(pair)} for {count(len(drawn), 'launch')}, "
        f"over {count(sum(cell.iterations for cell in cells), 'iteration')}.",
        caption=f"All iterations of each launch, none dropped. {BOX_TEXT}",
    )


def columns(quantiles: Sequence[Mapping[str, float]]) -> dict[str, Sequence[Raw]]:
    """Return a column for each quantile; a dot in its name would be read as a path by Vega."""
    return {
        f"{key.replace('.', '_')}_s": rounded([found.get(key) for found in quantiles]) for key in QUANTILES
    }
