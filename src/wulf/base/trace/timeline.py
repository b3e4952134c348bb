"""What the ranks of a trace did when, in so few stretches that they can be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from wulf.base.records.traced import TracedRow, TracedStretch, TracedTimeline
from wulf.base.trace.columns import PART_OF, PARTS, times
from wulf.base.trace.reader import Stream, Trace

#: At most so many lines, bins in one, and bins in all.
MOST_ROWS, MOST_BINS, MOST_CELLS = 48, 240, 4800
#: Calls that are drawn one by one.
MOST_CALLS = 2400
#: A smaller share of a bin is not seen.
_LEAST = 0.004


def timeline(trace: Trace) -> TracedTimeline:
    """Return what the ranks did when: call by call where there are few, else the shares of equal bins."""
    size = -(-trace.ranks // MOST_ROWS)
    blocks = [trace.streams[first : first + size] for first in range(0, trace.ranks, size)]
    slots = sum(len(stream.slots) for stream in trace.streams)
    if size == 1 and slots <= MOST_CALLS:
        ends, found = _one_by_one(trace.streams)
        bin_s = None
    else:
        bins = min(MOST_BINS, MOST_CELLS // len(blocks))
        ends, found, bin_s = _binned(blocks, bins)
    rows = [
        TracedRow(first=block[0].rank, last=block[-1].rank, end_s=end)
        for block, end in zip(blocks, ends, strict=True)
    ]
    return TracedTimeline(bin_s=bin_s, rows=rows, stretches=found)


def _one_by_one(streams: Sequence[Stream]) -> tuple[list[float], list[TracedStretch]]:
    ends, found = [], []
    for row, stream in enumerate(streams):
        edges, parts = _edges(stream)
        ends.append(_end(edges))
        found += [
            TracedStretch(row=row, begin_s=begin, end_s=end, part=PARTS[part], share=1.0)
            for begin, end, part in zip(
                edges[1::2].tolist(), edges[2::2].tolist(), parts.tolist(), strict=True
            )
            if end > begin
        ]
    return ends, found


def _binned(blocks: Sequence[Sequence[Stream]], bins: int) -> tuple[list[float], list[TracedStretch], float]:
    ends = [max(_end(_edges(stream)[0]) for stream in block) for block in blocks]
    bin_s = max(*ends, 0.0) / bins or 1.0
    marks = np.linspace(0.0, bins * bin_s, bins + 1)
    found: list[TracedStretch] = []
    for row, block in enumerate(blocks):
        spent = np.mean([_spent(stream, marks) for stream in block], axis=0)
        found += _stretches(row, spent, marks, ends[row])
    return ends, found, bin_s


def _stretches(
    row: int, spent: NDArray[np.float64], marks: NDArray[np.float64], end: float
) -> Iterator[TracedStretch]:
    """Give the times in parts of MPI (parts × bins) [s] as stretches, none of them beyond the end of the line."""
    long = np.minimum(marks[1:], end) - marks[:-1]
    shares = np.divide(spent, long, out=np.zeros_like(spent), where=long > 0)
    for part, place in zip(*np.nonzero(shares > _LEAST), strict=True):
        yield TracedStretch(
            row=row,
            begin_s=float(marks[place]),
            end_s=float(marks[place] + long[place]),
            part=PARTS[part],
            share=round(min(float(shares[part, place]), 1.0), 4),
        )


def _spent(stream: Stream, marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the time in each part of MPI between marks of time, an array of parts × bins [s]."""
    edges, parts = _edges(stream)
    call_s = edges[2::2] - edges[1::2]
    found = np.empty((len(PARTS), len(marks) - 1))
    for part in range(len(PARTS)):
        until = np.zeros(len(edges))
        until[2::2] = np.cumsum(np.where(parts == part, call_s, 0.0))
        until[1::2] = until[0:-1:2]
        found[part] = np.diff(np.interp(marks, edges, until))
    return found


def _edges(stream: Stream) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return when a rank's calls begin and end, since MPI_Init [s]: 0, begin, end, begin, …; and the part of each."""
    starts = stream.starts()
    records = stream.slots[starts]
    compute_ns, call_ns = times(stream, starts, records)
    edges = np.zeros(2 * len(records) + 1)
    edges[1:] = np.cumsum(np.stack((compute_ns, call_ns), axis=1).reshape(-1)) * 1e-9
    return edges, PART_OF[records["kind"]]


def _end(edges: NDArray[np.float64]) -> float:
    return float(edges[-1])
