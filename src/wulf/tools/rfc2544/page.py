"""RFC 2544 as people read it: a row for each frame size, then the loss by rate.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.text import count, printable
from wulf.page.blocks import Notes, Page, Section, known
from wulf.page.parts import Column, Item, Table
from wulf.page.words import duration, estimate_item, name, percent
from wulf.tools.rfc2544.record import FrameSize, Rate, Rfc2544


def exit_code(found: Rfc2544) -> int:
    """Return the exit code: whether something could not be found."""
    return 3 if any(one.throughput is None or one.burst is None or one.notes for one in found.sizes) else 0


def build(found: Rfc2544) -> Page:
    """Return throughput, bursts and latency by frame size, and loss by rate."""
    first, second = map(name, found.pair)
    notes = tuple(_notes(found))
    return Page(
        title=_answer(found),
        lede=f"UDP from {first} to {second}, trials of {duration(found.trial_s)}",
        kind="RFC 2544",
        verb="bench rfc2544",
        head=known(_sizes(found), _bursts(found), Notes(notes) if notes else None),
        sections=(Section("losses", "Loss by rate", (_losses(found),)),),
    )


def _answer(found: Rfc2544) -> str:
    known_ = [one for one in found.sizes if one.throughput is not None]
    if not known_:
        return "No rate was found that loses nothing"
    best = max(known_, key=_bits)
    more = " (the sender's own limit)" if best.sender_limited else ""
    if best.rate_is_limit:
        more = ", the highest rate that was to be tried"
    return f"{_bits(best) / 1e6:,.4g} Mbit/s of {best.frame_bytes} B frames without loss{more}"


def _bits(size: FrameSize) -> float:
    return size.throughput.frames_per_s * size.frame_bytes * 8 if size.throughput is not None else 0.0


def _sizes(found: Rfc2544) -> Table:
    columns = (
        Column("frame", numeric=True),
        Column("throughput", numeric=True),
        Column("frames/s", numeric=True),
        Column("limit"),
        Column("latency at it", numeric=True),
    )
    rows = tuple(
        (
            Item(f"{one.frame_bytes} B", one.frame_bytes),
            Item(f"{_bits(one) / 1e6:,.4g} Mbit/s", _bits(one))
            if one.throughput
            else Item("unknown", None, "unknown"),
            Item(f"{one.throughput.frames_per_s:,.0f}", one.throughput.frames_per_s)
            if one.throughput
            else Item("–"),
            _limit(one),
            estimate_item(one.latency),
        )
        for one in found.sizes
    )
    note = (
        f"Throughput: the highest rate of frames that loses nothing, searched to ±{percent(found.precision)} and "
        "repeated. Latency: half round trip while frames go at that rate."
    )
    return Table("By frame size", columns, rows, note=note)


def _limit(one: FrameSize) -> Item:
    """Return what limits the rate; unknown where there is none."""
    if one.throughput is None:
        return Item("unknown", None, "unknown")
    if one.rate_is_limit:
        return Item("none found: --most-mbit-s")
    return Item("the sender" if one.sender_limited else "the way")


def _bursts(found: Rfc2544) -> Table:
    columns = tuple(
        Column(title, numeric=True)
        for title in ("frame", "longest burst", "arriving at", "buffer", "buffer as time")
    )
    rows = tuple(
        (
            Item(f"{one.frame_bytes} B", one.frame_bytes),
            _burst(one),
            Item("–") if held is None else Item(f"{held.arrival_per_s:,.0f} frames/s", held.arrival_per_s),
            estimate_item(held.frames if held else None, one.buffer_unknown),
            estimate_item(held.time) if held else Item("–"),
        )
        for one in found.sizes
        for held in [one.buffer]
    )
    note = (
        "Longest burst: back to back, without loss. Buffer: that burst less the frames that left while it arrived, "
        "so × (1 − throughput ÷ arrival rate); as time: ÷ the arrival rate (RFC 9004, section 5.4)."
    )
    return Table("Bursts", columns, rows, note=note)


def _burst(size: FrameSize) -> Item:
    if size.burst is None:
        return Item("unknown", None, "unknown")
    more = " or more" if size.burst_is_limit else ""
    return Item(f"{count(size.burst, 'frame')}{more}", size.burst)


def _losses(found: Rfc2544) -> Table:
    columns = tuple(Column(title, numeric=True) for title in ("frame", "rate", "sent", "lost"))
    rows = tuple(_loss(one, rate) for one in found.sizes for rate in one.losses)
    return Table("Loss by rate", columns, rows, tall=len(rows) > 40)


def _loss(size: FrameSize, rate: Rate) -> tuple[Item, ...]:
    return (
        Item(f"{size.frame_bytes} B", size.frame_bytes),
        Item(f"{rate.frames_per_s:,.0f} frames/s", rate.frames_per_s),
        Item(f"{rate.sent_per_s:,.0f} frames/s", rate.sent_per_s),
        Item("unknown", None, "unknown") if rate.loss is None else Item(percent(rate.loss), rate.loss),
    )


def _notes(found: Rfc2544) -> Iterator[str]:
    for one in found.sizes:
        if one.lossy_repetitions:
            of = count(one.repetitions, "repetition")
            yield f"{one.frame_bytes} B: {one.lossy_repetitions} of {of} lost something"
        yield from (f"{one.frame_bytes} B: {printable(note, 200)}" for note in one.notes)
