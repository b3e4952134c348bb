"""Tables of one operation: pairs, sizes with their quantiles, segments."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from wulf.records import CellEstimate, CurveModel, Estimate, Place, Segment
from wulf.report.parts import Column, Flag, Item, PairDetail, Table
from wulf.report.run.figures import QUANTILES
from wulf.report.run.fits import equation
from wulf.report.words import estimate_item, listed, pair_name, percent
from wulf.text import printable
from wulf.units import format_bytes, format_sizes, format_time

#: Rows of one operation in the table of targets that were not reached; beyond them its pairs are put together.
OWN_ROWS = 8
MODEL_MISSING = "no model was fitted"


def pairs_table(
    what: str,
    groups: Mapping[Place, Sequence[CellEstimate]],
    models: Mapping[Place, CurveModel],
    order: Sequence[Place],
) -> Table:
    """All pairs, worst first."""
    smallest = min((cells[0].cell.size_bytes for cells in groups.values()), default=0)
    largest = max((cells[-1].cell.size_bytes for cells in groups.values()), default=0)
    return Table(
        title="Pairs, worst first",
        columns=(
            Column("pair", whole=True),
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
    pair: Place, cells: Sequence[CellEstimate], model: CurveModel | None, ends: tuple[int, int]
) -> tuple[Item, ...]:
    at = {cell.cell.size_bytes: cell.time for cell in cells}
    reached = sum(cell.reached for cell in cells)
    flag: Flag = "" if reached == len(cells) else "warning"
    return (
        Item(pair_name(pair)),
        estimate_item(model.zero_byte_latency if model else None, _reason(model, "latency")),
        estimate_item(model.asymptotic_bandwidth if model else None, _reason(model, "bandwidth")),
        estimate_item(model.n_half_bytes if model else None, _reason(model, "n½", "bandwidth")),
        *(estimate_item(at.get(size), "not measured") for size in ends),
        Item(f"{reached} of {len(cells)}", reached, flag),
    )


def detail(pair: Place, cells: Sequence[CellEstimate], model: CurveModel | None) -> PairDetail:
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


def sizes_table(pair: Place, cells: Sequence[CellEstimate]) -> Table:
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


def segments_table(pair: Place, model: CurveModel | None) -> Table:
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
        empty=_reason(model) or "none was fitted",
    )


def _reason(model: CurveModel | None, *about: str) -> str:
    """Return why a model lacks something: what its notes say of the first of `about`, else all of them."""
    if model is None:
        return MODEL_MISSING
    notes = [printable(note, 120) for note in model.notes]
    for word in about:
        if word in " ".join(notes):
            return "; ".join(note for note in notes if word in note)
    return "; ".join(notes)


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
        _parameter(segment.intercept),
        _parameter(segment.slope),
        where,
        cause,
    )


def _parameter(estimate: Estimate | None) -> Item:
    """Return a parameter of a line; nothing is printed that the data do not determine."""
    return Item("not identifiable", None, "unknown") if estimate is None else estimate_item(estimate)


def unreached_table(cells: Sequence[CellEstimate]) -> Table:
    """Cells whose interval is wider than asked for, folded: pairs that missed the same sizes share a row."""
    groups = _missed(cells)
    rows = [_unreached_row(op, known, group, cells) for (op, known), group in groups]
    return Table(
        title="Targets not reached",
        columns=(
            Column("operation"),
            Column("pairs"),
            Column("sizes"),
            Column("cells", numeric=True),
            Column("half-width at worst", numeric=True),
            Column("launches", numeric=True),
        ),
        rows=tuple(
            sorted(rows, key=lambda row: -(row[4].raw if isinstance(row[4].raw, float) else math.inf))
        ),
        empty="every cell reached its target" if cells else "nothing was measured",
    )


_Missed = tuple[tuple[str, bool], list[CellEstimate]]


def _missed(cells: Sequence[CellEstimate]) -> list[_Missed]:
    """Return ((operation, whether there is an interval), cells) for each row."""
    streams: dict[tuple[str, bool, Place], list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        if not cell.reached:
            streams[cell.cell.op, cell.time.half_width_ratio is not None, cell.cell.place].append(cell)
    alike: dict[tuple[str, bool, tuple[int, ...]], list[CellEstimate]] = defaultdict(list)
    for (op, known, _), missed in streams.items():
        alike[op, known, tuple(sorted(cell.cell.size_bytes for cell in missed))] += missed
    number = Counter((op, known) for op, known, _ in alike)
    rows: dict[tuple[str, bool, tuple[int, ...]], list[CellEstimate]] = defaultdict(list)
    for (op, known, sizes), missed in alike.items():
        # Where nearly every pair has sizes of its own, they say nothing.
        rows[op, known, sizes if number[op, known] <= OWN_ROWS else ()] += missed
    return [((op, known), missed) for (op, known, _), missed in rows.items()]


def _unreached_row(
    op: str, known: bool, missed: Sequence[CellEstimate], cells: Sequence[CellEstimate]
) -> tuple[Item, ...]:
    measured = [cell.cell for cell in cells if cell.cell.op == op]
    pairs = sorted({cell.cell.place for cell in missed})
    every = len({cell.place for cell in measured})
    replicates = sorted({cell.time.n for cell in missed})
    target = percent(max(cell.target for cell in missed))
    width = max((cell.time.half_width_ratio or 0.0 for cell in missed), default=0.0)
    return (
        Item(printable(op, 60)),
        Item(
            f"all {every} pairs"
            if len(pairs) == every > 1
            else listed([pair_name(pair) for pair in pairs], 3)
        ),
        Item(format_sizes((cell.cell.size_bytes for cell in missed), (cell.size_bytes for cell in measured))),
        Item(str(len(missed)), len(missed)),
        Item(f"±{percent(width)}, target {target}", width, "warning")
        if known
        else Item(f"no interval, target {target}", None, "warning"),
        Item(" to ".join(str(number) for number in dict.fromkeys((replicates[0], replicates[-1])))),
    )
