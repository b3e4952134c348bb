"""How run time goes with ranks, as people read it: what the next ranks bring comes first.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.text import printable
from wulf.base.units import format_change
from wulf.page.blocks import Notes, Page, Verdict, known
from wulf.page.parts import Column, Item, Table
from wulf.page.words import change_item, count, estimate_item
from wulf.tools.run.record import Scaling, ScalingLaw, ScalingPoint


def build(found: Scaling) -> Page:
    """Return speed-up, efficiency, the laws, and what more ranks would bring."""
    return Page(
        title=_answer(found),
        lede=f"{printable(found.command, 100)}: {count(found.rounds, 'round')} of one launch of each number of ranks, "
        "in random order",
        kind="Speed-up",
        verb="program run",
        head=known(
            Verdict("good" if found.forecasts or found.weak else "unknown", tuple(_said(found))),
            _points(found),
            _laws(found.laws) if found.laws else None,
            _forecasts(found) if found.forecasts else None,
            Notes((_weak(),)) if found.weak else None,
        ),
        sections=(),
    )


def _answer(found: Scaling) -> str:
    if found.forecasts:
        each = found.per_node or 1
        what = "nodes" if found.per_node else "ranks"
        two = found.forecasts[1]
        return f"Two more {what} than {two.ranks // each - 2}: {format_change(two.ratio)} of the run time"
    gains = [point for point in found.points if point.efficiency is not None]
    if not gains:
        return "Nothing is known of more ranks"
    shown = (
        f"the efficiency of {count(gains[-1].ranks, 'rank')} is {estimate_item(gains[-1].efficiency).text}"
    )
    return f"Weak scaling: {shown}" if found.weak else f"What more ranks bring cannot be told: {shown}"


def _said(found: Scaling) -> Iterator[str]:
    if found.interrupted:
        yield "interrupted: the rounds until then are used"
    for point in found.points:
        for reason, times in point.failures.items():
            yield f"{count(point.ranks, 'rank')}: {count(times, 'launch', 'launches')} failed: {printable(reason, 200)}"


def _points(found: Scaling) -> Table:
    columns = (
        Column("ranks", numeric=True),
        Column("run time", numeric=True),
        Column("scaled speed-up" if found.weak else "speed-up", numeric=True),
        Column("efficiency", numeric=True),
    )
    fewest = min((point.ranks for point in found.points if point.time is not None), default=0)
    return Table(
        "By ranks",
        columns,
        tuple(_row(point) for point in found.points),
        note=f"Medians with 95 % intervals; speed-up against {count(fewest, 'rank')}, of launches of the same round.",
    )


def _row(point: ScalingPoint) -> tuple[Item, ...]:
    return (
        Item(str(point.ranks), point.ranks),
        estimate_item(point.time, "every launch failed"),
        estimate_item(point.speed_up) if point.speed_up is not None else Item("–"),
        estimate_item(point.efficiency) if point.efficiency is not None else Item("–"),
    )


def _laws(laws: list[ScalingLaw]) -> Table:
    columns = (Column("law"), Column("parameter"), Column("value", numeric=True), Column("what is said"))
    rows = [
        (Item(law.name), Item(name), estimate_item(value, "not identifiable"), Item(law.reason or "–"))
        for law in laws
        for name, value in (law.parameters or {"–": None}).items()
    ]
    note = (
        "Amdahl: the serial share does not get quicker. Universal scalability: contention is Amdahl's share, "
        "coherency grows with every pair of ranks."
    )
    return Table("What limits it", columns, tuple(rows), note=note)


def _forecasts(found: Scaling) -> Table:
    rows = tuple((Item(str(one.ranks), one.ranks), change_item(one.ratio)) for one in found.forecasts)
    columns = (Column("ranks", numeric=True), Column("run time", numeric=True))
    return Table(
        "What more ranks would bring",
        columns,
        rows,
        note=f"By the law: {found.by}. Beyond what was measured.",
    )


def _weak() -> str:
    return (
        "the work grows with the ranks ({ranks} in the command); both laws are of a work that stays the same"
    )
