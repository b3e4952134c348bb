"""A trace as people read it.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import PurePath

from rich.console import Console

from wulf.records.traced import TracedRank, TraceSummary
from wulf.report.parts import Column, Item, Table
from wulf.report.terminal import Printer
from wulf.report.words import count, name, percent
from wulf.text import printable
from wulf.units import format_bytes, format_time

_CALLS = 12
_PAIRS = 8
_RANKS = 16
_KIB = 1024


def render_text(found: TraceSummary, console: Console) -> None:
    """Print what a trace says of its program."""
    printer = Printer(console)
    printer.line(_lede(found))
    for line in _notes(found):
        printer.line(line)
    printer.line("")
    for table in (_calls(found), _ranks(found), _sizes(found), _pairs(found)):
        printer.table(table)


def _lede(found: TraceSummary) -> str:
    hosts = len({rank.host for rank in found.ranks})
    calls = sum(rank.calls for rank in found.ranks)
    return (
        f"{name(PurePath(found.trace).name)}: {printable(found.command, 120)}; {count(len(found.ranks), 'rank')} on "
        f"{count(hosts, 'node')}, {count(calls, 'call')} in {_about(found.file_bytes)}; {_library(found)}"
    )


def _library(found: TraceSummary) -> str:
    return printable(" ".join(found.library.split()), 60)


def _notes(found: TraceSummary) -> Iterator[str]:
    died = [rank.rank for rank in found.ranks if rank.state == "running"]
    if died:
        yield f"cut off: {count(len(died), 'rank')} did not come to MPI_Finalize; what was recorded until then follows"
    lost = sum(rank.lost for rank in found.ranks)
    if lost:
        yield f"not whole: {count(lost, 'call')} missing, as the files were full: trace it again with a larger --limit"
    for reason in found.unsound:
        yield f"cannot be replayed: {reason}"
    done = [rank for rank in found.ranks if rank.run_s]
    if done:
        waiting = [rank.mpi_s / rank.run_s for rank in done if rank.run_s]
        computing = [rank.compute_s for rank in done]
        longest = max(rank.run_s or 0.0 for rank in done)
        uneven = (max(computing) - statistics.fmean(computing)) / longest
        yield (
            f"run time {format_time(longest)} of one run; in MPI {percent(statistics.fmean(waiting))} of it, "
            f"{percent(min(waiting))} to {percent(max(waiting))} by rank; uneven computing makes ranks wait for "
            f"{percent(uneven)} of it"
        )


def _calls(found: TraceSummary) -> Table:
    whole = sum(one.seconds for one in found.calls) or 1.0
    return Table(
        title="Calls, those with most time first",
        columns=(
            Column("call"),
            Column("count", numeric=True),
            Column("time", numeric=True),
            Column("of all time in MPI", numeric=True),
            Column("bytes", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.call, 40)),
                Item(str(one.count), one.count),
                Item(format_time(one.seconds) if one.seconds else "0 s", one.seconds),
                Item(percent(one.seconds / whole), one.seconds / whole),
                Item(_about(one.bytes), one.bytes),
            )
            for one in found.calls[:_CALLS]
        ),
        note="Times of all ranks together, in one run. Bytes: what is sent; of a collective each rank's own part; of a "
        "receive what came.",
    )


def _ranks(found: TraceSummary) -> Table:
    shown = sorted(found.ranks, key=lambda rank: -rank.compute_s)[:_RANKS]
    rest = len(found.ranks) - len(shown)
    return Table(
        title="Ranks, those that compute longest first",
        columns=(
            Column("rank", numeric=True),
            Column("node"),
            Column("computes", numeric=True),
            Column("in MPI", numeric=True),
            Column("calls", numeric=True),
            Column("state"),
        ),
        rows=tuple(_rank(rank) for rank in shown),
        note=f"and {rest} more" if rest else "",
    )


def _rank(rank: TracedRank) -> tuple[Item, ...]:
    return (
        Item(str(rank.rank), rank.rank),
        Item(name(rank.host)),
        Item(format_time(rank.compute_s) if rank.compute_s else "0 s", rank.compute_s),
        Item(format_time(rank.mpi_s) if rank.mpi_s else "0 s", rank.mpi_s),
        Item(str(rank.calls), rank.calls),
        Item("cut off" if rank.state == "running" else rank.state),
    )


def _sizes(found: TraceSummary) -> Table:
    return Table(
        title="Messages between two ranks, by size",
        columns=(Column("below", numeric=True), Column("count", numeric=True), Column("bytes", numeric=True)),
        rows=tuple(
            (
                Item(format_bytes(one.below_bytes), one.below_bytes),
                Item(str(one.count), one.count),
                Item(_about(one.bytes), one.bytes),
            )
            for one in found.sizes
        ),
        empty="no rank sends another one a message of its own",
    )


def _pairs(found: TraceSummary) -> Table:
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
                Item(_about(pair.bytes), pair.bytes),
            )
            for pair in most
        ),
        note=f"A rank sends to {statistics.median(partners):g} others, as a median; "
        f"{count(len(found.pairs), 'pair')} in all."
        if found.pairs
        else "",
        empty="no rank sends another one a message of its own",
    )


def _about(size: int) -> str:
    """Return a size with three digits: sums of many messages are no round numbers."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= _KIB
    return f"{value:.3g} TiB"
