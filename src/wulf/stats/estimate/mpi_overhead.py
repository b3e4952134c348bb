"""What MPI costs over TCP, where both were measured between the same nodes in one run.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wulf.base.records import CellEstimate, Estimate, Operation, Overhead
from wulf.stats.core.shift import shift
from wulf.stats.estimate.cells import as_estimate


def over_tcp(cells: Sequence[CellEstimate], operations: Sequence[Operation]) -> Iterator[Overhead]:
    """Yield the ratio of MPI's round trips to those of TCP at every size that both have between a pair.

    Launches of both took turns in random order in the same minutes, so that what the nodes were doing then is in both.
    """
    known = {operation.name: operation for operation in operations}
    mpi = {name for name, one in known.items() if one.transport == "mpi" and one.pattern == "ping-pong"}
    base = {
        (cell.cell.place, cell.cell.size_bytes, cell.cell.setting): cell
        for cell in cells
        if cell.cell.op == "tcp_rr"
    }
    for cell in cells:
        key = cell.cell.place, cell.cell.size_bytes, cell.cell.setting
        if cell.cell.op not in mpi or key not in base:
            continue
        before, after = ([point.median_s for point in one.launches] for one in (base[key], cell))
        if not before or not after:
            continue
        yield Overhead(
            op=cell.cell.op,
            base=base[key].cell.op,
            size_bytes=cell.cell.size_bytes,
            place=cell.cell.place,
            base_s=base[key].time.value,
            ratio=ratio(before, after),
        )


def ratio(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Return the ratio of the second sample of launches to the first."""
    return as_estimate(shift(before, after).ratio, "ratio")
