"""The data of the charts of a trace, and the words beside them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from wulf.base.records.traced import TracedRank, TracedRow, TracedSize, TracedTimeline, TraceSummary
from wulf.base.text import count, printable
from wulf.base.units import format_bytes, format_time
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import percent, sentence
from wulf.tools.trace.page import charts
from wulf.tools.trace.page.tables import about

#: Calls that have a bar.
_CALLS = 10
#: Ranks that have a row of their own; of more, neighbours are taken together.
_MOST_RANKS = 32


def timeline(found: TraceSummary) -> Figure:
    """Return what the ranks did when."""
    told = found.timeline
    bins = (
        "every call by itself"
        if told.bin_s is None
        else f"shares of {format_time(told.bin_s)} each, those of MPI from below"
    )
    together = any(row.first < row.last for row in told.rows)
    until = "; a line of several ranks is as long as the longest of them" if together else ""
    return Figure(
        id="timeline",
        chart=charts.TIMELINE,
        title="What the ranks did when",
        x_title="time since MPI_Init returned, of each rank",
        y_title="",
        x=ticks.linear_times([row.end_s for row in told.rows]),
        variants=(
            Variant(
                label="",
                datasets={"main": _stretches(told), "lines": _lines(told)},
                summary=f"Timeline of {count(len(found.ranks), 'rank')} over "
                f"{format_time(max((row.end_s for row in told.rows), default=0.0))}: {bins}.",
                caption=f"{sentence(bins)}; the rest is computing. Clocks of ranks are not compared: every "
                "line begins where its own MPI_Init returned. Unsuccessful polls (such as MPI_Test without result) "
                f"are left out, so that a line with many of them is shorter{until}.",
            ),
        ),
    )


def _stretches(told: TracedTimeline) -> Columns:
    """Return the parts of stretches: they stand one on the other, in the order of their names."""
    height: dict[tuple[int, float], float] = defaultdict(float)
    stretches = sorted(told.stretches, key=lambda one: charts.PARTS.index(one.part))
    low, high = [], []
    for one in stretches:
        bottom = height[one.row, one.begin_s] if told.bin_s is not None else 0.0
        height[one.row, one.begin_s] = bottom + one.share
        low.append(one.row + 0.93 - 0.86 * bottom)
        high.append(one.row + 0.93 - 0.86 * (bottom + one.share))
    return {
        "ranks": [_named(told.rows[one.row].first, told.rows[one.row].last) for one in stretches],
        "begin_s": rounded([one.begin_s for one in stretches]),
        "end_s": rounded([one.end_s for one in stretches]),
        "part": [one.part for one in stretches],
        "share": [one.share for one in stretches],
        "low": rounded(low),
        "high": rounded(high),
    }


def _lines(told: TracedTimeline) -> Columns:
    """Return the line of each row, which parts stand on."""
    return {
        "ranks": [_named(row.first, row.last) for row in told.rows],
        "end_s": rounded([row.end_s for row in told.rows]),
        "begin_s": [0.0 for _ in told.rows],
        "low": [place + 0.93 for place in range(len(told.rows))],
        "high": [place + 0.07 for place in range(len(told.rows))],
        "middle": [place + 0.5 for place in range(len(told.rows))],
        "part": ["computing" for _ in told.rows],
    }


def _named(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def calls(found: TraceSummary) -> Figure:
    """Return the time in calls by rank: the mean, and the least and the most."""
    shown = found.calls[:_CALLS]
    number = max(len(found.ranks), 1)
    main: Columns = {
        "call": [printable(one.call, 40) for one in shown],
        "mean_s": rounded([one.seconds / number for one in shown]),
        "least_s": rounded([one.least_s for one in shown]),
        "most_s": rounded([one.most_s for one in shown]),
        "count": [one.count for one in shown],
        "bytes": [one.bytes for one in shown],
        "shown": [
            f"mean {format_time(one.seconds / number)}" if one.seconds else "mean 0 s" for one in shown
        ],
    }
    first = f"; most in {shown[0].call}" if shown else ""
    return Figure(
        id="calls",
        chart=charts.CALLS,
        title="Time in MPI by call",
        x_title="time of a rank",
        y_title="",
        x=ticks.linear_times([one.most_s for one in shown]),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Time in {count(len(shown), 'call')}{first}.",
                caption="Bars and numbers: mean of the ranks; lines: from the rank with the least to the one with the "
                "most, in one run.",
            ),
        ),
    )


def ranks(found: TraceSummary) -> Figure:
    """Return what the time of each rank, or of neighbours, is for."""
    size = -(-len(found.ranks) // _MOST_RANKS)
    blocks = [found.ranks[first : first + size] for first in range(0, len(found.ranks), size)]
    names = [_named(block[0].rank, block[-1].rank) for block in blocks]
    parts = ("computing", *charts.PARTS)
    spent = [[_spent(block, part) for part in parts] for block in blocks]
    main: Columns = {
        "ranks": [name for name in names for _ in parts],
        "part": [part for _ in names for part in parts],
        "order": [place for _ in names for place in range(len(parts))],
        "seconds": rounded([seconds for of_block in spent for seconds in of_block]),
    }
    computing = [rank.compute_s for rank in found.ranks]
    mean = statistics.fmean(computing) if computing else 0.0
    over = (max(computing) / mean - 1) if mean else 0.0
    return Figure(
        id="ranks",
        chart=charts.RANKS,
        title="What the time of each rank is for"
        + ("" if size == 1 else f", means of {count(size, 'rank')}"),
        x_title="time",
        y_title="rank" if size == 1 else "ranks",
        x=ticks.linear_times([sum(of_block) for of_block in spent]),
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Time of {count(len(found.ranks), 'rank')} by what it is for; the rank that computes longest "
                f"computes {percent(over)} longer than the mean.",
                caption=f"The rank that computes longest computes {percent(over)} longer than the mean: others wait "
                "for it. One run; unsuccessful polls are left out.",
            ),
        ),
    )


def _spent(block: Sequence[TracedRank], part: str) -> float:
    field = "compute_s" if part == "computing" else f"{part}_s"
    return statistics.fmean(float(getattr(rank, field)) for rank in block)


def matrices(found: TraceSummary) -> Iterator[Figure]:
    """Yield who sends whom how many bytes, and how many messages."""
    if not found.pairs:
        return
    rows = found.timeline.rows
    sums: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    block = rows[0].last - rows[0].first + 1
    for pair in found.pairs:
        key = (pair.source // block, pair.destination // block)
        messages, size = sums[key]
        sums[key] = (messages + pair.count, size + pair.bytes)
    sizes = {key: size for key, (_, size) in sums.items()}
    messages_of = {key: messages for key, (messages, _) in sums.items()}
    yield _matrix("matrix-bytes", "Bytes sent", rows, sizes, [about(size) for size in sizes.values()])
    yield _matrix(
        "matrix-messages",
        "Messages sent",
        rows,
        messages_of,
        [_short(number) for number in messages_of.values()],
    )


def _short(number: int) -> str:
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= 10 * scale:
            return f"{number / scale:.3g} {unit}"
    return str(number)


def _matrix(
    id_: str, title: str, rows: Sequence[TracedRow], sums: dict[tuple[int, int], int], texts: Sequence[str]
) -> Figure:
    names = [_named(row.first, row.last) for row in rows]
    most = max(sums.values())
    main: Columns = {
        "from": [names[source] for source, _ in sums],
        "to": [names[destination] for _, destination in sums],
        "value": list(sums.values()),
        "text": list(texts),
        "share": rounded([value / most if most else 0.0 for value in sums.values()]),
    }
    largest = max(sums, key=lambda key: sums[key])
    return Figure(
        id=id_,
        chart=charts.MATRIX,
        title=title,
        x_title="to rank",
        y_title="from rank",
        variants=(
            Variant(
                label="",
                datasets={"main": main, "order": {"rank": names}},
                summary=f"{title} between ranks; most from {names[largest[0]]} to {names[largest[1]]}: "
                f"{texts[list(sums).index(largest)]}.",
                caption=f"Darker is more, up to {texts[list(sums).index(largest)]}; a blank field: none. Messages of "
                "their own only, not those that collectives consist of.",
            ),
        ),
    )


def sizes(found: TraceSummary) -> Iterator[Figure]:
    """Yield how large messages are, and the parts in collectives."""
    if found.sizes:
        yield _sizes("sizes", "Messages by size", found.sizes)
    if found.collective_sizes:
        yield _sizes("collective-sizes", "Collectives by a rank's own part", found.collective_sizes)


def _sizes(id_: str, title: str, found: Sequence[TracedSize]) -> Figure:
    counts, moved = sum(one.count for one in found), sum(one.bytes for one in found)
    names = [_range(one.below_bytes) for one in found]
    of = ("messages" if id_ == "sizes" else "calls", "bytes")
    main: Columns = {
        "size": [name for name in names for _ in of],
        "of": [what for _ in names for what in of],
        "share": rounded(
            [
                100 * share
                for one in found
                for share in (one.count / counts, one.bytes / moved if moved else 0.0)
            ]
        ),
        "number": [text for one in found for text in (str(one.count), about(one.bytes))],
    }
    usual = max(found, key=lambda one: one.count)
    return Figure(
        id=id_,
        chart=charts.SIZES,
        title=title,
        x_title="share of all [%]",
        y_title="size",
        variants=(
            Variant(
                label="",
                datasets={
                    "main": main,
                    "order": {"size": names, "of": [of[place % 2] for place in range(len(names))]},
                },
                summary=f"{title}: {counts} {of[0]}, {about(moved)}; most have {_range(usual.below_bytes)}.",
                caption=f"{counts} {of[0]}, {about(moved)} in all.",
            ),
        ),
    )


def _range(below: int) -> str:
    if below <= 1:
        return "0 B"
    return (
        f"{format_bytes(below // 2)} to {format_bytes(below - 1) if below <= 1024 else format_bytes(below)}"
    )
