"""A series by period: weekdays against the weekend, hours of the day; as a table and as the data of box plots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from wulf.base.records import Cell, Operation, PeriodEstimate, Place, WeekendRatio
from wulf.base.text import count
from wulf.base.units import format_bytes, format_estimate
from wulf.page import ticks
from wulf.page.parts import Column, Figure, Item, Raw, Table, Variant
from wulf.page.words import Terms, change_item, estimate_item, name, place_name
from wulf.tools.measure.page import charts
from wulf.tools.measure.page.boxes import BOX_TEXT, columns

WEEK = ("weekday", "weekend")


def table(
    periods: Sequence[PeriodEstimate],
    weekends: Sequence[WeekendRatio],
    operations: Mapping[str, Operation],
    time_zone: str,
) -> Table:
    """Return every cell on weekdays and at the weekend, and at its slowest and fastest hour."""
    by_cell: dict[Cell, dict[str, PeriodEstimate]] = defaultdict(dict)
    for one in periods:
        by_cell[one.cell][one.period] = one
    ratios = {one.cell: one for one in weekends}
    return Table(
        title="By day and hour",
        columns=(
            Column("operation"),
            Column("where"),
            Column("size", numeric=True),
            Column("weekdays", numeric=True),
            Column("weekend", numeric=True),
            Column("weekend against weekdays", numeric=True),
            Column("fastest hour", numeric=True, narrow=False),
            Column("slowest hour", numeric=True, narrow=False),
        ),
        rows=tuple(_row(cell, of, ratios.get(cell), operations.get(cell.op)) for cell, of in by_cell.items()),
        note=_note(weekends, time_zone),
    )


def _row(
    cell: Cell, of: Mapping[str, PeriodEstimate], ratio: WeekendRatio | None, operation: Operation | None
) -> tuple[Item, ...]:
    hours = sorted((one for part, one in of.items() if part not in WEEK), key=lambda one: one.time.value)
    return (
        Item(name(cell.op)),
        Item(place_name(cell.place, operation)),
        Item(format_bytes(cell.size_bytes), cell.size_bytes),
        *(estimate_item(of[part].time if part in of else None, "no launch") for part in WEEK),
        change_item(ratio.ratio) if ratio else Item("unknown: too few launches", None, "unknown"),
        *(_hour(hours[end]) for end in (0, -1)),
    )


def _hour(one: PeriodEstimate) -> Item:
    return Item(f"{one.period} h: {format_estimate(one.time)}", one.time.value)


def _note(weekends: Sequence[WeekendRatio], time_zone: str) -> str:
    said = f"Local time, {name(time_zone)}; the weekend is Saturday and Sunday."
    if not weekends:
        return said
    weekdays, days = (
        max(values) for values in zip(*((w.weekdays, w.weekend_days) for w in weekends), strict=True)
    )
    return (
        f"{said} The change is that of {count(days, 'weekend day')} against {count(weekdays, 'weekday')}; its interval "
        "is that of days, of which it takes some on either side. The fastest and the slowest of 24 hours are so by "
        "chance, too."
    )


def figures(
    id_: str, terms: Terms, periods: Sequence[PeriodEstimate], pairs: Sequence[Place]
) -> tuple[Figure, ...]:
    """Return box plots of weekdays and weekend at every size, and of the hours at the smallest and the largest."""
    ends = set(terms.ends)
    week = [one for one in periods if one.period in WEEK]
    hours = [one for one in periods if one.period not in WEEK and one.cell.size_bytes in ends]
    return tuple(
        Figure(
            id=f"{id_}-{key}",
            chart=charts.PERIODS,
            title=title,
            x_title=x_title,
            y_title=terms.quantity,
            y=ticks.times(value for one in drawn for value in one.quantiles_s.values()),
            variants=tuple(
                _variant(terms, pair, [one for one in drawn if one.cell.place == pair]) for pair in pairs
            ),
        )
        for key, title, x_title, several in (
            ("week", f"Distribution of {terms.quantity} on weekdays and at the weekend", "", week),
            ("hours", f"Distribution of {terms.quantity} by hour of the day", "hour, local time", hours),
        )
        if (drawn := [one for one in several if one.quantiles_s.get("min", 0) > 0])
    )


def _variant(terms: Terms, pair: Place, periods: Sequence[PeriodEstimate]) -> Variant:
    drawn = sorted(periods, key=lambda one: (one.cell.size_bytes, one.period))
    main: dict[str, Sequence[Raw]] = {
        "period": [_label(terms, one) for one in drawn],
        "launches": [one.time.n for one in drawn],
        "iterations": [one.iterations for one in drawn],
    }
    return Variant(
        label=terms.name(pair),
        datasets={"main": main | columns([one.quantiles_s for one in drawn])},
        summary=f"Box plot of {terms.quantity} on {terms.name(pair)} for {count(len(drawn), 'period')}, "
        f"over {count(sum(one.iterations for one in drawn), 'iteration')}.",
        caption=f"All iterations of the launches of each period, none dropped. {BOX_TEXT}",
    )


def _label(terms: Terms, one: PeriodEstimate) -> str:
    period = one.period if one.period in WEEK else f"{one.period} h"
    return f"{format_bytes(one.cell.size_bytes)} {period}" if terms.varied else period
