"""Where the time of the ranks goes, on the network as it is and on another one: data of the charts.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.records import Prediction, Timeline, TimelineRow
from wulf.base.units import format_time
from wulf.page import ticks
from wulf.page.parts import Columns, Figure, Ticks, Variant, rounded
from wulf.tools.predict.page import charts

ACTIVITIES = ("computing", "CPU of messages", "waiting")
#: Shares closer together than this are drawn as one [of a cell].
_ALIKE = 0.005


def figures(found: Prediction) -> Iterator[Figure]:
    """Yield the whole run on both networks, then a part of it closely; each pair on one scale."""
    whole = [one for one in found.timelines if one.part == "whole"]
    closely = [one for one in found.timelines if one.part == "middle"]
    shortest = min((one.for_s for one in whole), default=0.0)
    # A part that is longer than the run shows no more than the run does.
    for pair in (whole, [one for one in closely if one.for_s < shortest]):
        longest = max((one.for_s for one in pair), default=0.0)
        yield from (_figure(one, longest, place) for place, one in enumerate(pair))


def _figure(timeline: Timeline, longest_s: float, place: int) -> Figure:
    return Figure(
        id=f"timeline-{timeline.part}-{place}",
        chart=charts.TIMELINE,
        title=_title(timeline),
        x_title="time" if timeline.part == "whole" else "time from there on",
        y_title="rank",
        x=ticks.linear_times([longest_s]),
        y=Ticks(tuple(row + 0.5 for row in range(len(timeline.rows))), tuple(map(_ranks, timeline.rows))),
        variants=(
            Variant(
                label="",
                datasets={"main": _rectangles(timeline)},
                summary=f"{_title(timeline)}: {_in_words(timeline)}.",
                caption=f"{_in_words(timeline)}. By the model, with likely parameters; both networks on one scale.",
            ),
        ),
    )


def _title(timeline: Timeline) -> str:
    closely = " closely, from the middle of the run on" if timeline.part == "middle" else ""
    return f"On {_network(timeline)}{closely}"


def _network(timeline: Timeline) -> str:
    return "the network as it is" if timeline.network == "as it is" else timeline.network


def _ranks(row: TimelineRow) -> str:
    return str(row.first_rank) if row.first_rank == row.last_rank else f"{row.first_rank}–{row.last_rank}"


def _shares(row: TimelineRow, cell: int) -> tuple[float, float, float]:
    return row.computing[cell], row.messages[cell], row.waiting[cell]


def _in_words(timeline: Timeline) -> str:
    """Return how much of their time the ranks spend with what."""
    sums = [
        sum(sum(values) for values in column)
        for column in zip(*((row.computing, row.messages, row.waiting) for row in timeline.rows), strict=True)
    ]
    whole = sum(sums) or 1.0
    spent = ", ".join(f"{part / whole:.0%} {name}" for part, name in zip(sums, ACTIVITIES, strict=True))
    return f"{format_time(timeline.for_s)}: of the time of all ranks {spent}"


def _rectangles(timeline: Timeline) -> Columns:
    """Return what is drawn: activities on top of each other, cells that are alike as one."""
    begins: list[float] = []
    ends: list[float] = []
    lows: list[float] = []
    highs: list[float] = []
    kinds: list[str] = []
    each = timeline.for_s / max(len(timeline.rows[0].computing), 1)
    for number, row in enumerate(timeline.rows):
        for first, last in _runs(row):
            low = 0.0
            for name, share in zip(ACTIVITIES, _shares(row, first), strict=True):
                if share > _ALIKE:
                    begins.append(first * each)
                    ends.append((last + 1) * each)
                    # Rows are drawn from the top; a little is left between them.
                    lows.append(number + 0.95 - 0.9 * low)
                    highs.append(number + 0.95 - 0.9 * min(low + share, 1.0))
                    kinds.append(name)
                low += share
    return {
        "begin": rounded(begins),
        "end": rounded(ends),
        "low": rounded(lows),
        "high": rounded(highs),
        "activity": kinds,
    }


def _runs(row: TimelineRow) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of cells that follow each other and are alike."""
    first = 0
    count = len(row.computing)
    for cell in range(1, count + 1):
        if cell == count or any(
            abs(one - other) > _ALIKE
            for one, other in zip(_shares(row, cell), _shares(row, first), strict=True)
        ):
            yield first, cell - 1
            first = cell
