"""Where incast breaks, as people read it: the answer first.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wulf.base.records.base import Estimate
from wulf.base.text import count, printable
from wulf.base.units import format_bandwidth, format_bytes, format_estimate, format_value
from wulf.page import ticks
from wulf.page.blocks import Command, Page, Section, Verdict, known
from wulf.page.parts import Column, Figure, Flag, Item, Table, Variant, rounded
from wulf.page.words import estimate_item, percent
from wulf.tools.incast import charts
from wulf.tools.incast.judging import FALSE_ALARM, MARGIN, SHARE, STALLED
from wulf.tools.incast.record import Cliff, Depth, Incast, IncastCell, SenderCounts

_LIMIT = 300
#: Reasons that are listed; more are counted.
NAMED = 6


def build(found: Incast) -> Page:
    """Return the answer, the charts behind it, and what could help."""
    first, *more = verdict(found)
    flag: Flag = "good" if found.fine else "error" if found.cliffs else "unknown"
    return Page(
        title=first,
        lede="",
        kind="Incast",
        verb="diagnose incast",
        head=(Verdict(flag, tuple(more)),),
        sections=tuple(
            section
            for section in (
                Section("transfers", "Many to one", known(_times(found), _cells(found), _evidence(found))),
                Section("buffer", "The buffer before the receiver", known(_bursts(found))),
                Section("remedies", "What could help", tuple(_remedies(found))),
            )
            if section.blocks
        ),
    )


def verdict(found: Incast) -> Iterator[str]:
    """Yield the answer in one line, then what it rests on."""
    yield _answer(found)
    for cliff in found.cliffs:
        yield (
            f"  {_cliff(cliff)}: {_times_as_long(cliff)} as long as the receiver's link explains, and "
            f"{percent(cliff.stalled)} of the transfers stall"
        )
    yield depth_words(found.depth)
    for evidence in found.evidence[-1:]:
        yield (
            f"{count(evidence.senders, 'sender')}: {count(evidence.retransmitted, 'segment')} sent again and "
            f"{count(evidence.timeouts, 'timeout')} in {count(evidence.transfers, 'transfer')}"
        )
    rate = f"; at most {format_bandwidth(found.rate)} arrive" if found.rate else ""
    senders = count(len(found.senders), "sender")
    yield f"{senders} to {printable(found.receiver, 100)}, {count(found.rounds, 'round')}{rate}"
    for why in found.missing[:NAMED]:
        yield f"  not measured: {printable(why, 300)}"
    if len(found.missing) > NAMED:
        yield f"  not measured: {len(found.missing) - NAMED} more"


def _answer(found: Incast) -> str:
    if found.cliffs:
        first = min(found.cliffs, key=lambda cliff: (cliff.senders, cliff.size_bytes))
        return f"Transfers to one break down from {_cliff(first)} on"
    if not found.cells:
        return "cannot tell: too little was measured"
    if found.untold:
        worst = max(found.untold, key=lambda cell: cell.visible or 0.0)
        return (
            f"cannot tell: with {count(worst.senders, 'sender')} of {format_bytes(worst.size_bytes)} only "
            f"{min(worst.visible or 0.0, 1e6):.3g} times the time would be seen, or that "
            f"{percent(worst.visible_stalls or 0.0)} stall"
        )
    most = max(found.cells, key=lambda cell: (cell.senders, cell.size_bytes))
    return (
        f"fine: {count(most.senders, 'sender')} at once with up to {format_bytes(most.size_bytes)} each hold"
    )


def _cliff(cliff: Cliff) -> str:
    return f"{count(cliff.senders, 'sender')} of {format_bytes(cliff.size_bytes)}"


def _times_as_long(cliff: Cliff) -> str:
    ratio = cliff.ratio
    return f"{ratio.value:.3g}{_bounds(ratio, lambda bound: f'{bound:.3g}')} times"


def _bounds(estimate: Estimate, words: Callable[[float], str]) -> str:
    """Return an interval in parentheses; nothing where it is not known."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({words(estimate.low)} to {words(estimate.high)})"


def depth_words(deep: Depth) -> str:
    """Return how much the buffer holds, in words."""
    if deep.reason:
        return f"the buffer before the receiver: cannot tell: {printable(deep.reason, 200)}"
    if deep.bytes is None:
        return f"the buffer before the receiver holds {_size(deep.whole_bytes or 0)} or more: no burst lost anything"
    known_ = deep.bytes
    return (
        f"the buffer before the receiver holds {_size(known_.value)}{_bounds(known_, _size)}: bursts of "
        f"{_size(deep.whole_bytes or 0)} arrive whole, of {_size(deep.lossy_bytes or 0)} not"
    )


def _size(value: float) -> str:
    return f"{value / 1024:.3g} KiB" if value < 1 << 20 else f"{value / (1 << 20):.3g} MiB"


def _times(found: Incast) -> Figure | None:
    if not found.cells:
        return None
    cells = found.cells
    times = [cell.time.value for cell in cells]
    broken = sum(cell.broken for cell in cells)
    return Figure(
        id="times",
        chart=charts.TIMES,
        title="Time until all messages are there",
        x_title="senders",
        y_title="time",
        y=ticks.times([*times, *(cell.expected_s for cell in cells)]),
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "senders": [cell.senders for cell in cells],
                        "size": [format_bytes(cell.size_bytes) for cell in cells],
                        "time": rounded(times),
                        "expected": rounded([cell.expected_s for cell in cells]),
                        "state": [charts.BROKEN if cell.broken else charts.HOLDS for cell in cells],
                        "shown": [format_estimate(cell.time) for cell in cells],
                        "ratio": [f"{cell.ratio.value:.3g}" for cell in cells],
                    }
                },
                summary=f"Broken: {broken} of {count(len(cells), 'combination')} of senders and size.",
                caption="Dashed: what the receiver's link explains, with one message after the other.",
            ),
        ),
    )


def _bursts(found: Incast) -> Figure | None:
    rows = [(one.sent_bytes, came) for one in found.depth.bursts for came in one.arrived_bytes if came]
    if not rows:
        return None
    deep = found.depth.bytes
    sent, arrived = [row[0] for row in rows], [row[1] for row in rows]
    marks = ticks.sizes([min(arrived), max(sent)])
    return Figure(
        id="bursts",
        chart=charts.ARRIVED,
        title="What arrives of bursts from all senders at once",
        x_title="sent",
        y_title="arrived",
        x=marks,
        y=marks,
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "sent": sent,
                        "arrived": arrived,
                        "state": [
                            "whole" if came >= all_of_it else "part of it lost" for all_of_it, came in rows
                        ],
                    },
                    "depth": {"depth": rounded([deep.value]) if deep is not None else []},
                },
                summary=depth_words(found.depth),
                caption="Dashed: all of it. The line across is what the buffer holds.",
            ),
        ),
    )


def _cells(found: Incast) -> Table:
    return Table(
        title="By number of senders",
        columns=(
            Column("size", numeric=True),
            Column("senders", numeric=True),
            Column("time", numeric=True),
            Column("explained", numeric=True),
            Column("times", numeric=True),
            Column("stalled", numeric=True),
            Column("arrives", numeric=True, narrow=False),
            Column("sent again", numeric=True, narrow=False),
        ),
        rows=tuple(map(_row, sorted(found.cells, key=lambda cell: (cell.size_bytes, cell.senders)))),
        note=f"Broken: beyond noise {MARGIN:g} times as long as explained on average, or more than {percent(SHARE)} of "
        f"transfers stalled ({STALLED:g} times as long). Where nothing breaks, something is called so in "
        f"{percent(FALSE_ALARM)} of cases. Sent again: segments per transfer.",
        empty="too little was measured",
        tall=len(found.cells) > 40,
    )


def _row(cell: IncastCell) -> tuple[Item, ...]:
    again = cell.again / max(cell.transfers, 1)
    return (
        Item(format_bytes(cell.size_bytes), cell.size_bytes),
        Item(str(cell.senders), cell.senders),
        estimate_item(cell.time),
        Item(format_value(cell.expected_s, "s"), cell.expected_s),
        Item(f"{cell.ratio.value:.3g}", cell.ratio.value, "error" if cell.broken else ""),
        Item(percent(cell.stalled), cell.stalled, "error" if cell.broken else ""),
        Item(format_bandwidth(cell.goodput), cell.goodput) if cell.goodput is not None else Item("–"),
        Item(f"{again:.3g}", again),
    )


def _evidence(found: Incast) -> Table | None:
    if not found.evidence:
        return None
    return Table(
        title="What the senders' kernels counted",
        columns=tuple(
            Column(title, numeric=True)
            for title in ("senders", "transfers", "segments sent again", "timeouts")
        ),
        rows=tuple(map(_counted, found.evidence)),
        note="Of all sizes together, with whatever else the nodes sent meanwhile.",
    )


def _counted(one: SenderCounts) -> tuple[Item, ...]:
    values = (one.senders, one.transfers, one.retransmitted, one.timeouts)
    return tuple(Item(f"{value:,}", value) for value in values)


def _remedies(found: Incast) -> Iterator[Table | Command]:
    if not found.remedies:
        return
    yield Table(
        title="What it would do here",
        columns=(Column("remedy"), Column("here"), Column("what it does")),
        rows=tuple(
            (
                Item(one.kind),
                Item(printable(one.lacking, _LIMIT) or "can be tried", flag="warning" if one.lacking else ""),
                Item(one.does),
            )
            for one in found.remedies
        ),
        note="Each command tries it under the guard, keeps it only if it helps, and puts it back otherwise.",
    )
    for one in found.remedies:
        if one.command:
            yield Command(one.kind, one.command)
