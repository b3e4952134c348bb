"""One rank's program, step by step, as a stream."""

from __future__ import annotations

from heapq import heappop, heappush

from wulf.base.trace.imported.numbers import MOST_NS
from wulf.base.trace.layout import NOBODY, Kind
from wulf.base.trace.writer import StreamWriter


class Steps:
    """What a rank does, in its order; computing is added up until the next call."""

    def __init__(self, rank: int, ranks: int, program: str) -> None:
        self._stream = StreamWriter(rank, ranks, program=program)
        self._compute_ns = 0.0
        self._free: list[int] = []
        self._highest = 0

    def compute(self, ns: float) -> None:
        """Compute for so long [ns]."""
        if self._compute_ns + ns > MOST_NS:  # a record holds no more
            self._add(Kind.PHASE, NOBODY, 0, 0)
        self._compute_ns += ns

    def send(self, peer: int, tag: int, size: int) -> None:
        """Send a message of so many bytes, and go on when that is done."""
        self._add(Kind.SEND, peer, tag, size)

    def receive(self, peer: int, tag: int, size: int) -> None:
        """Wait for a message."""
        self._add(Kind.RECV, peer, tag, size)

    def begin_send(self, peer: int, tag: int, size: int) -> int:
        """Begin to send; returns the request."""
        return self._begin(Kind.ISEND, peer, tag, size)

    def begin_receive(self, peer: int, tag: int, size: int) -> int:
        """Begin to receive; returns the request."""
        return self._begin(Kind.IRECV, peer, tag, size)

    def wait(self, request: int, peer: int, tag: int, size: int) -> None:
        """Wait for what was begun; its number may be used again."""
        self._add(Kind.WAIT, peer, tag, size, request)
        heappush(self._free, request)

    def together(self, kind: Kind, size: int, root: int = NOBODY, payload: bytes = b"") -> None:
        """Take part in a collective of all ranks with so many bytes of its own."""
        self._add(kind, root, 0, size, payload=payload)

    def finish(self) -> bytes:
        """Return the stream; how long the program ran is not known."""
        if round(self._compute_ns):
            self._add(Kind.PHASE, NOBODY, 0, 0)
        return self._stream.finish(0)

    def _begin(self, kind: Kind, peer: int, tag: int, size: int) -> int:
        if self._free:
            request = heappop(self._free)
        else:
            self._highest += 1
            request = self._highest
        self._add(kind, peer, tag, size, request)
        return request

    def _add(
        self, kind: Kind, peer: int, tag: int, size: int, request: int = 0, payload: bytes = b""
    ) -> None:
        self._stream.add(
            kind,
            peer=peer,
            tag=tag,
            request=request,
            bytes=size,
            compute_ns=round(self._compute_ns),
            payload=payload,
        )
        self._compute_ns = 0.0
