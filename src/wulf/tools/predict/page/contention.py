"""What event by event comes of a program, beside what it takes with messages in their order.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.records import Contended, Prediction
from wulf.base.records.contended import Contention
from wulf.base.text import count, printable
from wulf.base.units import format_spread
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import UNKNOWN, change_item, name


def table(found: Prediction, flags: dict[str, Flag]) -> Table | None:
    """Return the networks event by event; None where that was not looked at."""
    of = found.contention
    if of is None:
        return None
    columns = [
        Column("network"),
        Column("run time", numeric=True),
        Column("change", numeric=True),
        Column("verdict"),
        Column("contention", numeric=True),
    ]
    if of.base.beside:
        columns.append(Column("by the others", numeric=True))
    if _is_lossy(of):
        columns.append(Column("timeouts", numeric=True))
    return Table(
        title="Event by event",
        columns=tuple(columns),
        rows=tuple(tuple(_row(one, flags, is_lossy=_is_lossy(of))) for one in (of.base, *of.scenarios)),
        note=" ".join(_note(found)),
    )


def _is_lossy(of: Contention) -> bool:
    return any(one.timeouts is not None for one in of.scenarios)


def _row(one: Contended, flags: dict[str, Flag], *, is_lossy: bool) -> Iterator[Item]:
    flag = flags.get(one.verdict, "")
    yield Item(printable(one.name, 60))
    yield Item(format_spread(one.time), one.time.value)
    yield change_item(one.change, flag)
    yield Item(one.verdict, None, flag)
    for ratio in (one.gap, one.slowed) if one.beside else (one.gap,):
        yield Item(UNKNOWN, None, "unknown") if ratio is None else change_item(ratio)
    if is_lossy:
        yield Item("–") if one.timeouts is None else Item(str(one.timeouts), one.timeouts)


def others(found: Prediction) -> Table | None:
    """Return what the programs beside it take on every network; None where there are none."""
    of = found.contention
    if of is None or not of.base.beside:
        return None
    return Table(
        title="The programs beside it",
        columns=(Column("network"), Column("program"), Column("run time", numeric=True)),
        rows=tuple(
            (
                Item(printable(one.name, 60)),
                Item(name(other.trace)),
                Item(format_spread(other.time), other.time.value),
            )
            for one in (of.base, *of.scenarios)
            for other in one.beside
        ),
        note="The model's own time, event by event, all programs begun together.",
    )


def _note(found: Prediction) -> Iterator[str]:
    of = found.contention
    if of is None:
        return
    yield (
        f"Of {count(of.samples, 'sample')}, as each takes longer; intervals 95 %. Messages take the interfaces of "
        "nodes, which their ranks share, and uplinks in the order in which they come, those above 64 KiB in pieces; "
        "whoever comes first is received first. Change: against the program as it was traced, alone."
    )
    yield "Contention: the run time event by event against that with messages in their order, each on its own."
    if of.base.beside:
        yield "By the others: the run time beside them against that alone."
    if _is_lossy(of):
        yield (
            "Timeouts: messages that found the buffer before their receiver full, with the likely parameters; – where "
            "it keeps whatever comes."
        )
    if of.topology:
        yield f"Uplinks are those of {name(of.topology)}, the same on every network."
