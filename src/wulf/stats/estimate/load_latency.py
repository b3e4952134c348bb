"""How much longer requests take under load, or beside traffic of others, where a run has them without, too.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from wulf.base.records import CellEstimate, Operation, Overhead
from wulf.stats.estimate.mpi_overhead import ratio

LOADED = "tcp_loaded"
#: Statistics of a launch: what most requests see, and what the unlucky ones do. Each with how many values it takes.
SHOWN = {"p50": 1, "p99": 100, "p99.9": 1000}
#: Of few values, how large a high quantile comes out depends on how many there are: both sides have as many, up to this
#: ratio, or so many times those that it takes.
AS_MANY, AMPLE = 1.25, 10


def under_load(cells: Sequence[CellEstimate], operations: Sequence[Operation]) -> Iterator[Overhead]:
    """Yield the ratio of each quantile under load to that without, at every size that both have between a pair.

    A quantile is left out where some launch has too few values for it.
    """
    known = {operation.name: operation for operation in operations}
    free = {
        (_asked(known[cell.cell.op]), cell.cell.place, cell.cell.size_bytes, cell.cell.setting): cell
        for cell in cells
        if cell.cell.op in known and not known[cell.cell.op].beside_traffic
    }
    for cell in cells:
        without = _without(known[cell.cell.op]) if cell.cell.op in known else None
        base = free.get((without or "", cell.cell.place, cell.cell.size_bytes, cell.cell.setting))
        if base is None:
            continue
        for quantile, fewest in SHOWN.items():
            before, after = (_values(one, quantile, fewest) for one in (base, cell))
            if before and after and _comparable(base, cell, fewest):
                yield Overhead(
                    op=cell.cell.op,
                    base=base.cell.op,
                    size_bytes=cell.cell.size_bytes,
                    place=cell.cell.place,
                    quantile=quantile,
                    base_s=base.quantiles_s[quantile],
                    ratio=ratio(before, after),
                )


def _asked(operation: Operation) -> str:
    return operation.asked or operation.name


def _without(operation: Operation) -> str | None:
    """Return how the probe is asked for the same without load; None for what is under none."""
    if operation.beside_traffic:
        return _asked(operation)
    name, _, load = _asked(operation).partition(":")
    return f"{LOADED}:0" if name == LOADED and load and float(load) > 0 else None


def _comparable(base: CellEstimate, cell: CellEstimate, fewest: int) -> bool:
    """Whether a quantile that takes so many values comes out alike on both sides where nothing differs."""
    fewer, more = sorted(statistics.median(point.values for point in one.launches) for one in (base, cell))
    return fewest == 1 or more <= AS_MANY * fewer or fewer >= AMPLE * fewest


def _values(cell: CellEstimate, quantile: str, fewest: int) -> list[float]:
    """Return a quantile of every launch; nothing where one has too few values."""
    if any(point.values < fewest or quantile not in point.quantiles_s for point in cell.launches):
        return []
    return [point.quantiles_s[quantile] for point in cell.launches]
