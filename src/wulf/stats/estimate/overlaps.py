"""How much of a non-blocking operation goes on during a computation, where a run has both with and without.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wulf.base.records import CellEstimate, Estimate, Operation, Overlap
from wulf.stats.core.shift import shift
from wulf.stats.estimate.cells import as_estimate

#: A launch in which all of it overlapped may have a time of zero, which has no logarithm: a step of the probe's values.
STEP_S = 1e-9


def overlaps(cells: Sequence[CellEstimate], operations: Sequence[Operation]) -> Iterator[Overlap]:
    """Yield the share that overlaps at every size that an operation has with and without the computation at a place."""
    hidden = {operation.name: operation.overlaps for operation in operations if operation.overlaps}
    asked = {operation.name: operation.asked or operation.name for operation in operations}
    alone = {
        (asked.get(cell.cell.op), cell.cell.place, cell.cell.size_bytes, cell.cell.setting): cell
        for cell in cells
    }
    for cell in cells:
        key = hidden.get(cell.cell.op), cell.cell.place, cell.cell.size_bytes, cell.cell.setting
        if cell.cell.op not in hidden or key not in alone:
            continue
        base = alone[key]
        yield Overlap(
            op=cell.cell.op,
            base=base.cell.op,
            size_bytes=cell.cell.size_bytes,
            place=cell.cell.place,
            base_s=base.time.value,
            share=_share(*([point.median_s for point in one.launches] for one in (base, cell))),
        )


def _share(alone: Sequence[float], left: Sequence[float]) -> Estimate:
    """Return 1 − what is left ÷ what it takes alone; the bounds change places."""
    ratio = shift(alone, [max(time, STEP_S) for time in left]).ratio
    low, high = (None if bound is None else 1 - bound for bound in (ratio.high, ratio.low))
    found = replace(ratio, value=1 - ratio.value, low=low, high=high, method=f"1 − ratio: {ratio.method}")
    return as_estimate(found, "ratio")
