"""Which pairs come first: the worst always, never an average in its place."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from wulf.base.records import CellEstimate, Place

#: More pairs than this are not drawn as lines of their own: the worst and the best are.
SHOWN_PAIRS = 6


def by_pair(cells: Sequence[CellEstimate]) -> dict[Place, list[CellEstimate]]:
    """Cells of one operation by pair, in ascending size."""
    groups: dict[Place, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        groups[cell.cell.place].append(cell)
    return {pair: sorted(group, key=lambda cell: cell.cell.size_bytes) for pair, group in groups.items()}


def worst_first(cells: Sequence[CellEstimate]) -> list[Place]:
    """Order pairs by the geometric mean, over sizes, of their time relative to the best pair's at that size."""
    best: dict[int, float] = {}
    for cell in cells:
        if cell.time.value > 0:
            size = cell.cell.size_bytes
            best[size] = min(best.get(size, math.inf), cell.time.value)
    slowness = {pair: _slowness(group, best) for pair, group in by_pair(cells).items()}
    return sorted(slowness, key=lambda pair: (-slowness[pair], pair))


def shown(pairs: Sequence[Place]) -> list[Place]:
    """Choose the pairs that are drawn: all when they are few, else the worst ones and the best."""
    return list(pairs) if len(pairs) <= SHOWN_PAIRS else [*pairs[: SHOWN_PAIRS - 1], pairs[-1]]


def _slowness(cells: Sequence[CellEstimate], best: dict[int, float]) -> float:
    logs = [math.log(cell.time.value / best[cell.cell.size_bytes]) for cell in cells if cell.time.value > 0]
    return sum(logs) / len(logs) if logs else 0.0
