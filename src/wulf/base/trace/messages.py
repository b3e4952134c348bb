"""Messages of a trace: who sends whom how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.trace.layout import SELF, WORLD, Kind
from wulf.base.trace.reader import Stream, communicator

SENDS = (Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV)
INITS = (Kind.SEND_INIT, Kind.SSEND_INIT, Kind.BSEND_INIT)
#: Communicator → its members as ranks of MPI_COMM_WORLD.
Members = dict[int, NDArray[np.int64]]


class Messages(msgspec.Struct):
    """Messages of one rank: where to, and how large."""

    peers: NDArray[np.int64]
    bytes: NDArray[np.int64]


def sent(records: NDArray[np.void], members: Members) -> Iterator[Messages]:
    """Give the messages that a rank sends, to ranks of MPI_COMM_WORLD; those between neighbours are not among them."""
    chosen = records[np.isin(records["kind"], SENDS) & (records["peer"] >= 0)]
    for number in np.unique(chosen["comm"]).tolist():
        of_one = chosen[chosen["comm"] == number]
        yield to_world(members[number], of_one["peer"], of_one["bytes"])
    yield from _persistent(records, members)


def _persistent(records: NDArray[np.void], members: Members) -> Iterator[Messages]:
    begun = records[np.isin(records["kind"], (*INITS, Kind.RECV_INIT, Kind.START))]
    made: dict[int, np.void] = {}
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in begun:
        number = int(record["request"])
        if record["kind"] != Kind.START:
            made[number] = record
        elif number in made and made[number]["kind"] != Kind.RECV_INIT and made[number]["peer"] >= 0:
            init = made[number]
            found[int(init["comm"])].append((int(init["peer"]), int(init["bytes"])))
    for number, messages in found.items():
        peers, sizes = np.array(messages, dtype=np.int64).T
        yield to_world(members[number], peers, sizes)


def to_world(members: NDArray[np.int64], peers: NDArray[np.int64], sizes: NDArray[np.int64]) -> Messages:
    """Return messages to ranks of a communicator as those to ranks of MPI_COMM_WORLD."""
    is_member = peers < len(members)
    return Messages(peers=members[peers[is_member]], bytes=sizes[is_member].astype(np.int64))


def members(stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]) -> Members:
    """Return the communicators' members, as ranks of MPI_COMM_WORLD; none of one that was not described."""
    found: dict[int, NDArray[np.int64]] = defaultdict(lambda: np.zeros(0, dtype=np.int64))
    found[WORLD] = np.arange(stream.ranks)
    found[SELF] = np.array([stream.rank])
    for place in np.flatnonzero(records["kind"] == Kind.COMMUNICATOR).tolist():
        said = communicator(stream.payload(int(starts[place])), stream.ranks, stream.origin)
        found[int(records["comm"][place])] = np.array(said.members, dtype=np.int64)
    return found
