"""What a rank gives to a collective, of what OTF2 says that it sent and received.  Pure.

Score-P counts what goes to each rank and comes from each, the own one included where the call is not in place (its
``src/adapters/mpi/scorep_mpi_coll_bytes``, releases 4 to 9); OTF2's own documentation says no more than "size".
EZTrace has the call's arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from wulf.base.trace.layout import Kind

#: By OTF2's name of a collective.
KINDS = (
    *(Kind.BARRIER, Kind.BCAST, Kind.GATHER, Kind.GATHERV, Kind.SCATTER, Kind.SCATTERV, Kind.ALLGATHER),
    *(Kind.ALLGATHERV, Kind.ALLTOALL, Kind.ALLTOALLV, Kind.ALLTOALLW, Kind.ALLREDUCE, Kind.REDUCE),
    *(Kind.REDUCE_SCATTER, Kind.SCAN, Kind.EXSCAN, Kind.REDUCE_SCATTER_BLOCK),
)
ROOTED = (Kind.BCAST, Kind.GATHER, Kind.GATHERV, Kind.SCATTER, Kind.SCATTERV, Kind.REDUCE)
#: Of these each rank's share is known from that rank alone.
SIZED = (Kind.ALLGATHERV, Kind.SCATTERV, Kind.REDUCE_SCATTER)
#: Of these only the sum over all ranks is known.
SUMMED = (Kind.ALLTOALLV, Kind.ALLTOALLW)


class Part(NamedTuple):
    """A rank's part in a collective, as OTF2 has it."""

    kind: Kind
    #: Own rank, and how many there are.
    rank: int
    ranks: int
    sent: int
    received: int


def own_bytes(part: Part, by_arguments: bool) -> int:
    """Return what a record of ours has as the own part: of `SUMMED` the sum of what goes to all [B]."""
    kind, sent, received = part.kind, part.sent, part.received
    if kind in SUMMED or kind is Kind.BARRIER:
        size = sent
    elif by_arguments:
        size = received if kind in (Kind.SCATTER, Kind.SCATTERV, Kind.REDUCE_SCATTER) else sent
    elif kind in (Kind.GATHER, Kind.GATHERV, Kind.REDUCE):
        size = sent or (0 if kind is Kind.GATHERV else _of_others(part, received))
    elif kind in (Kind.BCAST, Kind.SCATTER, Kind.SCATTERV):
        size = received or (0 if kind is Kind.SCATTERV else _of_others(part, sent))
    elif kind in (Kind.SCAN, Kind.EXSCAN):
        size = _scanned(part)
    else:
        size = _block(part, received if kind is Kind.REDUCE_SCATTER else sent)
    return size


def _of_others(part: Part, total: int) -> int:
    """Return the share of each where the own one is in place."""
    return total // max(part.ranks - 1, 1)


def _block(part: Part, total: int) -> int:
    """Return the share of each rank: of all, or, where it is in place, of all but one.

    That it was in place is not said: it is taken so where only then all shares are whole words.
    """
    of_all, of_others = divmod(total, part.ranks), divmod(total, max(part.ranks - 1, 1))
    if of_all[1] or (of_all[0] % 4 and not of_others[1] and not of_others[0] % 4):
        return of_others[0]
    return of_all[0]


def _scanned(part: Part) -> int:
    """Return what goes to every rank from the own one on, and comes from every one before."""
    each, rest = divmod(part.received, part.rank + 1)
    if part.kind is Kind.SCAN and not rest and part.sent == each * (part.ranks - part.rank):
        return each
    return _of_others(part, part.sent + part.received)
