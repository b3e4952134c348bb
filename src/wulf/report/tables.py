"""Tables of one operation: pairs, sizes with their quantiles, segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.records import CellEstimate, CurveModel, Pair, Segment
from wulf.report.fits import equation
from wulf.report.parts import Column, Flag, Item, PairDetail, Table
from wulf.report.series import QUANTILES
from wulf.report.words import count, estimate_item, pair_name, percent, rest
from wulf.text import printable
from wulf.units import format_bytes, format_time

#: Rows of a table that grows with the square of the nodes; what is left out is counted.
ROWS = 200
MODEL_MISSING = "no model was fitted"


def pairs_table(
    what: str,
    groups: Mapping[Pair, Sequence[CellEstimate]],
    models: Mapping[Pair, CurveModel],
    order: Sequence[Pair],
) -> Table:
    """All pairs, worst first."""
    smallest = min((cells[0].cell.size_bytes for cells in groups.values()), default=0)
    largest = max((cells[-1].cell.size_bytes for cells in groups.values()), default=0)
    return Table(
        title="Pairs, worst first",
        columns=(
            Column("pair"),
            Column("zero-byte latency", numeric=True),
            Column("asymptotic bandwidth", numeric=True),
            Column("n½", numeric=True, narrow=False),
            Column(f"{what}, {format_bytes(smallest)}", numeric=True, narrow=False),
            Column(f"{what}, {format_bytes(largest)}", numeric=True, narrow=False),
            Column("on target", numeric=True),
        ),
        rows=tuple(_pair_row(pair, groups[pair], models.get(pair), (smallest, largest)) for pair in order),
        note="Ordered by the geometric mean over sizes of the time relative to the best pair."
        if len(order) > 1
        else "",
    )


def _pair_row(
    pair: Pair, cells: Sequence[CellEstimate], model: CurveModel | None, ends: tuple[int, int]
) -> tuple[Item, ...]:
    reason = "; ".join(printable(note, 120) for note in model.notes) if model else MODEL_MISSING
    at = {cell.cell.size_bytes: cell.time for cell in cells}
    reached = sum(cell.reached for cell in cells)
    flag: Flag = "" if reached == len(cells) else "warning"
    return (
        Item(pair_name(pair)),
        estimate_item(model.zero_byte_latency if model else None, reason),
        estimate_item(model.asymptotic_bandwidth if model else None, reason),
        estimate_item(model.n_half_bytes if model else None, reason),
        *(estimate_item(at.get(size), "not measured") for size in ends),
        Item(f"{reached} of {len(cells)}", reached, flag),
    )


def detail(pair: Pair, cells: Sequence[CellEstimate], model: CurveModel | None) -> PairDetail:
    """Return what is shown of one pair at a time."""
    fits = [fit for fit in (model.robust, model.least_squares) if fit] if model else []
    notes = [f"{equation(fit)}, residual spread {format_time(fit.residual_spread_s)}" for fit in fits] + [
        printable(note, 300) for note in (model.notes if model else [MODEL_MISSING])
    ]
    return PairDetail(
        pair=pair_name(pair),
        sizes=sizes_table(pair, cells),
        segments=segments_table(pair, model),
        notes=tuple(notes),
    )


def sizes_table(pair: Pair, cells: Sequence[CellEstimate]) -> Table:
    """One row per size: estimate, bandwidth, quantiles, counts."""
    lossy = any(cell.lost or cell.corrupt for cell in cells)
    return Table(
        title=f"Sizes and quantiles, {pair_name(pair)}",
        columns=(
            Column("size", numeric=True),
            Column("median", numeric=True),
            Column("bandwidth", numeric=True),
            *(Column(quantile, numeric=True, narrow=quantile in ("p99", "max")) for quantile in QUANTILES),
            Column("launches", numeric=True, narrow=False),
            Column("iterations", numeric=True, narrow=False),
            *((Column("lost", numeric=True), Column("corrupt", numeric=True, narrow=False)) if lossy else ()),
        ),
        rows=tuple(_size_row(cell, lossy) for cell in cells),
        note="Median: over launches of the launch medians, with its interval. Quantiles: over all iterations. "
        "! marks an interval wider than the target.",
    )


def _size_row(cell: CellEstimate, lossy: bool) -> tuple[Item, ...]:
    time = estimate_item(cell.time)
    if not cell.reached:
        time = Item(f"{time.text} !", time.raw, "warning")
    losses = (_losses(cell.lost), _losses(cell.corrupt)) if lossy else ()
    return (
        Item(format_bytes(cell.cell.size_bytes), cell.cell.size_bytes),
        time,
        estimate_item(cell.bandwidth) if cell.bandwidth else Item("–", None),
        *(_quantile(cell, quantile) for quantile in QUANTILES),
        Item(str(cell.time.n), cell.time.n),
        Item(str(cell.iterations), cell.iterations),
        *losses,
    )


def _quantile(cell: CellEstimate, quantile: str) -> Item:
    value = cell.quantiles_s.get(quantile)
    return Item("unknown", None, "unknown") if value is None else Item(format_time(value), value)


def _losses(number: int) -> Item:
    return Item(str(number), number, "warning" if number else "")


def segments_table(pair: Pair, model: CurveModel | None) -> Table:
    """Straight pieces of the curve and what separates them."""
    return Table(
        title=f"Segments, {pair_name(pair)}",
        columns=(
            Column("sizes"),
            Column("intercept", numeric=True),
            Column("slope", numeric=True),
            Column("breakpoint"),
            Column("cause"),
        ),
        rows=tuple(_segment_row(segment) for segment in (model.segments if model else [])),
        empty="one straight line fits all sizes" if model else MODEL_MISSING,
    )


def _segment_row(segment: Segment) -> tuple[Item, ...]:
    first, last = format_bytes(segment.first_size_bytes), format_bytes(segment.last_size_bytes)
    if segment.breakpoint_bytes is None:
        where, cause = Item("–"), Item("–")
    else:
        text = format_bytes(segment.breakpoint_bytes)
        if segment.breakpoint_interval is not None:
            low, high = (format_bytes(size) for size in segment.breakpoint_interval)
            text += f" (between {low} and {high})"
        where = Item(text, segment.breakpoint_bytes)
        cause = Item(printable(segment.cause, 120)) if segment.cause else Item("unknown", None, "unknown")
    return (
        Item(f"{first} to {last}", segment.first_size_bytes),
        estimate_item(segment.intercept),
        estimate_item(segment.slope),
        where,
        cause,
    )


def unreached_table(cells: Sequence[CellEstimate]) -> Table:
    """Cells whose interval is wider than asked for, widest first."""
    missed = sorted(
        (cell for cell in cells if not cell.reached),
        key=lambda cell: -(cell.time.half_width_ratio or float("inf")),
    )
    return Table(
        title="Targets not reached",
        columns=(
            Column("operation"),
            Column("pair"),
            Column("size", numeric=True),
            Column("half-width", numeric=True),
            Column("launches", numeric=True),
            Column("notes", narrow=False),
        ),
        rows=tuple(_unreached_row(cell) for cell in missed[:ROWS]),
        note=rest(len(missed), ROWS, "cells"),
        empty="every cell reached its target" if cells else "nothing was measured",
    )


def _unreached_row(cell: CellEstimate) -> tuple[Item, ...]:
    width = cell.time.half_width_ratio
    if width is None:
        shown = Item(
            f"unknown: {count(cell.time.n, 'launch')}, target {percent(cell.target)}", None, "unknown"
        )
    else:
        shown = Item(f"±{percent(width)}, target {percent(cell.target)}", width, "warning")
    return (
        Item(printable(cell.cell.op, 60)),
        Item(pair_name(cell.cell.pair)),
        Item(format_bytes(cell.cell.size_bytes), cell.cell.size_bytes),
        shown,
        Item(str(cell.time.n), cell.time.n),
        Item("; ".join(printable(note, 120) for note in cell.notes)),
    )
