"""Tables of one operation: pairs, sizes with their quantiles, segments."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wulf.base.records import (
    Cell,
    CellEstimate,
    CurveModel,
    Estimate,
    ExitEstimate,
    Operation,
    Place,
    Segment,
)
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_sizes, format_time, format_value
from wulf.page.parts import Column, Flag, Item, PairDetail, Table
from wulf.page.words import Terms, estimate_item, heading, listed, noun, percent, place_name, sized
from wulf.tools.measure.page.boxes import QUANTILES
from wulf.tools.measure.page.fits import equation

#: Rows of one operation in the table of targets that were not reached; beyond them its pairs are put together.
OWN_ROWS = 8
MODEL_MISSING = "no model was fitted"
_IN_MEMORY = (
    " In memory: the share of a file's bytes that the nodes had in memory (their page cache), before they were read or "
    "after they were written; what a file server has in its own memory is not seen. Bandwidth: of each rank."
)


def pairs_table(
    terms: Terms,
    groups: Mapping[Place, Sequence[CellEstimate]],
    models: Mapping[Place, CurveModel],
    order: Sequence[Place],
) -> Table:
    """All pairs, worst first; what varies nothing has one figure for each, and no model of a curve."""
    if not terms.varied:
        return _single_table(terms, groups, order)
    return Table(
        title=f"{terms.noun.capitalize()}s, worst first",
        columns=(
            Column(terms.noun, whole=True),
            Column("zero-byte latency", numeric=True),
            Column("asymptotic bandwidth", numeric=True),
            Column("n½", numeric=True, narrow=False),
            *(Column(f"{terms.quantity}, {format_bytes(n)}", numeric=True, narrow=False) for n in terms.ends),
            Column("on target", numeric=True),
        ),
        rows=tuple(_pair_row(terms, pair, groups[pair], models.get(pair)) for pair in order),
        note=" ".join(filter(None, (_order(terms, order), _middles(terms, groups, order)))),
    )


def _order(terms: Terms, order: Sequence[Place]) -> str:
    if len(order) < 2:
        return ""
    return f"Ordered by the geometric mean over sizes of the time relative to the best {terms.noun}."


def _middles(terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], order: Sequence[Place]) -> str:
    """Say whose figures are only the middle of times that lie far apart."""
    apart = [place for place in order if any(cell.range_s or cell.modes_within for cell in groups[place])]
    if not apart:
        return ""
    who = listed([terms.name(place) for place in apart], 4)
    return f"Of {who} times lie too far apart for one figure at some sizes: what is shown is their middle."


def _single_table(
    terms: Terms, groups: Mapping[Place, Sequence[CellEstimate]], order: Sequence[Place]
) -> Table:
    cells = [cell for place in order for cell in groups[place]]
    moved = any(cell.bandwidth for cell in cells)
    adjusted = any(cell.adjusted for cell in cells)
    return Table(
        title=f"{terms.noun.capitalize()}s, worst first" if len(order) > 1 else terms.noun.capitalize(),
        columns=(
            Column(terms.noun, whole=True),
            Column(terms.value, numeric=True),
            *((Column("adjusted", numeric=True),) if adjusted else ()),
            *((Column("bandwidth", numeric=True),) if moved else ()),
            Column("launches", numeric=True),
            Column("on target"),
        ),
        rows=tuple(
            (
                Item(terms.name(cell.cell.place)),
                estimate_item(cell.time),
                *((_adjusted(cell),) if adjusted else ()),
                *((estimate_item(cell.bandwidth),) if moved else ()),
                Item(str(cell.time.n), cell.time.n),
                Item("yes" if cell.reached else "no", int(cell.reached), "" if cell.reached else "warning"),
            )
            for cell in cells
        ),
        note=_middles(terms, groups, order),
    )


def _pair_row(
    terms: Terms, pair: Place, cells: Sequence[CellEstimate], model: CurveModel | None
) -> tuple[Item, ...]:
    at = {cell.cell.size_bytes: cell.time for cell in cells}
    reached = sum(cell.reached for cell in cells)
    flag: Flag = "" if reached == len(cells) else "warning"
    return (
        Item(terms.name(pair)),
        estimate_item(model.zero_byte_latency if model else None, _reason(model, "latency")),
        estimate_item(model.asymptotic_bandwidth if model else None, _reason(model, "bandwidth")),
        estimate_item(model.n_half_bytes if model else None, _reason(model, "n½", "bandwidth")),
        *(estimate_item(at.get(size), "not measured") for size in terms.ends),
        Item(f"{reached} of {len(cells)}", reached, flag),
    )


def detail(terms: Terms, pair: Place, cells: Sequence[CellEstimate], model: CurveModel | None) -> PairDetail:
    """Return what is shown of one pair at a time."""
    if not terms.varied:
        return PairDetail(pair=terms.name(pair), sizes=sizes_table(terms, pair, cells))
    fits = [fit for fit in (model.robust, model.least_squares) if fit] if model else []
    notes = [f"{equation(fit)}, residual spread {format_time(fit.residual_spread_s)}" for fit in fits] + [
        printable(note, 300) for note in (model.notes if model else [MODEL_MISSING])
    ]
    return PairDetail(
        pair=terms.name(pair),
        sizes=sizes_table(terms, pair, cells),
        segments=segments_table(terms.name(pair), model),
        notes=tuple(notes),
    )


def sizes_table(terms: Terms, pair: Place, cells: Sequence[CellEstimate]) -> Table:
    """One row per size: estimate, bandwidth, quantiles, counts; without sizes one row."""
    lossy = any(cell.lost or cell.corrupt for cell in cells)
    moved = any(cell.bandwidth for cell in cells)
    adjusted = next((cell.adjusted for cell in cells if cell.adjusted), None)
    exits = [cell.exits for cell in cells if cell.exits]
    files = terms.operation is not None and terms.operation.files
    quantiles = QUANTILES if any(cell.quantiles_s for cell in cells) else ()
    statistic = terms.operation.statistic if terms.operation else "values"
    return Table(
        title=f"{'Sizes and quantiles' if terms.varied else 'Quantiles'}, {terms.name(pair)}",
        columns=(
            *((Column("size", numeric=True),) if terms.sized else ()),
            Column("median", numeric=True),
            *((Column("adjusted", numeric=True),) if adjusted else ()),
            *((Column("bandwidth", numeric=True),) if moved else ()),
            *((Column("first rank done", numeric=True, narrow=False),) if exits else ()),
            *((Column("in memory", numeric=True),) if files else ()),
            *(Column(quantile, numeric=True, narrow=quantile in ("p99", "max")) for quantile in quantiles),
            Column("launches", numeric=True, narrow=False),
            *((Column("iterations", numeric=True, narrow=False),) if quantiles else ()),
            *((Column("lost", numeric=True), Column("corrupt", numeric=True, narrow=False)) if lossy else ()),
        ),
        rows=tuple(
            _size_row(
                terms, cell, moved=moved, lossy=lossy, adjusted=bool(adjusted), exits=bool(exits), files=files
            )
            for cell in cells
        ),
        note=(
            "Median: over launches of the launch medians, with its interval. Quantiles: over all iterations. "
            if quantiles
            else f"Median: over launches, with its interval, of the {statistic}. "
        )
        + "! marks an interval wider than the target."
        + (
            f" Adjusted: the median at a reference of {format_time(adjusted.reference_s)}."
            if adjusted
            else ""
        )
        + _common_start(exits)
        + (_IN_MEMORY if files else ""),
    )


def _common_start(exits: Sequence[ExitEstimate]) -> str:
    """Say how well the ranks of a collective began together."""
    if not exits:
        return ""
    done = " First rank done: typical time of the rank that leaves first; the median is that of the last."
    if not any(one.clock_error_max_s for one in exits):
        return f"{done} Ranks began when a barrier let them go, each at its own time."
    error = statistics.median(one.clock_error_s for one in exits)
    worst = max(one.clock_error_max_s for one in exits)
    tolerance = max(one.tolerance_s for one in exits)
    late = statistics.fmean(one.late for one in exits)
    return (
        f"{done} Ranks began at a time that was agreed on: two comparisons of their clocks differed by "
        f"{format_time(error)} (at most {format_time(worst)}); a rank was at most {format_time(tolerance)} late, else "
        f"the iteration does not count ({percent(late)} of them)."
    )


def _adjusted(cell: CellEstimate) -> Item:
    return estimate_item(cell.adjusted.time) if cell.adjusted else Item("–", None)


def _size_row(
    terms: Terms,
    cell: CellEstimate,
    *,
    moved: bool,
    lossy: bool,
    adjusted: bool,
    exits: bool,
    files: bool,
) -> tuple[Item, ...]:
    time = estimate_item(cell.time)
    if not cell.reached:
        time = Item(f"{time.text} !", time.raw, "warning")
    size = (Item(format_bytes(cell.cell.size_bytes), cell.cell.size_bytes),) if terms.sized else ()
    bandwidth = (estimate_item(cell.bandwidth) if cell.bandwidth else Item("–", None),) if moved else ()
    losses = (_losses(cell.lost), _losses(cell.corrupt)) if lossy else ()
    return (
        *size,
        time,
        *((_adjusted(cell),) if adjusted else ()),
        *bandwidth,
        *((_first_exit(cell),) if exits else ()),
        *((_in_memory(cell),) if files else ()),
        *(_quantile(cell, quantile) for quantile in QUANTILES if cell.quantiles_s),
        Item(str(cell.time.n), cell.time.n),
        *((Item(str(cell.iterations), cell.iterations),) if cell.quantiles_s else ()),
        *losses,
    )


def _first_exit(cell: CellEstimate) -> Item:
    if cell.exits is None:
        return Item("–", None)
    first_s = min(cell.exits.ranks_s)
    return Item(format_time(first_s), first_s)


def _in_memory(cell: CellEstimate) -> Item:
    if cell.in_memory is None:
        return Item("unknown", None, "unknown")
    return Item(percent(cell.in_memory), cell.in_memory)


def _quantile(cell: CellEstimate, quantile: str) -> Item:
    value = cell.quantiles_s.get(quantile)
    return (
        Item("unknown", None, "unknown")
        if value is None
        else Item(format_value(value, cell.time.unit), value)
    )


def _losses(number: int) -> Item:
    return Item(str(number), number, "warning" if number else "")


def segments_table(pair: str, model: CurveModel | None) -> Table:
    """Straight pieces of the curve and what separates them."""
    return Table(
        title=f"Segments, {pair}",
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
        parameter_item(segment.intercept),
        parameter_item(segment.slope),
        where,
        cause,
    )


def parameter_item(estimate: Estimate | None) -> Item:
    """Return a parameter of a line; nothing is printed that the data do not determine."""
    return Item("not identifiable", None, "unknown") if estimate is None else estimate_item(estimate)


def unreached_table(cells: Sequence[CellEstimate], operations: Mapping[str, Operation]) -> Table:
    """Cells whose interval is wider than asked for, folded: pairs that missed the same sizes share a row."""
    groups = _missed(cells)
    rows = [_unreached_row(op, operations.get(op), known, group, cells) for (op, known), group in groups]
    nouns = [noun(cell.cell.place, operations.get(cell.cell.op)) for _, group in groups for cell in group]
    found = Table(
        title="Targets not reached",
        columns=(
            Column("operation"),
            Column(heading(nouns)),
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
    sizes = any(sized(operations.get(cell.cell.op), [cell.cell.size_bytes]) for cell in cells)
    return found if sizes else _without(found, "sizes")


def _without(table: Table, column: str) -> Table:
    at = [known.name for known in table.columns].index(column)
    columns = table.columns[:at] + table.columns[at + 1 :]
    return replace(table, columns=columns, rows=tuple(row[:at] + row[at + 1 :] for row in table.rows))


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
    op: str,
    operation: Operation | None,
    known: bool,
    missed: Sequence[CellEstimate],
    cells: Sequence[CellEstimate],
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
            f"all {count(every, noun(pairs[0], operation))}"
            if len(pairs) == every > 1
            else listed([place_name(pair, operation) for pair in pairs], 3)
        ),
        Item(_sizes_of(operation, missed, measured)),
        Item(str(len(missed)), len(missed)),
        Item(f"±{percent(width)}, target {target}", width, "warning")
        if known
        else Item(f"no interval, target {target}", None, "warning"),
        Item(" to ".join(str(number) for number in dict.fromkeys((replicates[0], replicates[-1])))),
    )


def _sizes_of(operation: Operation | None, missed: Sequence[CellEstimate], measured: Sequence[Cell]) -> str:
    """Return the sizes of some of the cells; an operation that varies nothing has none."""
    if not sized(operation, (cell.size_bytes for cell in measured)):
        return "–"
    return format_sizes((cell.cell.size_bytes for cell in missed), (cell.size_bytes for cell in measured))
