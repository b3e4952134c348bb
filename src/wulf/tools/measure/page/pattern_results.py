"""A pattern that was performed, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.records import Estimate
from wulf.base.records.emulated import Emulated, EmulatedPattern, EmulatedProgram, EmulatedTimes
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_spread, format_time
from wulf.page.blocks import Code, Notes, Paragraph, Section
from wulf.page.parts import Column, Item, Table
from wulf.page.words import estimate_item, name, percent
from wulf.tools.measure.page import pattern_figures as figures

#: Computing that took so much more or less than it was asked for is worth a word.
_OFF = 0.05
COMPUTE = {
    "work": "computing is so much arithmetic as takes that long undisturbed",
    "clock": "computing lasts until the clock says so: what disturbs it within does no harm",
    "none": "nothing is computed: the network alone",
}


def section(pattern: EmulatedPattern, found: Emulated, *, brief: bool) -> Section:
    """Return all that is shown of a pattern."""
    drawn = [one for one in (figures.picture(pattern), figures.shares(found)) if one is not None]
    return Section(
        "pattern",
        f"Pattern: {name(pattern.title)}",
        (
            Paragraph(_lede(pattern, found)),
            Notes(tuple(_lines(pattern, found))),
            _times(found),
            *drawn,
            *([] if brief else [_programs(pattern)]),
            Code(pattern.text, summary="the pattern as it was written"),
        ),
    )


def title(pattern: EmulatedPattern, found: Emulated) -> str:
    """Return the title of the run."""
    return f"{name(pattern.title)}: {count(pattern.ranks, 'rank')} on {count(found.nodes, 'node')}"


def _lede(pattern: EmulatedPattern, found: Emulated) -> str:
    what = f"{printable(pattern.what, 400)} " if pattern.what else ""
    return (
        f"{what}{count(pattern.ranks, 'rank')} on {count(found.nodes, 'node')}; a pass has "
        f"{count(pattern.messages, 'message')} with {format_bytes(pattern.bytes)} beside collectives, and takes "
        f"{format_time(pattern.least_s)} on a network without delay. Each launch made {_passes(pattern)}; "
        f"{COMPUTE.get(pattern.compute, pattern.compute)}."
    )


def _passes(pattern: EmulatedPattern) -> str:
    by = {"messages": "", "memory": "; ranks of a node send through memory that they share"}.get(
        pattern.method, f"; ranks send through a file in {printable(pattern.directory, 60)}"
    )
    before = count(pattern.warm_ups, "pass") + " to warm up and " if pattern.warm_ups else ""
    return f"{before}{count(pattern.passes, 'pass')} that {'count' if pattern.passes > 1 else 'counts'}{by}"


def _lines(pattern: EmulatedPattern, found: Emulated) -> Iterator[str]:
    if found.predicted is not None:
        yield _predicted(found)
    if found.wrong:
        yield f"{count(found.wrong, 'message')} arrived changed."
    elif pattern.checked:
        yield "All that arrived in the first pass of each launch was what had been sent."
    for program in found.programs:
        ratio = program.compute_ratio
        if ratio is not None and abs(ratio - 1) > _OFF and pattern.compute != "none":
            more = "longer than asked for: ranks share CPUs, or something else runs there"
            less = "shorter than asked for: the CPU has become faster since it was asked how fast it is"
            yield f"Computing of {name(program.name)} took {percent(abs(ratio - 1))} {more if ratio > 1 else less}."
    if pattern.edges is None:
        yield "Who sends to whom is not drawn: there are too many edges for a picture."


def _predicted(found: Emulated) -> str:
    one = found.predicted
    assert one is not None
    if one.time is None or one.ratio is None:
        return f"Not predicted with {name(one.run)}: {printable(one.reason, 300)}."
    where = "inside" if one.inside else "outside"
    return (
        f"Predicted with {name(one.run)}: {format_spread(one.time)}; measured: {format_spread(found.time)}, {where} "
        f"the predicted interval, {one.ratio:.2f} times the prediction."
    )


def _times(found: Emulated) -> Table:
    several = len(found.programs) > 1
    rows = [_row(program) for program in found.programs]
    if several:
        whole = (Item("all"), Item(str(found.ranks), found.ranks), Item(""), estimate_item(found.time))
        rows.insert(0, (*whole, Item(""), Item(""), Item("")))
    return Table(
        title="Times by program",
        columns=(
            Column("program"),
            Column("ranks", numeric=True, narrow=False),
            Column("iterations", numeric=True, narrow=False),
            Column("a pass", numeric=True),
            Column("an iteration", numeric=True),
            Column("in MPI", numeric=True),
            Column("by rank", numeric=True, narrow=False),
        ),
        rows=tuple(rows),
        note="A pass lasts from the common begin to the end of the last rank; an iteration from the end of the one "
        "before to its own, each that of its last rank. In MPI: part of the time in which ranks send and wait, their "
        "mean; by rank: the least and the most. Medians over launches, with 95 % intervals where there are any.",
    )


def _row(program: EmulatedTimes) -> tuple[Item, ...]:
    shares = [1 - one.compute_s / one.time_s for one in program.by_rank if one.time_s > 0]
    by_rank = f"{percent(min(shares))} to {percent(max(shares))}" if shares else ""
    return (
        Item(name(program.name)),
        Item(str(program.ranks), program.ranks),
        Item(str(program.iterations), program.iterations),
        estimate_item(program.time),
        estimate_item(program.iteration),
        _share(program.mpi_share),
        Item(by_rank),
    )


def _share(share: Estimate) -> Item:
    if share.low is None or share.high is None:
        return Item(percent(share.value), share.value)
    return Item(f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})", share.value)


def _programs(pattern: EmulatedPattern) -> Table:
    rows = [
        (
            Item(name(program.name)) if place == 0 else Item(""),
            Item(_members(program) if place == 0 else ""),
            Item(step),
        )
        for program in pattern.programs
        for place, step in enumerate(program.steps)
    ]
    return Table(
        title="What programs do in an iteration",
        columns=(Column("program"), Column("ranks", narrow=False), Column("step")),
        rows=tuple(rows),
    )


def _members(program: EmulatedProgram) -> str:
    """Return ranks as ranges."""
    parts: list[list[int]] = []
    for rank in sorted(program.ranks):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in parts)
