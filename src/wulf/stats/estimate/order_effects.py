"""Sizes that disturb each other: what a size takes alone in its launches, and beside others.  Pure.

A launch visits its sizes in one process, in random order. Large ones may leave something behind (sockets whose buffers
have grown, memory that is registered), and a program that sends only smaller ones does not meet that. Where a plan has
an operation twice at the same size, once with other sizes beside it, both are held against each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from wulf.base.records import Advice, CellEstimate, Operation
from wulf.base.units import format_bytes, format_change, format_time
from wulf.stats.core.shift import shift
from wulf.stats.estimate.cells import as_estimate

#: Smaller effects are not worth a word.
WORTH = 0.05
#: There are few such pairs in a run, and each is told to everybody who reads it.
CONFIDENCE = 0.99


def advise(cells: Sequence[CellEstimate], operations: Sequence[Operation]) -> Iterator[Advice]:
    """Yield what other sizes in the same launches do to one.

    Parameters
    ----------
    cells
        Estimates of the run.
    operations
        What each operation does, and how the probe is asked for it.
    """
    asked = {one.name: one.asked or one.name for one in operations if not one.beside_traffic}
    sizes: dict[str, set[int]] = defaultdict(set)
    same: dict[tuple[str, tuple[str, ...], int, str], list[CellEstimate]] = defaultdict(list)
    for one in cells:
        if one.cell.op in asked:
            sizes[one.cell.op].add(one.cell.size_bytes)
            same[asked[one.cell.op], one.cell.place, one.cell.size_bytes, one.cell.setting].append(one)
    for (op, place, size, _), found in same.items():
        for one, other in combinations(sorted(found, key=lambda cell: len(sizes[cell.cell.op])), 2):
            if sizes[one.cell.op] != sizes[other.cell.op]:
                yield from _told(f"{op} {'–'.join(place)}", size, one, other, sizes)


def _told(
    subject: str, size: int, few: CellEstimate, many: CellEstimate, sizes: dict[str, set[int]]
) -> Iterator[Advice]:
    base, candidate = (
        [point.median_s for point in cell.launches if point.median_s > 0] for cell in (few, many)
    )
    if not base or not candidate:
        return
    ratio = as_estimate(shift(base, candidate, CONFIDENCE).ratio, "ratio")
    if ratio.low is None or ratio.high is None or ratio.low < 1 < ratio.high or abs(ratio.value - 1) < WORTH:
        return
    yield Advice(
        kind="order_effect",
        severity="note",
        subject=subject,
        text=f"{format_bytes(size)} takes {format_time(few.time.value)} {_beside(size, sizes[few.cell.op])} "
        f"({few.cell.op}), {format_time(many.time.value)} {_beside(size, sizes[many.cell.op])} ({many.cell.op}): "
        f"{format_change(ratio)}",
        advice="Sizes of a launch disturb each other. A program meets the figure whose sizes are like its own; give "
        "such sizes an experiment of their own in a plan.",
    )


def _beside(size: int, sizes: set[int]) -> str:
    """Say which other sizes its launches visited."""
    if sizes == {size}:
        return "alone"
    largest = max(sizes)
    return "beside smaller ones" if largest == size else f"beside others up to {format_bytes(largest)}"
