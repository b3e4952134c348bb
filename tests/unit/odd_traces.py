"""Traces of odd programs: what MPI allows and nobody expects, what a killed program leaves, what no tracer writes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from wulf.base.trace.layout import (
    ANY,
    CONTAINER,
    HEADER,
    HEADER_BYTES,
    NOBODY,
    PART,
    RECORD,
    Flag,
    Kind,
    Mark,
    State,
    Unsound,
)
from wulf.base.trace.writer import StreamWriter, write_container

RUN_NS = 50_000_000
#: What a rank does: (kind, fields of its record), one after the other; or more than that.
Doing = Sequence[tuple[Kind, dict[str, Any]]] | Callable[[StreamWriter], None]
_OF: dict[str, Callable[[Path], Path]] = {}


def cases() -> dict[str, Callable[[Path], Path]]:
    """Return what writes each trace, by the name of the case."""
    return _OF


def of(kind: Kind, **fields: Any) -> tuple[Kind, dict[str, Any]]:
    return kind, fields


def again(times: int, *records: tuple[Kind, dict[str, Any]]) -> list[tuple[Kind, dict[str, Any]]]:
    return [*records] * times


def send(to: int, size: int = 64, kind: Kind = Kind.SEND, **more: Any) -> tuple[Kind, dict[str, Any]]:
    return of(kind, peer=to, bytes=size, compute_ns=20_000, call_ns=5_000, **more)


def receive(source: int, size: int = 64, **more: Any) -> tuple[Kind, dict[str, Any]]:
    return of(Kind.RECV, peer=source, bytes=size, compute_ns=10_000, call_ns=30_000, **more)


def stream(
    rank: int,
    ranks: int,
    doing: Doing,
    *,
    run_ns: int = RUN_NS,
    host: str = "",
    marks: Sequence[Unsound] = (),
) -> bytes:
    made = StreamWriter(rank, ranks, host=host or f"node{rank + 1:02d}")
    for mark in marks:
        made.mark(mark)
    if callable(doing):
        doing(made)
    else:
        for kind, fields in doing:
            made.add(kind, **fields)
    return made.finish(run_ns)


def headed(whole: bytes, **fields: Any) -> bytes:
    """Return a stream whose header says something else, with its checksum."""
    header = np.frombuffer(whole, dtype=HEADER, count=1).copy()
    for key, value in fields.items():
        header[key] = value
    header["header_checksum"] = 0
    if header["state"][0] != State.RUNNING:
        header["header_checksum"] = google_crc32c.value(header.tobytes())
    return header.tobytes() + whole[HEADER.itemsize :]


def killed(whole: bytes, slots: int | None = None) -> bytes:
    """Return what a rank leaves that died after so many records: it never knew how long it ran."""
    there = (len(whole) - HEADER_BYTES) // RECORD.itemsize
    kept = there if slots is None else slots
    return headed(whole, state=State.RUNNING, checksum=0, run_ns=0, slots=kept)


def odd(name: str, *doing: Doing, **more: Any) -> None:
    """Add a case of ranks that do this."""

    def write(path: Path) -> Path:
        streams = [stream(rank, len(doing), one, **more) for rank, one in enumerate(doing)]
        write_container(path, {"command": f"./{name.replace(' ', '-')}"}, streams)
        return path

    _OF[name] = write


def streams(name: str, make: Callable[[], list[bytes]], note: dict[str, Any] | None = None) -> None:
    """Add a case of streams."""

    def write(path: Path) -> Path:
        write_container(path, note or {}, make())
        return path

    _OF[name] = write


def bent(name: str, bend: Callable[[bytes], bytes]) -> None:
    """Add a case of a good file that was changed."""

    def write(path: Path) -> Path:
        write_container(path, {"command": "./good"}, [stream(0, 2, PING), stream(1, 2, PONG)])
        path.write_bytes(bend(path.read_bytes()))
        return path

    _OF[name] = write


PING = again(20, send(1), receive(1))
PONG = again(20, receive(0), send(0))
ALL = again(20, of(Kind.ALLREDUCE, bytes=8, compute_ns=50_000, call_ns=20_000))

# --- little is done, or by few --------------------------------------------------------------------------
odd("no calls", [], [])
odd("no calls and no time", [], [], run_ns=0)
odd("one rank without calls", [])
odd("one rank with collectives", ALL)
odd(
    "one rank that sends to itself",
    again(9, of(Kind.ISEND, peer=0, bytes=8, request=1), receive(0, 8), of(Kind.WAIT, request=1)),
)
odd("one rank that only computes", [of(Kind.PHASE, tag=1, compute_ns=40_000_000)])
odd("of two ranks one does nothing", [of(Kind.BARRIER, comm=1, compute_ns=9)] * 30, [])
odd("times of zero", again(20, of(Kind.SEND, peer=1)), again(20, of(Kind.RECV, peer=0)))
odd(
    "collectives of one rank alone",
    again(20, of(Kind.ALLREDUCE, comm=1, bytes=8)),
    again(20, of(Kind.BARRIER, comm=1)),
)
odd("all ranks of one node", PING, PONG, host="same")

# --- it ends early --------------------------------------------------------------------------------------
odd("a rank ends early", PING, PONG[:21])
odd("a rank ends within a collective", ALL, ALL[:7])
streams("a rank was killed", lambda: [stream(0, 2, PING), killed(stream(1, 2, PONG), 11)])
streams("all ranks aborted", lambda: [killed(stream(0, 2, PING)), killed(stream(1, 2, PONG))])
streams("a rank left nothing", lambda: [stream(0, 2, PING), b""])
streams("no rank left anything", lambda: [b"", b""])
streams("a rank was full", lambda: [stream(0, 2, PING), headed(stream(1, 2, PONG), state=State.FULL, lost=7)])

# --- messages that do not meet --------------------------------------------------------------------------
odd("a receive of nothing", [*PING, receive(1)], PONG)
odd("a small message to nobody", [*PING, send(1)], PONG)
odd("a large message to nobody", [*PING, send(1, 1 << 30)], PONG)
odd("receives first on both sides", again(5, receive(1), send(1)), again(5, receive(0), send(0)))
odd(
    "synchronous sends first on both sides",
    again(5, send(1, kind=Kind.SSEND), receive(1)),
    again(5, send(0, kind=Kind.SSEND), receive(0)),
)
odd(
    "large sends first on both sides",
    again(5, send(1, 1 << 24), receive(1, 1 << 24)),
    again(5, send(0, 1 << 24), receive(0, 1 << 24)),
)
odd("different tags", again(5, send(1, tag=1)), again(5, receive(0, tag=2)))
odd("huge tags", again(9, send(1, tag=2**31 - 1)), again(9, receive(0, tag=2**31 - 1)))
odd("negative tags", again(9, send(1, tag=-77)), again(9, receive(0, tag=-77)))
odd("any tag in a send", again(9, send(1, tag=ANY)), again(9, receive(0, tag=ANY)))
odd("sizes that differ", again(9, send(1, 100)), again(9, receive(0, 7)))
odd("a peer that there is not", again(9, send(7)), again(9, receive(0)))
odd("a negative peer", again(9, send(-9)), again(9, receive(0)))
odd("messages to nobody", again(9, send(NOBODY)), again(9, receive(NOBODY)))
odd("messages of exabytes", again(9, send(1, 2**63)), again(9, receive(0, 2**63)))
odd("messages of terabytes", again(9, send(1, 2**42)), again(9, receive(0, 2**42)))
odd("sendrecv without its other part", again(9, of(Kind.SENDRECV, peer=1, bytes=8)), again(9, receive(0, 8)))
odd("received parts alone", again(9, send(1)), again(9, of(Kind.RECV_PART, peer=0, bytes=64)))

# --- from anybody ---------------------------------------------------------------------------------------
odd(
    "receives from anybody",
    again(9, receive(1, flags=Flag.WILD), receive(2, flags=Flag.WILD)),
    again(9, send(0)),
    again(9, send(0)),
)
odd(
    "requests from anybody",
    again(
        9,
        of(Kind.IRECV, peer=ANY, tag=ANY, request=1, flags=Flag.WILD),
        of(Kind.WAIT, peer=1, request=1, bytes=64),
    ),
    again(9, send(0)),
)
odd(
    "a source that was never said",
    again(9, of(Kind.IRECV, peer=ANY, tag=ANY, request=1), of(Kind.WAIT, peer=NOBODY, request=1)),
    again(9, send(0)),
)
odd("a receive from any as it came", again(9, receive(ANY, tag=ANY, flags=Flag.WILD)), again(9, send(0)))
odd(
    "probes of anybody",
    again(9, of(Kind.PROBE, peer=1, flags=Flag.WILD), of(Kind.MRECV, peer=1, bytes=64)),
    again(9, send(0)),
)
odd(
    "matched receives without a probe",
    again(9, of(Kind.IMRECV, peer=1, request=1), of(Kind.WAIT, peer=1, request=1, bytes=64)),
    again(9, send(0)),
)

# --- requests -------------------------------------------------------------------------------------------
INIT = of(Kind.SEND_INIT, peer=1, bytes=64, request=1)
odd("persistent requests never started", [*PING, INIT, of(Kind.FREE, request=1)], PONG)
odd("persistent requests never freed", [*PING, INIT], PONG)
odd("persistent requests never waited for", [INIT, of(Kind.START, request=1)], [receive(0)])
odd(
    "persistent requests started twice",
    [INIT, *again(2, of(Kind.START, request=1)), of(Kind.WAIT, request=1)],
    again(2, receive(0)),
)
odd("a start of no request", [*PING, of(Kind.START, request=99)], PONG)
odd("a wait for no request", [*PING, of(Kind.WAIT, request=99, peer=1)], PONG)
odd("a wait for request 0", [*PING, of(Kind.WAIT, request=0, peer=1)], PONG)
odd(
    "a request waited for twice",
    [of(Kind.ISEND, peer=1, bytes=64, request=1), *again(2, of(Kind.WAIT, request=1))],
    [receive(0)],
)
odd(
    "a number for two requests",
    [*again(2, of(Kind.ISEND, peer=1, bytes=64, request=1)), of(Kind.WAIT, request=1)],
    again(2, receive(0)),
)
odd(
    "huge numbers of requests",
    again(5, of(Kind.ISEND, peer=1, bytes=64, request=2**32 - 1), of(Kind.WAIT, request=2**32 - 1)),
    again(5, receive(0)),
)
odd(
    "requests never waited for",
    [of(Kind.ISEND, peer=1, bytes=1 << 22, request=n + 1) for n in range(5)],
    again(5, receive(0, 1 << 22)),
)
odd(
    "cancelled requests",
    [of(Kind.IRECV, peer=1, request=1), of(Kind.CANCEL, request=1)],
    [],
    marks=[Unsound.CANCELLED],
)
odd(
    "a cancelled request without the mark",
    [*PING, of(Kind.IRECV, peer=1, request=1), of(Kind.CANCEL, request=1)],
    PONG,
)
odd("tests that were true for nothing", [*PING, of(Kind.TEST, request=5)], PONG)
odd("waits of which only others are there", [*PING, of(Kind.WAIT, request=1, flags=Flag.NEXT)], PONG)

# --- communicators --------------------------------------------------------------------------------------


def comm(number: int, members: Sequence[int], rank: int, *records: tuple[Kind, dict[str, Any]]) -> Doing:
    def doing(made: StreamWriter) -> None:
        made.communicator(number, members, rank=rank)
        for kind, fields in records:
            made.add(kind, **{"comm": number} | fields)

    return doing


def duplicates(times: int) -> Doing:
    def doing(made: StreamWriter) -> None:
        for number in range(2, 2 + times):
            made.add(Kind.MAKE_COMMUNICATOR)
            made.communicator(number, [0, 1], rank=made._rank)
            made.add(Kind.BARRIER, comm=number)

    return doing


odd("communicators without end", duplicates(5000), duplicates(5000))
odd(
    "a communicator made twice",
    comm(
        2,
        [0, 1],
        0,
        of(Kind.BARRIER),
        of(Kind.COMMUNICATOR, payload=struct.pack("<5I", 1, 0, 0, 0, 0) + bytes(4)),
    ),
    comm(2, [0, 1], 1, of(Kind.BARRIER)),
)
odd("a communicator never made", again(9, of(Kind.BARRIER, comm=5)), again(9, of(Kind.BARRIER, comm=5)))
odd("a communicator of nobody", comm(2, [], 0, of(Kind.BARRIER)), comm(2, [], 0, of(Kind.BARRIER)))
odd(
    "a communicator without its own rank",
    comm(2, [1], 0, of(Kind.BARRIER)),
    comm(2, [0], 0, of(Kind.BARRIER)),
)
odd(
    "a communicator with one rank twice",
    comm(2, [0, 0], 0, of(Kind.BARRIER)),
    comm(2, [0, 0], 1, of(Kind.BARRIER)),
)
odd(
    "a communicator that one rank has not",
    comm(2, [0, 1], 0, *again(5, of(Kind.BARRIER))),
    again(5, of(Kind.BARRIER)),
)
odd(
    "members in another order",
    comm(2, [0, 1], 0, *again(5, of(Kind.BARRIER))),
    comm(2, [1, 0], 0, *again(5, of(Kind.BARRIER))),
)
odd(
    "a communicator that says less than it has",
    [of(Kind.COMMUNICATOR, comm=2, payload=struct.pack("<5I", 2**31, 0, 0, 0, 0)), *PING],
    PONG,
)
odd("two groups that talk", PING, PONG, marks=[Unsound.INTER])
odd(
    "neighbours without a topology",
    again(5, of(Kind.NEIGHBOR_ALLGATHER, bytes=8)),
    again(5, of(Kind.NEIGHBOR_ALLGATHER, bytes=8)),
)
odd(
    "neighbours that do not know each other",
    comm(2, [0, 1], 0, *again(5, of(Kind.NEIGHBOR_ALLTOALL, bytes=8))),
    comm(2, [0, 1], 1, *again(5, of(Kind.NEIGHBOR_ALLTOALL, bytes=8))),
)

# --- collectives ----------------------------------------------------------------------------------------
odd("different collectives", again(5, of(Kind.BCAST, peer=0, bytes=8)), again(5, of(Kind.BARRIER)))
odd("different roots", again(5, of(Kind.BCAST, peer=0, bytes=8)), again(5, of(Kind.BCAST, peer=1, bytes=8)))
odd("a root that there is not", *[again(5, of(Kind.BCAST, peer=9, bytes=8))] * 2)
odd("no root", *[again(5, of(Kind.REDUCE, peer=NOBODY, bytes=8))] * 2)
odd("sizes for fewer ranks than there are", *[again(5, of(Kind.ALLTOALLV, payload=struct.pack("<Q", 8)))] * 2)
odd(
    "sizes for more ranks than there are",
    *[again(5, of(Kind.ALLTOALLV, payload=struct.pack("<9Q", *[8] * 9)))] * 2,
)
odd("sizes without any", *[again(5, of(Kind.ALLTOALLV))] * 2)
odd("sizes of exabytes", *[again(5, of(Kind.ALLGATHERV, payload=struct.pack("<2Q", 2**63, 2**63)))] * 2)
odd("collectives of petabytes", *[again(5, of(Kind.ALLREDUCE, bytes=2**50))] * 2)
odd(
    "collectives begun and never waited for",
    *[again(5, of(Kind.ALLREDUCE, bytes=8, request=1, flags=Flag.NONBLOCKING))] * 2,
)
odd(
    "collectives in another order",
    [of(Kind.BARRIER), of(Kind.ALLREDUCE, bytes=8)],
    [of(Kind.ALLREDUCE, bytes=8), of(Kind.BARRIER)],
)

# --- what is not replayed, or only by time ----------------------------------------------------------------
odd("memory of others", [of(Kind.OTHER, payload=b"MPI_Win_create", call_ns=9)], [], marks=[Unsound.ONE_SIDED])
odd(
    "memory of others without the mark",
    [
        of(Kind.WINDOW, tag=1, bytes=64),
        of(Kind.PUT, peer=1, tag=1, bytes=8, payload=bytes(8)),
        of(Kind.FENCE, tag=1),
    ],
    [of(Kind.WINDOW, tag=1, bytes=64), of(Kind.FENCE, tag=1)],
)
odd(
    "files",
    *[again(9, of(Kind.OTHER, bytes=4096, payload=b"MPI_File_write_at_all", call_ns=900_000))] * 2,
    marks=[Unsound.FILES],
)
odd(
    "files with odd names",
    *[again(9, of(Kind.OTHER, payload=b"MPI_File_\x1b[31m\xff\n" + b"x" * 5000, call_ns=900_000))] * 2,
    marks=[Unsound.FILES],
)
odd("processes that were started", PING, PONG, marks=[Unsound.PROCESSES])
odd("calls that are not known", PING, PONG, marks=[Unsound.PASSED])
odd(
    "phases of patterns",
    *[[of(Kind.PHASE, request=int(mark)) for mark in (Mark.SERVE, Mark.ITERATION, Mark.SERVE, Mark.END)]] * 2,
)
odd("a farm of nothing", *[[of(Kind.PHASE, request=int(Mark.FARM), peer=9, payload=b"\1" * 7)]] * 2)
odd("marks of no kind", *[[of(Kind.PHASE, request=4_000_000_000, tag=-5), *ALL]] * 2)

# --- times ----------------------------------------------------------------------------------------------
odd("computing for ages", *[[of(Kind.BARRIER, compute_ns=2**63), of(Kind.BARRIER, compute_ns=2**63)]] * 2)
odd(
    "time that goes backwards",
    *[again(5, of(Kind.BARRIER, compute_ns=2**64 - 1000, call_ns=2**64 - 1000))] * 2,
)
odd("calls longer than the run", *[again(5, of(Kind.BARRIER, compute_ns=10**12))] * 2, run_ns=1000)
odd("a run of ages", *[ALL] * 2, run_ns=2**64 - 1)
odd("a run of a nanosecond", *[ALL] * 2, run_ns=1)
odd("times at the end", [*PING, of(Kind.TIME, bytes=7, payload=bytes(8))], PONG)
odd("times without a payload", [*PING, of(Kind.TIME, bytes=7)], PONG)

# --- much -----------------------------------------------------------------------------------------------


def many(kind: Kind, peer: int, times: int = 500_000) -> Doing:
    def doing(made: StreamWriter) -> None:
        records = np.zeros(times, dtype=RECORD)
        records["kind"], records["peer"], records["bytes"], records["compute_ns"] = kind, peer, 1, 100
        made.extend(records)

    return doing


odd("a million tiny calls", many(Kind.SEND, 1), many(Kind.RECV, 0))
odd("a million sends that nobody takes", many(Kind.SEND, 1, 10**6), [])
odd("a million looks", many(Kind.TEST, NOBODY, 10**6), [])
odd("thousands of ranks", *[again(2, of(Kind.ALLTOALL, bytes=8, compute_ns=50))] * 1024)
streams("more ranks than streams", lambda: [stream(0, 4096, PING)])

# --- files that no tracer writes --------------------------------------------------------------------------
bent("cut in its middle", lambda whole: whole[: len(whole) // 2])
bent("cut in a header", lambda whole: whole[:5000])
bent("empty", lambda _: b"")
bent("without ranks", lambda _: np.array([(b"wulftrce", 2, 0, 32, 0)], dtype=CONTAINER).tobytes())
bent(
    "a million ranks announced",
    lambda whole: (
        np.array([(b"wulftrce", 2, 10**6, 32, 0)], dtype=CONTAINER).tobytes() + whole[CONTAINER.itemsize :]
    ),
)
bent(
    "four billion ranks announced",
    lambda whole: (
        np.array([(b"wulftrce", 2, 2**32 - 1, 32, 0)], dtype=CONTAINER).tobytes()
        + whole[CONTAINER.itemsize :]
    ),
)
bent(
    "a note behind the end",
    lambda whole: (
        np.array([(b"wulftrce", 2, 2, 2**63, 2**63)], dtype=CONTAINER).tobytes() + whole[CONTAINER.itemsize :]
    ),
)
bent(
    "streams on top of each other",
    lambda whole: (
        whole[: CONTAINER.itemsize]
        + whole[CONTAINER.itemsize :][: PART.itemsize] * 2
        + whole[CONTAINER.itemsize + 2 * PART.itemsize :]
    ),
)
bent("a changed bit", lambda whole: whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
streams(
    "a note that is no text",
    lambda: [stream(0, 2, PING), stream(1, 2, PONG)],
    {"command": {"a": [1, {"b": None}]}, "ranks": "x"},
)
streams("one rank twice", lambda: [stream(0, 2, PING), stream(0, 2, PONG)])
streams(
    "ranks that are not these", lambda: [headed(stream(0, 2, PING), rank=-5, ranks=-7), stream(1, 2, PONG)]
)
streams("kinds that there are not", lambda: [_with(stream(0, 2, PING), "kind", 255), stream(1, 2, PONG)])
streams("flags that there are not", lambda: [_with(stream(0, 2, PING), "flags", 0xC0), stream(1, 2, PONG)])
streams(
    "a payload longer than the file",
    lambda: [_with(stream(0, 2, PING), "flags", Flag.PAYLOAD), stream(1, 2, PONG)],
)
streams(
    "a host that is no text",
    lambda: [headed(stream(0, 2, PING), host=b"\xff\x1b[2J\n"), headed(stream(1, 2, PONG), host=b"\xfe")],
)


def _with(whole: bytes, field: str, value: int) -> bytes:
    records = np.frombuffer(whole[HEADER_BYTES:], dtype=RECORD).copy()
    records[field][3] = value
    return headed(whole[:HEADER_BYTES], checksum=google_crc32c.value(records.tobytes())) + records.tobytes()
