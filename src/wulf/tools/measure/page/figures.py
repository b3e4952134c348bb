"""Curves and distributions as the data of charts, and the words beside them.

Data is columns of numbers with their units in the names.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from wulf.base.records import CellEstimate, CurveModel, Place
from wulf.base.text import printable
from wulf.base.units import format_bytes, format_estimate
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import Terms, listed, sentence
from wulf.tools.measure.page import charts, ranking
from wulf.tools.measure.page.boxes import launch_boxes, size_boxes
from wulf.tools.measure.page.estimates import estimates
from wulf.tools.measure.page.fits import regression
from wulf.tools.measure.page.matrix import matrices

#: Breakpoints of several pairs within this factor, with one cause, are one mark.
SAME_BREAK = 1.3

Models = Mapping[Place, CurveModel]
Groups = Mapping[Place, Sequence[CellEstimate]]


def figures(
    id_: str,
    terms: Terms,
    groups: Groups,
    models: Models,
    order: Sequence[Place],
) -> tuple[tuple[Figure, ...], tuple[Figure, ...]]:
    """Return the charts over all pairs and the charts of one pair at a time; `order` has the worst first."""
    pairs = ranking.shown(order)
    if not terms.varied:
        overview = [estimates(f"{id_}-estimates", terms, groups, order)]
        return tuple(overview), tuple(launch_boxes(f"{id_}-launches", terms, groups, pairs))
    shown = [cell for pair in pairs for cell in groups[pair]]
    overview = [latency(f"{id_}-latency", terms, shown, models, pairs)]
    if any(cell.bandwidth for cell in shown):
        overview.append(bandwidth(f"{id_}-bandwidth", terms, shown, pairs))
    if len(groups) > 2:
        overview += matrices(id_, terms, groups, models)
    detail = [
        size_boxes(f"{id_}-box", terms, groups, pairs),
        *regression(f"{id_}-fit", terms, groups, models, pairs),
    ]
    return tuple(overview), tuple(detail)


def latency(
    id_: str, terms: Terms, cells: Sequence[CellEstimate], models: Models, pairs: Sequence[Place]
) -> Figure:
    """Time against size with the interval as a band, and the breakpoints."""
    drawn = [cell for cell in cells if cell.time.value > 0]
    largest = max((cell.cell.size_bytes for cell in drawn), default=0)
    breaks = _breaks(terms, [models[pair] for pair in pairs if pair in models], largest)
    main: Columns = {
        "pair": [terms.name(cell.cell.place) for cell in drawn],
        "size_bytes": [cell.cell.size_bytes for cell in drawn],
        "time_s": rounded([cell.time.value for cell in drawn]),
        "low_s": rounded([cell.time.low for cell in drawn]),
        "high_s": rounded([cell.time.high for cell in drawn]),
        "launches": [cell.time.n for cell in drawn],
        "time": [format_estimate(cell.time) for cell in drawn],
    }
    return Figure(
        id=id_,
        chart=charts.LATENCY,
        title=f"{sentence(terms.quantity)} against {terms.axis}",
        x_title=f"{terms.axis} (logarithmic)",
        y_title=terms.quantity,
        x=ticks.sizes(cell.cell.size_bytes for cell in drawn),
        y=ticks.times(bound for cell in drawn for bound in _bounds(cell)),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "breaks": breaks},
                summary=_latency_summary(terms, drawn),
                caption=_latency_caption(breaks, several=len(pairs) > 1),
            ),
        ),
    )


def bandwidth(id_: str, terms: Terms, cells: Sequence[CellEstimate], pairs: Sequence[Place]) -> Figure:
    """Bandwidth against size with the interval as a band."""
    drawn = [(cell, cell.bandwidth) for cell in cells if cell.bandwidth is not None]
    main: Columns = {
        "pair": [terms.name(cell.cell.place) for cell, _ in drawn],
        "size_bytes": [cell.cell.size_bytes for cell, _ in drawn],
        "bandwidth_bytes_per_s": rounded([rate.value for _, rate in drawn]),
        "low_bytes_per_s": rounded([rate.low for _, rate in drawn]),
        "high_bytes_per_s": rounded([rate.high for _, rate in drawn]),
        "launches": [rate.n for _, rate in drawn],
        "bandwidth": [format_estimate(rate) for _, rate in drawn],
    }
    best = max(drawn, key=lambda entry: entry[1].value)
    return Figure(
        id=id_,
        chart=charts.BANDWIDTH,
        title=f"Bandwidth against {terms.axis}",
        x_title=f"{terms.axis} (logarithmic)",
        y_title="bandwidth",
        x=ticks.sizes(cell.cell.size_bytes for cell, _ in drawn),
        y=ticks.bandwidths(rate.high or rate.value for _, rate in drawn),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Bandwidth of {terms.count(len(pairs))} against {terms.axis}; "
                f"highest {format_estimate(best[1])} at {format_bytes(best[0].cell.size_bytes)} "
                f"on {terms.name(best[0].cell.place)}.",
                caption=f"{sentence(terms.axis)} divided by the time above; the band is the interval.",
            ),
        ),
    )


def _breaks(terms: Terms, models: Sequence[CurveModel], largest: int) -> Columns:
    """Breakpoints of all pairs; those of several pairs at about one size with one cause are one mark."""
    found = sorted(
        (segment.breakpoint_bytes, segment.cause or "cause unknown", terms.name(model.place))
        for model in models
        for segment in model.segments
        if segment.breakpoint_bytes is not None
    )
    merged: list[tuple[list[int], str, list[str]]] = []
    for size, cause, pair in found:
        for sizes, known, pairs in merged:
            if known == cause and size <= SAME_BREAK * sizes[0]:
                sizes.append(size)
                pairs.append(pair)
                break
        else:
            merged.append(([size], cause, [pair]))
    middles = [int(statistics.median_low(sizes)) for sizes, _, _ in merged]
    labels = [
        f"{format_bytes(size)}: {printable(cause, 60)}"
        for size, (_, cause, _) in zip(middles, merged, strict=True)
    ]
    return {
        "size_bytes": middles,
        "cause": [printable(cause, 80) for _, cause, _ in merged],
        "label": labels,
        # Each label stands a line lower than the one before, so that they do not meet; an empty line would be no line.
        "words": ["\u200b\n" * line + label for line, label in enumerate(labels)],
        "left": [int(math.log2(size + 1) > math.log2(largest + 1) / 2) for size in middles],
        "pairs": [listed(sorted(set(pairs))) for _, _, pairs in merged],
    }


def _bounds(cell: CellEstimate) -> list[float]:
    bounds = (cell.time.low, cell.time.value, cell.time.high)
    return [bound for bound in bounds if bound is not None]


def _latency_summary(terms: Terms, cells: Sequence[CellEstimate]) -> str:
    if not cells:
        return f"No {terms.quantity} was measured."
    pairs = {cell.cell.place for cell in cells}
    ends = [min(cells, key=_size_then_worst), max(cells, key=_size_and_worst)]
    texts = [
        f"{format_estimate(cell.time)} at {format_bytes(cell.cell.size_bytes)} on {terms.name(cell.cell.place)}"
        for cell in ends
    ]
    of_pairs = f"the worst {terms.noun} reads " if len(pairs) > 1 else ""
    return f"{sentence(terms.quantity)} of {terms.count(len(pairs))} against {terms.axis}: {of_pairs}" + (
        f"{texts[0]} and {texts[1]}."
    )


def _size_then_worst(cell: CellEstimate) -> tuple[int, float]:
    return cell.cell.size_bytes, -cell.time.value


def _size_and_worst(cell: CellEstimate) -> tuple[int, float]:
    return cell.cell.size_bytes, cell.time.value


def _latency_caption(breaks: Columns, *, several: bool) -> str:
    text = "Line: median over launches of the launch medians; band: its interval."
    marks = [
        f"{label} ({pairs})" if several else f"{label}"
        for label, pairs in zip(breaks["label"], breaks["pairs"], strict=True)
    ]
    return f"{text} Dashed: breakpoint at {'; '.join(marks)}." if marks else text
