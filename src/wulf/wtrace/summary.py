"""Sum up a trace.  Reads nothing but the trace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.records import SCHEMA_VERSION
from wulf.records.traced import TracedCall, TracedPair, TracedRank, TracedSize, TraceSummary
from wulf.wtrace.layout import COMMUNICATOR, SELF, WORLD, Kind, Unsound
from wulf.wtrace.reader import Stream, Trace

UNSOUND: dict[Unsound, str] = {
    Unsound.THREADS: "threads call MPI at the same time",
    Unsound.ONE_SIDED: "memory of other ranks is used",
    Unsound.PROCESSES: "processes are started or joined",
    Unsound.INTER: "two groups talk with each other",
    Unsound.FILES: "files are read or written through MPI",
    Unsound.CANCELLED: "requests are cancelled",
    Unsound.PASSED: "calls that the tracer does not know move data",
}
_SENDS = (Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV)
_INITS = (Kind.SEND_INIT, Kind.SSEND_INIT, Kind.BSEND_INIT)
#: What is neither a call nor counted as one.
_NO_CALL = (Kind.COMMUNICATOR, Kind.TIME, Kind.RECV_PART)
_NAMED = frozenset(int(kind) for kind in Kind if kind is not Kind.OTHER)
_KINDS = 256


def summary(trace: Trace) -> TraceSummary:
    """Return what a trace says of its program.

    Raises
    ------
    TraceError
        A stream is damaged.
    """
    total = _Sum()
    ranks = [total.take(stream) for stream in trace.streams]
    return TraceSummary(
        schema_version=SCHEMA_VERSION,
        trace=str(trace.path),
        command=command_of(trace),
        library=next((stream.library for stream in trace.streams if stream.library), ""),
        unsound=[UNSOUND[one] for one in sorted(trace.unsound)],
        records=sum(len(stream.slots) for stream in trace.streams),
        file_bytes=trace.path.stat().st_size,
        ranks=ranks,
        calls=total.calls(),
        sizes=total.sizes(),
        pairs=total.pairs(),
    )


def command_of(trace: Trace) -> str:
    """Return what was run, as its note says; else as a rank calls itself."""
    said = trace.note.get("command", "")
    text = said if isinstance(said, str) else " ".join(map(str, said))
    return text or next((stream.program for stream in trace.streams if stream.program), "")


class _Messages(msgspec.Struct):
    """Messages of one rank: where to, and how large."""

    peers: NDArray[np.int64]
    bytes: NDArray[np.int64]


class _Sum:
    """Sums over the ranks that it has taken in."""

    def __init__(self) -> None:
        self._count = np.zeros(_KINDS, dtype=np.int64)
        self._ns = np.zeros(_KINDS, dtype=np.int64)
        self._bytes = np.zeros(_KINDS, dtype=np.int64)
        self._others: Counter[str] = Counter()
        self._others_ns: Counter[str] = Counter()
        self._sizes: Counter[int] = Counter()
        self._size_bytes: Counter[int] = Counter()
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}

    def take(self, stream: Stream) -> TracedRank:
        """Add a rank; return what is to be said of it alone."""
        starts = stream.starts()
        records = stream.slots[starts]
        kinds = records["kind"]
        compute_ns, call_ns = _times(stream, starts, records)
        is_call = ~np.isin(kinds, _NO_CALL)
        self._count += np.bincount(kinds[is_call], minlength=_KINDS)
        self._ns += np.bincount(kinds, weights=call_ns, minlength=_KINDS).astype(np.int64)
        self._bytes += np.bincount(kinds, weights=records["bytes"], minlength=_KINDS).astype(np.int64)
        self._take_others(stream, starts, kinds, call_ns)
        for messages in _messages(stream, starts, records):
            self._take_messages(stream.rank, messages)
        return TracedRank(
            rank=stream.rank,
            host=stream.host,
            state=stream.state.name.lower(),
            run_s=stream.run_ns * 1e-9 if stream.run_ns else None,
            mpi_s=float(call_ns.sum()) * 1e-9,
            compute_s=float(compute_ns.sum()) * 1e-9,
            calls=int(is_call.sum()),
            lost=stream.lost,
        )

    def calls(self) -> list[TracedCall]:
        """Return the kinds of calls, those with most time first."""
        known = [
            TracedCall(
                call=Kind(number).name.lower(),
                count=int(self._count[number]),
                seconds=float(self._ns[number]) * 1e-9,
                bytes=int(self._bytes[number]),
            )
            for number in np.flatnonzero(self._count).tolist()
            if number in _NAMED
        ]
        others = [
            TracedCall(call=name, count=count, seconds=self._others_ns[name] * 1e-9, bytes=0)
            for name, count in self._others.items()
        ]
        return sorted([*known, *others], key=lambda one: -one.seconds)

    def sizes(self) -> list[TracedSize]:
        """Return the messages by their size."""
        return [
            TracedSize(below_bytes=1 << power, count=count, bytes=self._size_bytes[power])
            for power, count in sorted(self._sizes.items())
        ]

    def pairs(self) -> list[TracedPair]:
        """Return who sends whom how much."""
        return [
            TracedPair(source=source, destination=destination, count=count, bytes=size)
            for (source, destination), (count, size) in sorted(self._pairs.items())
        ]

    def _take_others(
        self, stream: Stream, starts: NDArray[np.intp], kinds: NDArray[np.uint8], call_ns: NDArray[np.int64]
    ) -> None:
        for place in np.flatnonzero(kinds == Kind.OTHER).tolist():
            name = stream.payload(int(starts[place])).decode(errors="replace") or "other"
            self._others[name] += 1
            self._others_ns[name] += int(call_ns[place])

    def _take_messages(self, source: int, messages: _Messages) -> None:
        powers = np.ceil(np.log2(messages.bytes + 1.0)).astype(np.int64)
        for power in np.unique(powers).tolist():
            of_size = messages.bytes[powers == power]
            self._sizes[power] += len(of_size)
            self._size_bytes[power] += int(of_size.sum())
        for peer in np.unique(messages.peers).tolist():
            of_pair = messages.bytes[messages.peers == peer]
            count, size = self._pairs.get((source, peer), (0, 0))
            self._pairs[source, peer] = (count + len(of_pair), size + int(of_pair.sum()))


def _times(
    stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times of all records [ns], those that 32 bits do not hold with the record that they belong to."""
    compute_ns = records["compute_ns"].astype(np.int64)
    call_ns = records["call_ns"].astype(np.int64)
    for place in np.flatnonzero(records["kind"] == Kind.TIME).tolist():
        if place + 1 < len(records):
            compute_ns[place + 1] = int(records["bytes"][place])
            call_ns[place + 1] = int.from_bytes(stream.payload(int(starts[place])), "little")
    return compute_ns, call_ns


def _messages(stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]) -> Iterator[_Messages]:
    """Give the messages that a rank sends, to ranks of MPI_COMM_WORLD."""
    members = _members(stream, starts, records)
    chosen = records[np.isin(records["kind"], _SENDS) & (records["peer"] >= 0)]
    for number in np.unique(chosen["comm"]).tolist():
        of_one = chosen[chosen["comm"] == number]
        yield _to_world(members[number], of_one["peer"], of_one["bytes"])
    yield from _persistent(records, members)


def _persistent(records: NDArray[np.void], members: dict[int, NDArray[np.int64]]) -> Iterator[_Messages]:
    begun = records[np.isin(records["kind"], (*_INITS, Kind.RECV_INIT, Kind.START))]
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
        yield _to_world(members[number], peers, sizes)


def _to_world(members: NDArray[np.int64], peers: NDArray[np.int64], sizes: NDArray[np.int64]) -> _Messages:
    is_member = peers < len(members)
    return _Messages(peers=members[peers[is_member]], bytes=sizes[is_member].astype(np.int64))


def _members(
    stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]
) -> dict[int, NDArray[np.int64]]:
    """Return the communicators' members, as ranks of MPI_COMM_WORLD; none of one that was not described."""
    found: dict[int, NDArray[np.int64]] = defaultdict(lambda: np.zeros(0, dtype=np.int64))
    found[WORLD] = np.arange(stream.ranks)
    found[SELF] = np.array([stream.rank])
    for place in np.flatnonzero(records["kind"] == Kind.COMMUNICATOR).tolist():
        payload = stream.payload(int(starts[place]))
        if len(payload) < COMMUNICATOR.itemsize:
            continue
        count = int(np.frombuffer(payload, dtype=COMMUNICATOR, count=1)[0]["members"])
        numbers = np.frombuffer(payload, dtype="<i4", offset=COMMUNICATOR.itemsize)
        found[int(records["comm"][place])] = numbers[:count].astype(np.int64)
    return found
