"""How run time goes with ranks, as people read it: what the next ranks bring comes first.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wulf.base.text import count, printable
from wulf.base.units import format_change
from wulf.page.blocks import Notes, Page, Verdict, known
from wulf.page.parts import Column, Item, Table
from wulf.page.words import change_item, estimate_item, percent
from wulf.tools.run.record import Scaling, ScalingLaw, ScalingLoss, ScalingPoint


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
            _losses(found) if found.losses else None,
            _laws(found.laws) if found.laws else None,
            _forecasts(found) if found.forecasts else None,
            Notes((_weak(),)) if found.weak else None,
        ),
        sections=(),
        run=Path(found.run).name,
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
    for ranks, reason in found.untraced.items():
        yield f"{count(ranks, 'rank')}: the trace does not tell where the time went: {printable(reason, 200)}"


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


#: Parts of the time of all ranks, as they are called here.
_PARTS = {
    "computing": "computing_s",
    "calls on files": "files_s",
    "waiting": "waiting_s",
    "transfer": "transfer_s",
}


def _losses(found: Scaling) -> Table:
    """Return what each part takes of the time of all ranks beyond what it takes with the fewest."""
    base, *others = sorted(found.losses, key=lambda one: one.ranks)
    parts = {
        name: key for name, key in _PARTS.items() if key != "files_s" or any(one.files_s for one in others)
    }
    rows = tuple(
        (
            Item(str(one.ranks), one.ranks),
            Item(percent(1 - sum(losses.values())), 1 - sum(losses.values())),
            *(Item(percent(value), value) for value in losses.values()),
        )
        for one in others
        for losses in [{name: _lost(found, base, one, key) for name, key in parts.items()}]
    )
    columns = (
        Column("ranks", numeric=True),
        Column("efficiency", numeric=True),
        *(Column(name, numeric=True) for name in parts),
    )
    note = (
        f"Of one recorded launch each, against {count(base.ranks, 'rank')}: parts of the run time that are lost to "
        "computing more, to waiting for other ranks even where messages take no time, and to messages. Less than "
        "nothing is a gain."
    )
    return Table("Where the efficiency goes", columns, rows, note=note)


def _lost(found: Scaling, base: ScalingLoss, one: ScalingLoss, part: str) -> float:
    """Return the part of the run time of all ranks that a part takes more than with the fewest."""
    more = one.ranks / base.ranks if found.weak else 1.0
    return float(getattr(one, part) - more * getattr(base, part)) / (one.ranks * one.run_s)


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
