"""Write a trace: streams of ranks that were not recorded, and the file that holds all streams."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import google_crc32c
import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import NoStreamError, TraceError
from wulf.base.trace.layout import (
    COMMUNICATOR,
    CONTAINER,
    CONTAINER_MAGIC,
    HEADER,
    HEADER_BYTES,
    NOBODY,
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

#: Streams begin at pages, so that each can be mapped by itself.
_PAGE = 4096
_LONGEST = 2**32 - 1
_RECORD = struct.Struct("<BBHiiIQII")  # as RECORD
#: What a rank may leave: its stream, and the last window of one that was killed. A rank has six digits.
FILE_OF_RANK = re.compile(r"rank\.[0-9]{1,6}(\.tail)?")
_STREAM_NAME = re.compile(r"rank\.([0-9]{1,6})")


class StreamWriter:
    """One rank's stream, made in memory.

    Parameters
    ----------
    rank, ranks
        Its number, and how many there are.
    """

    def __init__(
        self, rank: int, ranks: int, *, host: str = "", library: str = "", program: str = ""
    ) -> None:
        self._rank, self._ranks = rank, ranks
        self._said = {"host": host, "library": library, "program": program}
        self._slots = bytearray()
        self._unsound = 0
        self._threads = b""

    def mark(self, what: Unsound) -> None:
        """Say that there is something that a replay cannot follow."""
        self._unsound |= 1 << what

    def add(  # noqa: PLR0913  # the fields of a record
        self,
        kind: Kind,
        *,
        flags: int = 0,
        comm: int = 0,
        peer: int = NOBODY,
        tag: int = 0,
        request: int = 0,
        bytes: int = 0,
        compute_ns: int = 0,
        call_ns: int = 0,
        payload: bytes = b"",
    ) -> None:
        """Add a record; `payload` sets its flag by itself, and times of any length are kept [ns]."""
        if max(compute_ns, call_ns) > _LONGEST:
            self._append((Kind.TIME, 0, 0, 0, 0, 0, compute_ns, 0, 0), call_ns.to_bytes(8, "little"))
            compute_ns = call_ns = 0
        self._append((kind, flags, comm, peer, tag, request, bytes, compute_ns, call_ns), payload)

    def extend(self, records: NDArray[np.void]) -> None:
        """Add records without payloads, an array of `RECORD`."""
        if np.any(records["flags"] & Flag.PAYLOAD):
            raise ValueError("records with payloads are added one by one")
        self._slots += records.astype(RECORD, copy=False).tobytes()

    def communicator(
        self,
        number: int,
        members: Sequence[int],
        *,
        rank: int,
        sources: Sequence[int] = (),
        targets: Sequence[int] = (),
    ) -> None:
        """Add what a communicator is.

        Parameters
        ----------
        number
            Its own, from 2 on.
        members
            Ranks of the world, in order.
        rank
            The own one among them.
        sources, targets
            Neighbours, as ranks of the communicator.
        """
        head = np.array((len(members), len(sources), len(targets), 0, rank), dtype=COMMUNICATOR)
        numbers = np.array([*members, *sources, *targets], dtype="<i4")
        self.add(Kind.COMMUNICATOR, comm=number, payload=head.tobytes() + numbers.tobytes())

    def threads(self, calls: Sequence[tuple[str, int, int, int]], overlap_ns: int) -> None:
        """Say which threads called MPI.

        Parameters
        ----------
        calls
            Of each thread its name, its calls, those of them at the same time as others, and what these took [ns].
        overlap_ns
            Time in which two or more were within MPI [ns].
        """
        said = np.zeros(1, dtype=THREADS)
        said["threads"], said["overlap_ns"] = len(calls), overlap_ns
        said["overlapping_ns"] = sum(took for *_, took in calls)
        for place, (name, *counts) in enumerate(calls[: said["of"].shape[1]]):
            said["of"][0, place] = (name.encode()[:15], *counts)
        said["checksum"] = google_crc32c.value(said.tobytes())
        self._threads = said.tobytes()

    def finish(self, run_ns: int) -> bytes:
        """Return the stream of a program that finished.

        Parameters
        ----------
        run_ns
            Between the return of MPI_Init and the call of MPI_Finalize [ns].
        """
        header = np.zeros(1, dtype=HEADER)
        header["magic"], header["version"] = STREAM_MAGIC, VERSION
        header["header_bytes"], header["slot_bytes"] = HEADER_BYTES, SLOT_BYTES
        header["rank"], header["ranks"], header["state"] = self._rank, self._ranks, State.FINISHED
        header["slots"], header["run_ns"] = len(self._slots) // SLOT_BYTES, run_ns
        header["unsound"] = self._unsound
        header["checksum"] = google_crc32c.value(bytes(self._slots))
        for key, text in self._said.items():
            header[key] = text.encode()[: HEADER[key].itemsize - 1]
        header["header_checksum"] = google_crc32c.value(header.tobytes())
        whole = (header.tobytes().ljust(THREADS_OFFSET, b"\0") + self._threads).ljust(HEADER_BYTES, b"\0")
        return whole + bytes(self._slots)

    def _append(self, fields: tuple[int, ...], payload: bytes) -> None:
        kind, flags, *rest = fields
        self._slots += _RECORD.pack(kind, flags | Flag.PAYLOAD if payload else flags, *rest)
        if payload:
            whole = len(payload).to_bytes(8, "little") + payload
            self._slots += whole.ljust(-(-len(whole) // SLOT_BYTES) * SLOT_BYTES, b"\0")


def write_container(path: Path, note: dict[str, Any], streams: Sequence[bytes]) -> None:
    """Write a trace of streams in memory, whole or not at all.

    Raises
    ------
    TraceError
        The file cannot be written.
    """

    def fill(file: BinaryIO, rank: int) -> None:
        file.write(streams[rank])

    _write(path, note, [len(stream) for stream in streams], fill)


def pack(path: Path, note: dict[str, Any], directory: Path) -> None:
    """Write a trace of the files ``rank.NNNNNN`` of a directory; a rank without one has none in the trace.

    Of a rank that was killed the last records are in ``rank.NNNNNN.tail``.

    Raises
    ------
    NoStreamError
        There are none.
    TraceError
        The file cannot be written.
    """
    files = {int(found[1]): one for one in directory.iterdir() if (found := _STREAM_NAME.fullmatch(one.name))}
    if not files:
        raise NoStreamError("no rank left a stream")
    try:
        ranks = max(max(files) + 1, *(_announced(one) for one in files.values()))
        parts = {rank: _parts(file) for rank, file in files.items()}
    except OSError as error:
        raise TraceError(f"cannot read {error.filename}: {error.strerror}") from None
    sizes = [sum(part.bytes for part in parts.get(rank, [])) for rank in range(ranks)]

    def fill(file: BinaryIO, rank: int) -> None:
        for part in parts.get(rank, []):
            with part.path.open("rb") as source:
                _copy(source, file, part.bytes)

    _write(path, note, sizes, fill)


def written(directory: Path) -> dict[str, bytes]:
    """Return the headers of all files of ranks, by name: they differ while a rank writes."""
    found = {}
    for file in directory.iterdir():
        # A rank that has ended takes its last window away.
        with suppress(FileNotFoundError), file.open("rb") as opened:
            found[file.name] = opened.read(HEADER.itemsize) if _STREAM_NAME.fullmatch(file.name) else b""
    return found


class _FilePart(msgspec.Struct, frozen=True):
    """The first bytes of a file."""

    path: Path
    bytes: int


def _parts(file: Path) -> list[_FilePart]:
    """Return what a rank's stream is in: of one that was killed its last window, too, which is beside it."""
    size, tail = file.stat().st_size, file.with_name(f"{file.name}.tail")
    header = _header(file)
    if header is None or not tail.is_file():
        return [_FilePart(file, size)]
    slots, window = int(header["slots"]), max(tail.stat().st_size // SLOT_BYTES, 1)
    if (size - HEADER_BYTES) // SLOT_BYTES >= slots:
        return [_FilePart(file, HEADER_BYTES + slots * SLOT_BYTES)]
    first = (slots - 1) // window * window
    return [
        _FilePart(file, HEADER_BYTES + first * SLOT_BYTES),
        _FilePart(tail, (slots - first) * SLOT_BYTES),
    ]


def _copy(source: BinaryIO, target: BinaryIO, count: int) -> None:
    while count > 0 and (part := source.read(min(count, 1 << 20))):
        target.write(part)
        count -= len(part)


def _header(stream: Path) -> np.void | None:
    """Return the header of a stream; None where the file is too short to have one."""
    with stream.open("rb") as file:
        head = file.read(HEADER.itemsize)
    return np.frombuffer(head, dtype=HEADER)[0] if len(head) == HEADER.itemsize else None


def _announced(stream: Path) -> int:
    """Return how many ranks a stream says that there are; 0 where it is too short to say."""
    header = _header(stream)
    return 0 if header is None else int(header["ranks"])


def _write(
    path: Path, note: dict[str, Any], sizes: Sequence[int], fill: Callable[[BinaryIO, int], None]
) -> None:
    text = msgspec.json.encode(note)
    head = np.zeros(1, dtype=CONTAINER)
    head["magic"], head["version"], head["ranks"] = CONTAINER_MAGIC, VERSION, len(sizes)
    parts = np.zeros(len(sizes), dtype=PART)
    place = CONTAINER.itemsize + parts.nbytes
    head["note_offset"], head["note_bytes"] = place, len(text)
    place += len(text)
    for rank, size in enumerate(sizes):
        place = -(-place // _PAGE) * _PAGE
        parts[rank] = (place, size) if size else (0, 0)
        place += size
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(head.tobytes() + parts.tobytes() + text)
            for rank, part in enumerate(parts):
                if part["bytes"]:
                    file.seek(int(part["offset"]))
                    fill(file, rank)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise TraceError(f"cannot write {path}: {error.strerror}") from None
