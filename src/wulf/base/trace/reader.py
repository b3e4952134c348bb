"""Read a trace: every number that leads to another place of the file is checked before it is used."""

from __future__ import annotations

import builtins
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import TraceError
from wulf.base.text import count
from wulf.base.trace.layout import (
    COMMUNICATOR,
    CONTAINER,
    CONTAINER_MAGIC,
    HEADER,
    HEADER_BYTES,
    MOST_NS,
    OVERLAP_PART,
    PART,
    RECORD,
    SLOT_BYTES,
    STREAM_MAGIC,
    THREADS,
    THREADS_OFFSET,
    VERSION,
    Flag,
    Kind,
    State,
    Unsound,
)

_LENGTH_BYTES = 8
#: So much of a stream is in memory while its checksum is made.
_AT_ONCE_BYTES = 16 << 20


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A record with what belongs to it; times are whole also where 32 bits did not hold them [ns]."""

    kind: Kind
    flags: Flag
    comm: int
    peer: int
    tag: int
    request: int
    bytes: int
    compute_ns: int
    call_ns: int
    payload: builtins.bytes = b""

    def sizes(self) -> NDArray[np.uint64]:
        """Return the payload as numbers of bytes, as the v-variants of collectives have them."""
        return np.frombuffer(self.payload, dtype="<u8", count=len(self.payload) // 8).astype(np.uint64)


class Members(NamedTuple):
    """What a communicator is: members as ranks of the world; whom neighbours hear and tell, as ranks of its own."""

    members: tuple[int, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]


def communicator(payload: bytes, ranks: int, origin: str) -> Members:
    """Return what the payload of a `COMMUNICATOR` says.

    Raises
    ------
    TraceError
        It is shorter than it says, or names ranks that there are not.
    """
    head = np.frombuffer(
        payload[: COMMUNICATOR.itemsize].ljust(COMMUNICATOR.itemsize, b"\0"), dtype=COMMUNICATOR
    )
    counts = [int(head[0][key]) for key in ("members", "sources", "targets")]
    body = payload[COMMUNICATOR.itemsize :]
    if len(payload) < COMMUNICATOR.itemsize or sum(counts) * 4 > len(body):
        raise TraceError(f"{origin}: damaged: a communicator is cut off")
    numbers = np.frombuffer(body[: sum(counts) * 4], dtype="<i4").tolist()
    there = counts[0], counts[0] + counts[1]
    found = Members(
        tuple(numbers[: there[0]]), tuple(numbers[there[0] : there[1]]), tuple(numbers[there[1] :])
    )
    limits = zip(found, (ranks, counts[0], counts[0]), strict=True)
    if not head[0]["inter"] and any(not 0 <= number < most for numbers, most in limits for number in numbers):
        raise TraceError(f"{origin}: damaged: a communicator with ranks that do not exist")
    return found


class ThreadCalls(NamedTuple):
    """What a thread of a rank called."""

    name: str
    calls: int
    #: Of them, at the same time as another thread's, and what these took [ns].
    overlapping: int
    overlapping_ns: int


class ThreadsOfRank(NamedTuple):
    """Threads of a rank that called MPI."""

    #: How many; 0 where they were not counted.
    threads: int
    #: Time in which two or more were within MPI [ns].
    overlap_ns: int
    #: What calls took that were at the same time as others, of all threads together [ns].
    overlapping_ns: int
    #: The first of them.
    of: tuple[ThreadCalls, ...]

    def is_little(self, run_ns: int) -> bool:
        """Whether calls at the same time took so little that they are replayed one after the other."""
        return self.threads > 0 and self.overlapping_ns <= run_ns // OVERLAP_PART


class Stream:
    """What one rank left.

    Attributes
    ----------
    rank, ranks
        Its number, and how many there are.
    state, lost, run_ns, passed
        How far it came, calls that are missing, its run time [ns] (0 where it did not finish), calls without a record.
    unsound
        What a replay cannot follow.
    threads
        Those that called MPI.
    slots
        All valid slots as `RECORD`, payloads among them; memory-mapped, read only.
    """

    def __init__(self, data: memoryview, origin: str) -> None:
        if len(data) < HEADER_BYTES:
            raise TraceError(f"{origin}: cut off in its header")
        header = np.frombuffer(data, dtype=HEADER, count=1)[0]
        if bytes(data[:8]) != STREAM_MAGIC:
            raise TraceError(f"{origin}: not a stream of a trace")
        found = (int(header["version"]), int(header["header_bytes"]), int(header["slot_bytes"]))
        if found != (VERSION, HEADER_BYTES, SLOT_BYTES):
            raise TraceError(
                f"{origin}: of version {found[0]}; this program reads version {VERSION}: trace the program again"
            )
        there = (len(data) - HEADER_BYTES) // SLOT_BYTES
        announced = int(header["slots"])
        if announced > there:
            raise TraceError(f"{origin}: cut off: {there} of {count(announced, 'record')}")
        self.origin = origin
        self.rank, self.ranks = int(header["rank"]), int(header["ranks"])
        self.state = _state(int(header["state"]), origin)
        self.lost, self.run_ns, self.passed = (int(header[key]) for key in ("lost", "run_ns", "passed"))
        if self.run_ns > MOST_NS:
            raise TraceError(f"{origin}: damaged: a run of {self.run_ns * 1e-9:.3g} s")
        bits = int(header["unsound"])
        self.unsound = frozenset(one for one in Unsound if bits >> one & 1)
        self.host, self.library, self.program = (
            bytes(header[key]).decode(errors="replace") for key in ("host", "library", "program")
        )
        self._header = header
        self._threads = np.frombuffer(data, dtype=THREADS, count=1, offset=THREADS_OFFSET)[0]
        self.threads = _threads(self._threads)
        self._data = data[HEADER_BYTES : HEADER_BYTES + announced * SLOT_BYTES]
        self.slots: NDArray[np.void] = np.frombuffer(self._data, dtype=RECORD)

    def verify(self) -> None:
        """Compare the checksums of header and records; of a program that did not finish there are none.

        Raises
        ------
        TraceError
            They are not those that were written.
        """
        told = int(self._header["checksum"]), int(self._header["header_checksum"])
        if told != ((0, 0) if self.state is State.RUNNING else self._checksums()):
            raise TraceError(f"{self.origin}: damaged: its checksum differs; copy or trace it again")
        bare = self._threads.copy()
        bare["checksum"] = 0
        if bare["threads"] and int(self._threads["checksum"]) != google_crc32c.value(bare.tobytes()):
            raise TraceError(
                f"{self.origin}: damaged: the checksum of its threads differs; copy or trace it again"
            )

    def _checksums(self) -> tuple[int, int]:
        """Return those of the records and of the header."""
        of_records = 0
        for begin in range(0, len(self._data), _AT_ONCE_BYTES):
            of_records = google_crc32c.extend(of_records, bytes(self._data[begin : begin + _AT_ONCE_BYTES]))
        bare = self._header.copy()
        bare["header_checksum"] = 0
        return of_records, google_crc32c.value(bare.tobytes())

    def starts(self) -> NDArray[np.intp]:
        """Return the slots at which records begin: all but those of payloads.

        Raises
        ------
        TraceError
            A payload is longer than what follows.
        """
        is_start = np.ones(len(self.slots), dtype=bool)
        flagged = np.flatnonzero(self.slots["flags"] & Flag.PAYLOAD)
        end = 0
        for start in flagged.tolist():
            if start < end:
                continue  # within a payload
            end = start + 1 + self._payload_slots(start)
            is_start[start + 1 : end] = False
        return np.flatnonzero(is_start)

    def payload(self, start: int) -> bytes:
        """Return what belongs to the record at a slot."""
        if not int(self.slots["flags"][start]) & Flag.PAYLOAD:
            return b""
        self._payload_slots(start)
        begin = (start + 1) * SLOT_BYTES
        length = int.from_bytes(self._data[begin : begin + _LENGTH_BYTES], "little")
        return bytes(self._data[begin + _LENGTH_BYTES : begin + _LENGTH_BYTES + length])

    def records(self) -> Iterator[Entry]:
        """Give the records in order; those that carry times of the next one are taken into it.

        Raises
        ------
        TraceError
            A record is of no known kind, or cut off.
        """
        longer: tuple[int, int] | None = None
        for start in self.starts().tolist():
            kind, flags, comm, peer, tag, request, count, compute_ns, call_ns = self.slots[start].item()
            payload = self.payload(start)
            if kind == Kind.TIME:
                if len(payload) != 8:
                    raise TraceError(f"{self.origin}: record {start}: times without a duration")
                longer = (count, int.from_bytes(payload, "little"))
                continue
            if longer is not None:
                (compute_ns, call_ns), longer = longer, None
            yield Entry(
                kind=self._kind(kind, start),
                flags=Flag(flags),
                comm=comm,
                peer=peer,
                tag=tag,
                request=request,
                bytes=count,
                compute_ns=compute_ns,
                call_ns=call_ns,
                payload=payload,
            )

    def _kind(self, number: int, start: int) -> Kind:
        try:
            return Kind(number)
        except ValueError:
            raise TraceError(f"{self.origin}: record {start} is of kind {number}, which is none") from None

    def _payload_slots(self, start: int) -> int:
        begin = (start + 1) * SLOT_BYTES
        there = len(self._data) - begin - _LENGTH_BYTES
        length = int.from_bytes(self._data[begin : begin + _LENGTH_BYTES], "little") if there >= 0 else 0
        if there < 0 or length > there:
            raise TraceError(f"{self.origin}: record {start}: what belongs to it is cut off")
        return -(-(_LENGTH_BYTES + length) // SLOT_BYTES)


class Trace:
    """A trace as `read` gives it.

    Attributes
    ----------
    note
        What was run, as the one who packed it wrote it.
    streams
        Of each rank, in order; of one that left none an empty stream.
    """

    def __init__(self, path: Path, note: dict[str, Any], streams: list[Stream]) -> None:
        self.path = path
        self.note = note
        self.streams = streams

    @property
    def ranks(self) -> int:
        """How many ranks the program had."""
        return len(self.streams)

    @property
    def unsound(self) -> frozenset[Unsound]:
        """What a replay of any rank cannot follow."""
        return frozenset().union(*(stream.unsound for stream in self.streams))


def read(path: Path) -> Trace:
    """Open a trace; its records stay in the file until they are used.

    Raises
    ------
    TraceError
        It cannot be read, or is none; names the file and the rank.
    """
    data = _mapped(path)
    if b"OTF2" in bytes(data[:8]):
        raise TraceError(
            f"{path}: an OTF2 archive: `wulf program trace import {path} --from otf2 -o FILE` makes a trace of it"
        )
    if len(data) < CONTAINER.itemsize or bytes(data[:8]) != CONTAINER_MAGIC:
        raise TraceError(f"{path}: not a trace: `wulf program trace -o FILE -- COMMAND` writes one")
    head = np.frombuffer(data, dtype=CONTAINER, count=1)[0]
    if int(head["version"]) != VERSION:
        raise TraceError(f"{path}: of version {int(head['version'])}; this program reads version {VERSION}")
    ranks = int(head["ranks"])
    if ranks == 0 or ranks > (len(data) - CONTAINER.itemsize) // PART.itemsize:
        raise TraceError(f"{path}: cut off in the list of its ranks")
    parts = np.frombuffer(data, dtype=PART, count=ranks, offset=CONTAINER.itemsize)
    note = _note(_part(data, int(head["note_offset"]), int(head["note_bytes"]), f"{path}: its note"), path)
    streams = []
    for rank, part in enumerate(parts):
        origin = f"{path}: rank {rank}"
        own = _part(data, int(part["offset"]), int(part["bytes"]), origin)
        stream = Stream(own, origin) if len(own) else Stream(_nothing(rank, ranks), origin)
        if (stream.rank, stream.ranks) != (rank, ranks):
            raise TraceError(f"{origin}: the stream is that of rank {stream.rank} of {stream.ranks}")
        streams.append(stream)
    return Trace(path, note, streams)


def read_verified(path: Path) -> Trace:
    """Open a trace whose checksums are right; raises as `read` and `Stream.verify`."""
    found = read(path)
    for stream in found.streams:
        stream.verify()
    return found


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from None


def _part(data: memoryview, offset: int, length: int, what: str) -> memoryview:
    if offset > len(data) or length > len(data) - offset:
        raise TraceError(f"{what}: cut off")
    return data[offset : offset + length]


def _note(text: memoryview, path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if len(text) else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: its note is damaged: {error}") from None


def _nothing(rank: int, ranks: int) -> memoryview:
    header = np.zeros(1, dtype=HEADER)
    header["magic"], header["version"] = STREAM_MAGIC, VERSION
    header["header_bytes"], header["slot_bytes"] = HEADER_BYTES, SLOT_BYTES
    header["rank"], header["ranks"] = rank, ranks
    return memoryview(header.tobytes().ljust(HEADER_BYTES, b"\0"))


def _threads(said: np.void) -> ThreadsOfRank:
    count = int(said["threads"])
    return ThreadsOfRank(
        count,
        int(said["overlap_ns"]),
        int(said["overlapping_ns"]),
        tuple(
            ThreadCalls(
                bytes(one["name"]).decode(errors="replace"),
                int(one["calls"]),
                int(one["overlapping"]),
                int(one["overlapping_ns"]),
            )
            for one in said["of"][:count]
        ),
    )


def _state(number: int, origin: str) -> State:
    try:
        return State(number)
    except ValueError:
        raise TraceError(f"{origin}: its state is {number}, which is none") from None
