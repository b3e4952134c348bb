"""What ranks do, taken down as the records that a tracer would have written."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.trace.layout import NOBODY, WORLD, Flag, Kind, Mark
from wulf.base.trace.writer import StreamWriter

#: What the streams say that wrote them.
LIBRARY = "wulf pattern"


class Rank:
    """One rank: its stream, and its own time if the network had no delay."""

    def __init__(self, rank: int, ranks: int, title: str) -> None:
        self.number = rank
        self.stream = StreamWriter(rank, ranks, library=LIBRARY, program=title)
        self.now_ns = 0
        self.records = 0
        self.persistent = 0
        self._compute_ns = 0
        self._communicators = 1

    def compute(self, time_ns: int) -> None:
        self._compute_ns += time_ns
        self.now_ns += time_ns

    def add(  # the fields of a record
        self,
        kind: Kind,
        *,
        flags: int = 0,
        comm: int = 0,
        peer: int = NOBODY,
        tag: int = 0,
        request: int = 0,
        size: int = 0,
        payload: bytes = b"",
    ) -> None:
        self.stream.add(
            kind,
            flags=flags,
            comm=comm,
            peer=peer,
            tag=tag,
            request=request,
            bytes=size,
            compute_ns=self._compute_ns,
            payload=payload,
        )
        self._compute_ns = 0
        self.records += 1

    def mark(
        self, mark: Mark, program: int = 0, *, comm: int = 0, peer: int = NOBODY, payload: bytes = b""
    ) -> None:
        """Say what the next records belong to."""
        self.add(Kind.PHASE, comm=comm, peer=peer, tag=program, request=mark, payload=payload)

    def communicator(
        self, members: Sequence[int], sources: Sequence[int] = (), targets: Sequence[int] = ()
    ) -> int:
        """Make a communicator, and return its number."""
        self._communicators += 1
        rank = members.index(self.number)
        self.stream.communicator(self._communicators, members, rank=rank, sources=sources, targets=targets)
        return self._communicators

    def wait(self, requests: Sequence[int], comm: int, peers: Sequence[int], tag: int) -> None:
        """Wait for all of them in one call."""
        for place, (request, peer) in enumerate(zip(requests, peers, strict=True)):
            flags = 0 if len(requests) == 1 else Flag.FIRST if place == 0 else Flag.NEXT
            self.add(Kind.WAIT, flags=flags, comm=comm, peer=peer, tag=tag, request=request)

    def finish(self) -> bytes:
        # How long it takes is what it is for: nobody has run it.
        return self.stream.finish(run_ns=0)


class Group:
    """The ranks of a program, or some of them, with their communicator."""

    def __init__(self, ranks: Sequence[Rank], everybody: int) -> None:
        self.ranks = ranks
        members = [rank.number for rank in ranks]
        is_world = members == list(range(everybody))
        self.comm = [WORLD if is_world else rank.communicator(members) for rank in ranks]

    def __len__(self) -> int:
        return len(self.ranks)
