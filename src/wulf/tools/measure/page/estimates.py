"""What was measured at one size, or has none: the estimate of every place beside the medians it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.base.records import CellEstimate, LaunchPoint, Place
from wulf.base.units import format_estimate, format_value
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import Terms, percent, sentence
from wulf.tools.measure.page import charts

#: Rows at most; the worst places come first, and the best one is the last.
ROWS = 30
#: Beyond this ratio of the largest time to the smallest a linear axis shows nothing of the small ones.
LINEAR_RANGE = 10


def estimates(
    id_: str, terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], order: Sequence[Place]
) -> Figure:
    """One row per place: its estimate with the interval, and the medians of its launches."""
    rows = order if len(order) <= ROWS else [*order[: ROWS - 1], order[-1]]
    drawn = [cell for place in rows for cell in groups[place]]
    points = [(cell, point) for cell in drawn for point in cell.launches]
    values = _values(drawn) + [point.median_s for _, point in points]
    logarithmic = max(values) > LINEAR_RANGE * min(values) > 0
    return Figure(
        id=id_,
        chart=charts.ESTIMATES,
        title=sentence(terms.value) + (f" by {terms.noun}" if len(order) > 1 else ""),
        x_title=terms.quantity + (" (logarithmic)" if logarithmic else ""),
        y_title="",
        x=ticks.times(values, terms.unit) if logarithmic else ticks.between(values, terms.unit),
        logarithmic=logarithmic,
        variants=(
            Variant(
                label="",
                datasets={"main": _main(terms, drawn), "launches": _launches(terms, points)},
                summary=_summary(terms, drawn, len(order)),
                caption=_caption(terms, drawn, len(order)),
            ),
        ),
    )


def _values(cells: Sequence[CellEstimate]) -> list[float]:
    bounds = [bound for cell in cells for bound in (cell.time.low, cell.time.value, cell.time.high)]
    return [bound for bound in bounds if bound is not None]


def _main(terms: Terms, cells: Sequence[CellEstimate]) -> Columns:
    return {
        "place": [terms.name(cell.cell.place) for cell in cells],
        "size_bytes": [cell.cell.size_bytes for cell in cells],
        "time_s": rounded([cell.time.value for cell in cells]),
        "low_s": rounded([cell.time.low for cell in cells]),
        "high_s": rounded([cell.time.high for cell in cells]),
        "launches": [cell.time.n for cell in cells],
        "time": [format_estimate(cell.time) for cell in cells],
    }


def _launches(terms: Terms, points: Sequence[tuple[CellEstimate, LaunchPoint]]) -> Columns:
    return {
        "place": [terms.name(cell.cell.place) for cell, _ in points],
        "launch": [point.launch for _, point in points],
        "median_s": rounded([point.median_s for _, point in points]),
        "median": [format_value(point.median_s, terms.unit) for _, point in points],
        "contaminated": [int(point.contaminated) for _, point in points],
    }


def _summary(terms: Terms, cells: Sequence[CellEstimate], total: int) -> str:
    said = [f"{format_estimate(cell.time)} on {terms.name(cell.cell.place)}" for cell in cells]
    if len(said) == 1:
        return f"{sentence(terms.value)}: {said[0]}."
    return f"{sentence(terms.value)} of {terms.count(total)}: from {said[0]}, the worst, to {said[-1]}."


def _caption(terms: Terms, cells: Sequence[CellEstimate], total: int) -> str:
    bounded = {cell.time.confidence for cell in cells if cell.time.low is not None}
    interval = f"; line: its {percent(max(bounded))} interval" if bounded else "; there is no interval"
    rest = f" Of {terms.count(total)} the {len(cells) - 1} worst and the best." if len(cells) < total else ""
    return f"Large point: median over launches of the launch medians{interval}. Small points: launch medians.{rest}"
