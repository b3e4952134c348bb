"""A trace in words and tables: what the page and the terminal both print."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from wulf.base.records.traced import TracedCall, TracedRank, TracedSize, TraceSummary
from wulf.base.text import count, printable
from wulf.base.trace.layout import Unsound
from wulf.base.trace.summary import UNSOUND
from wulf.base.units import format_bytes, format_time
from wulf.page.parts import Column, Item, Table
from wulf.page.words import listed, name, percent

_CALLS = 12
_PAIRS = 8
_RANKS = 16
_KIB = 1024


def lede(found: TraceSummary) -> str:
    """Say what was run, and where."""
    hosts = {rank.host for rank in found.ranks}
    nodes = count(len(hosts), "node") if all(hosts) else "nodes that it does not name"
    calls = sum(rank.calls for rank in found.ranks)
    return (
        f"{printable(found.command, 120)}; {count(len(found.ranks), 'rank')} on {nodes}, "
        f"{count(calls, 'call')} in {about(found.file_bytes)}{_library(found)}"
    )


def title(found: TraceSummary) -> str:
    """Return what the program spends its time on, by its ranks' mean; and which trace it is."""
    trace = name(PurePath(found.trace).name)
    spent_s = sum(rank.compute_s + rank.mpi_s for rank in found.ranks)
    if spent_s <= 0:
        return trace
    parts = {
        "computing": sum(rank.compute_s for rank in found.ranks),
        "messages": sum(rank.messages_s for rank in found.ranks),
        "waiting": sum(rank.waiting_s for rank in found.ranks),
        "collectives": sum(rank.collectives_s for rank in found.ranks),
    }
    most = sorted(parts, key=parts.__getitem__, reverse=True)[:2]
    return f"{trace}: {', '.join(f'{part} {percent(parts[part] / spent_s)}' for part in most)} of the time"


def _library(found: TraceSummary) -> str:
    named = printable(" ".join(found.library.split()), 60)
    return f"; {named}" if named else ""


def flaws(found: TraceSummary) -> Iterator[str]:
    """Say what is missing, and what cannot be replayed."""
    died = [rank.rank for rank in found.ranks if rank.state == "running"]
    if died:
        yield f"cut off: {count(len(died), 'rank')} did not reach MPI_Finalize; what was recorded until then follows"
    lost = sum(rank.lost for rank in found.ranks)
    if lost:
        yield f"not whole: {count(lost, 'call')} missing, as the files were full: trace it again with a larger --limit"
    for reason in found.unsound:
        yield f"cannot be replayed: {reason}" + (
            _at_once(found) if reason == UNSOUND[Unsound.THREADS] else ""
        )


def _at_once(found: TraceSummary) -> str:
    """Say of the rank whose threads are in MPI at the same time for longest which they are; empty if not counted."""
    several = [one for one in found.threads if one.threads > 1]
    if not several:
        return ""
    worst = max(several, key=lambda one: one.overlap_s)
    run_s = next((rank.run_s for rank in found.ranks if rank.rank == worst.rank), None)
    share = f"{percent(worst.overlap_s / run_s)} of its run" if run_s else format_time(worst.overlap_s)
    which = [
        f"'{printable(one.name, 16)}' in {one.overlapping} of {count(one.calls, 'call')}"
        for one in sorted(worst.of, key=lambda one: -one.overlapping_s)
        if one.overlapping
    ]
    return f": {count(worst.threads, 'thread')} of rank {worst.rank}, for {share} ({listed(which, 3)})"


def times(found: TraceSummary) -> Iterator[str]:
    """Say how long it ran, and how much of that in MPI."""
    done = [rank for rank in found.ranks if rank.run_s]
    if not done:
        return
    waiting = [rank.mpi_s / (_recorded_s(rank) or 1.0) for rank in done]
    of_it = "of it" if all(rank.state == "finished" for rank in done) else "of what is recorded of it"
    computing = [rank.compute_s for rank in done]
    longest = max(rank.run_s or 0.0 for rank in done)
    uneven = (max(computing) - statistics.fmean(computing)) / longest
    if UNSOUND[Unsound.THREADS] in found.unsound:
        yield (
            f"run time {format_time(longest)} of one run; calls of all threads of a rank together take "
            f"{statistics.fmean(waiting):.2g} times as long{_of_files(done)}"
        )
        return
    yield (
        f"run time {format_time(longest)} of one run; in MPI {percent(statistics.fmean(waiting))} {of_it}, "
        f"{percent(min(waiting))} to {percent(max(waiting))} by rank; uneven computing makes ranks wait for "
        f"{percent(uneven)} of it{_of_files(done)}"
    )


def _of_files(done: Sequence[TracedRank]) -> str:
    """Say what calls on files take, where there are any."""
    shares = [rank.files_s / (_recorded_s(rank) or 1.0) for rank in done]
    if not any(shares):
        return ""
    return f"; {percent(statistics.fmean(shares))} in calls on files, which a prediction keeps as it is"


def _recorded_s(rank: TracedRank) -> float:
    """Return of how much time it is known what it was for; unsuccessful polls are in none of its parts [s]."""
    whole = rank.run_s if rank.state == "finished" else None
    return rank.compute_s + rank.mpi_s if whole is None else whole


def calls(found: TraceSummary) -> Table:
    """Return the calls, those with most time first."""
    whole = sum(one.seconds for one in found.calls) or 1.0
    rest = len(found.calls) - _CALLS
    return Table(
        title="Calls, those with most time first",
        columns=(
            Column("call"),
            Column("count", numeric=True),
            Column("time", numeric=True),
            Column("of all time in MPI", numeric=True),
            Column("by rank", numeric=True, narrow=False),
            Column("bytes", numeric=True),
        ),
        rows=tuple(_call(one, whole) for one in found.calls[:_CALLS]),
        note="Times of all ranks together, and of the ranks with the least and the most, in one run. Bytes: what is "
        "sent; of a collective each rank's own part; of a receive what came."
        + (f" {count(rest, 'more call')} in --json." if rest > 0 else ""),
    )


def _call(one: TracedCall, whole: float) -> tuple[Item, ...]:
    return (
        Item(printable(one.call, 40)),
        Item(str(one.count), one.count),
        _time(one.seconds),
        Item(percent(one.seconds / whole), one.seconds / whole),
        Item(f"{_time(one.least_s).text} to {_time(one.most_s).text}", one.most_s),
        Item(about(one.bytes), one.bytes),
    )


def _time(seconds: float) -> Item:
    return Item(format_time(seconds) if seconds else "0 s", seconds)


def ranks(found: TraceSummary) -> Table:
    """Return the ranks that compute longest."""
    shown = sorted(found.ranks, key=lambda rank: -rank.compute_s)[:_RANKS]
    rest = len(found.ranks) - len(shown)
    return Table(
        title="Ranks, those that compute longest first",
        columns=(
            Column("rank", numeric=True),
            Column("node"),
            Column("computes", numeric=True),
            Column("in MPI", numeric=True),
            Column("messages", numeric=True, narrow=False),
            Column("waiting", numeric=True, narrow=False),
            Column("collectives", numeric=True, narrow=False),
            Column("unsuccessful polls", numeric=True, narrow=False),
            Column("calls", numeric=True),
            Column("state"),
        ),
        rows=tuple(_rank(rank) for rank in shown),
        note="Messages, waiting for requests and collectives are parts of the time in MPI. Unsuccessful polls are "
        "calls like MPI_Test without a result: they are in neither time."
        + (f" And {rest} more." if rest else ""),
    )


def _rank(rank: TracedRank) -> tuple[Item, ...]:
    return (
        Item(str(rank.rank), rank.rank),
        Item(name(rank.host)),
        _time(rank.compute_s),
        _time(rank.mpi_s),
        _time(rank.messages_s),
        _time(rank.waiting_s),
        _time(rank.collectives_s),
        _looks(rank),
        Item(str(rank.calls), rank.calls),
        Item("cut off" if rank.state == "running" else rank.state),
    )


def _looks(rank: TracedRank) -> Item:
    if rank.run_s is None:
        return Item("unknown: cut off", None, "unknown")
    return _time(max(rank.run_s - rank.mpi_s - rank.compute_s, 0.0))


def sizes(found: TraceSummary) -> Table:
    """Return the messages by size."""
    return _sizes(
        "Messages between two ranks, by size",
        found.sizes,
        "no rank sends another one a message of its own",
    )


def collective_sizes(found: TraceSummary) -> Table:
    """Return the parts in collectives by size."""
    return _sizes(
        "Collectives, by a rank's own part", found.collective_sizes, "no data is moved by collectives"
    )


def _sizes(text: str, found: list[TracedSize], empty: str) -> Table:
    return Table(
        title=text,
        columns=(Column("below", numeric=True), Column("count", numeric=True), Column("bytes", numeric=True)),
        rows=tuple(
            (
                Item(format_bytes(one.below_bytes), one.below_bytes),
                Item(str(one.count), one.count),
                Item(about(one.bytes), one.bytes),
            )
            for one in found
        ),
        empty=empty,
    )


def pairs(found: TraceSummary) -> Table:
    """Return the pairs of ranks with most bytes."""
    most = sorted(found.pairs, key=lambda pair: -pair.bytes)[:_PAIRS]
    partners = [
        len({pair.destination for pair in found.pairs if pair.source == rank.rank}) for rank in found.ranks
    ]
    return Table(
        title="Who sends most to whom",
        columns=(
            Column("from rank", numeric=True),
            Column("to rank", numeric=True),
            Column("messages", numeric=True),
            Column("bytes", numeric=True),
        ),
        rows=tuple(
            (
                Item(str(pair.source), pair.source),
                Item(str(pair.destination), pair.destination),
                Item(str(pair.count), pair.count),
                Item(about(pair.bytes), pair.bytes),
            )
            for pair in most
        ),
        note=f"Ranks that one sends to, as a median: {statistics.median(partners):g}; "
        f"{count(len(found.pairs), 'pair')} in all."
        if found.pairs
        else "",
        empty="no rank sends another one a message of its own",
    )


def about(size: float) -> str:
    """Return a size with three digits: sums of many messages are no round numbers."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= _KIB
    return f"{value:.3g} TiB"
