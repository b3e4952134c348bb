"""How much longer requests take under load than without, where a run has both.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wulf.estimate.over_tcp import ratio
from wulf.records import CellEstimate, Operation, Overhead

LOADED = "tcp_loaded"
#: Statistics of a launch: what most requests see, and what the unlucky ones do.
SHOWN = ("p50", "p99", "p99.9")


def under_load(cells: Sequence[CellEstimate], operations: Sequence[Operation]) -> Iterator[Overhead]:
    """Yield the ratio of each quantile under load to that without, at every size that both have between a pair."""
    loads = {
        operation.name: float(load or 0)
        for operation in operations
        for name, _, load in [(operation.asked or operation.name).partition(":")]
        if name == LOADED and load
    }
    free = {
        (cell.cell.place, cell.cell.size_bytes, cell.cell.setting): cell
        for cell in cells
        if loads.get(cell.cell.op) == 0
    }
    for cell in cells:
        base = free.get((cell.cell.place, cell.cell.size_bytes, cell.cell.setting))
        if base is None or not loads.get(cell.cell.op):
            continue
        for quantile in SHOWN:
            before, after = (
                [point.quantiles_s[quantile] for point in one.launches if quantile in point.quantiles_s]
                for one in (base, cell)
            )
            if before and after:
                yield Overhead(
                    op=cell.cell.op,
                    base=base.cell.op,
                    size_bytes=cell.cell.size_bytes,
                    place=cell.cell.place,
                    quantile=quantile,
                    base_s=base.quantiles_s[quantile],
                    ratio=ratio(before, after),
                )
