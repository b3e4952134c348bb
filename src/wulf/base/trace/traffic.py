"""What a pattern's ranks send to each other, program by program.  Reads nothing but the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wulf.base.trace.layout import Kind, Mark
from wulf.base.trace.messages import INITS, Members, members, sent, to_world
from wulf.base.trace.reader import Stream, Trace, communicator


class Way(NamedTuple):
    """From one rank of MPI_COMM_WORLD to another, in a program."""

    #: Number of the program, from 0 on.
    program: int
    source: int
    destination: int
    #: Of collectives: what is carried for whom, not the messages that a library makes of it.
    is_together: bool


class Load(NamedTuple):
    """What goes that way."""

    messages: int
    bytes: int


_Sums = dict[Way, Load]


def traffic(trace: Trace) -> dict[Way, Load]:
    """Return all that is sent in one pass of a pattern, in the order of the ways.

    Raises
    ------
    TraceError
        A stream is damaged.
    """
    sums: _Sums = {}
    for stream in trace.streams:
        _take(stream, sums)
    return dict(sorted(sums.items()))


def _take(stream: Stream, sums: _Sums) -> None:
    starts = stream.starts()
    records = stream.slots[starts]
    known = members(stream, starts, records)
    programs = _programs(records)
    is_made = np.isin(records["kind"], INITS)
    for program in np.unique(programs[programs > 0]).tolist():
        is_own = programs == program
        way = (program - 1, stream.rank)
        for messages in sent(records[is_own | is_made], known):
            _add(sums, way, messages.peers, messages.bytes)
        _take_puts(sums, way, records[is_own], known)
        _take_neighbours(sums, way, stream, starts[is_own], records[is_own])
        _take_collectives(sums, way, records[is_own], known)


def _programs(records: NDArray[np.void]) -> NDArray[np.int64]:
    """Return whose iteration each record belongs to, from 1 on; 0 for those of none."""
    begins = (records["kind"] == Kind.PHASE) & np.isin(records["request"], (Mark.ITERATION, Mark.END))
    places = np.flatnonzero(begins)
    tags = np.where(records["request"][places] == Mark.END, 0, records["tag"][places]).astype(np.int64)
    return np.concatenate([[0], tags])[np.searchsorted(places, np.arange(len(records)), side="right")]


def _add(
    sums: _Sums,
    way: tuple[int, int],
    peers: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    times: int = 1,
    is_together: bool = False,
) -> None:
    for peer in np.unique(peers).tolist():
        chosen = sizes[peers == peer]
        to = Way(*way, peer, is_together)
        before = sums.get(to, Load(0, 0))
        sums[to] = Load(before.messages + times * len(chosen), before.bytes + times * int(chosen.sum()))


def _take_puts(sums: _Sums, way: tuple[int, int], records: NDArray[np.void], known: Members) -> None:
    puts = records[records["kind"] == Kind.PUT]
    for number in np.unique(puts["comm"]).tolist():
        of_one = puts[puts["comm"] == number]
        messages = to_world(known[number], of_one["peer"], of_one["bytes"])
        _add(sums, way, messages.peers, messages.bytes)


def _take_neighbours(
    sums: _Sums, way: tuple[int, int], stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]
) -> None:
    chosen = np.flatnonzero(records["kind"] == Kind.NEIGHBOR_ALLTOALLV)
    targets = _targets(stream) if len(chosen) else {}
    for place in chosen.tolist():
        sizes = np.frombuffer(stream.payload(int(starts[place])), dtype="<u8").astype(np.int64)
        _add(sums, way, targets[int(records["comm"][place])], sizes)


def _targets(stream: Stream) -> dict[int, NDArray[np.int64]]:
    """Return to whom neighbours on each communicator send, as ranks of MPI_COMM_WORLD."""
    found = {}
    for entry in stream.records():
        if entry.kind is Kind.COMMUNICATOR:
            said = communicator(entry.payload, stream.ranks, stream.origin)
            own = np.array(said.members, dtype=np.int64)
            found[entry.comm] = own[np.array(said.targets, dtype=np.int64)]
    return found


def _take_collectives(sums: _Sums, way: tuple[int, int], records: NDArray[np.void], known: Members) -> None:
    chosen = records[np.isin(records["kind"], (*_TO_ALL, *_TO_ROOT, *_FROM_ROOT))]
    alike = Counter(zip(*(chosen[key].tolist() for key in ("kind", "comm", "peer", "bytes")), strict=True))
    for (kind, comm, root, size), times in alike.items():
        everybody = known[comm]
        peers = everybody[list(_receivers(Kind(kind), everybody, root, way[1]))]
        _add(sums, way, peers, np.full(len(peers), size), times=times, is_together=True)


_TO_ALL = (Kind.ALLTOALL, Kind.ALLGATHER)
_TO_ROOT = (Kind.GATHER, Kind.REDUCE)
_FROM_ROOT = (Kind.BCAST, Kind.SCATTER)


def _receivers(
    kind: Kind, everybody: Sequence[int] | NDArray[np.int64], root: int, own: int
) -> Iterator[int]:
    """Yield the places of those that a rank's part of a collective is for."""
    is_root = int(everybody[root]) == own if kind not in _TO_ALL else False
    for place, rank in enumerate(everybody):
        if int(rank) == own:
            continue
        if kind in _TO_ALL or (kind in _FROM_ROOT and is_root) or (kind in _TO_ROOT and place == root):
            yield place
