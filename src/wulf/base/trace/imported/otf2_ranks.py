"""Records of OTF2, one after the other, as calls of its ranks.  Pure.

A call is what lies between entering a region of MPI and leaving it; what lies between two calls is computing. Calls of
several threads stand in the order in which they ended; where they were at the same time, a replay refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wulf.base.text import count, printable
from wulf.base.trace.imported import otf2_calls as calls
from wulf.base.trace.imported.numbers import MOST_BYTES, MOST_NS, MOST_TAG
from wulf.base.trace.imported.otf2_record import MOST_RECORDS, Archive, Rank, Record, Thread
from wulf.base.trace.imported.otf2_sizes import KINDS, ROOTED, Part, own_bytes
from wulf.base.trace.layout import ANY, NOBODY, Flag, Kind, Unsound

#: Operations of OTF2 3.2 that make a communicator, a window or a file; the last of all.
_MAKING, _LAST = (17, 21), 22
#: Of a switch: what follows is recorded.
_ON = 1
#: A root that is the rank itself; a communicator that is not said.
_ROOT_SELF, _UNDEFINED = 0xFFFFFFFE, 0xFFFFFFFF
#: So much of a name is kept.
_NAME = 80


class Ranks:
    """Takes the records of an archive in the order of time; raises TraceError where one cannot be followed."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._between = frozenset(archive.said.between)
        self._count = 0
        self._take: Mapping[str, Callable[..., None]] = {
            "Enter": self._enter,
            "Leave": self._leave,
            "MpiSend": self._send,
            "MpiIsend": self._isend,
            "MpiIsendComplete": self._complete,
            "MpiIrecvRequest": self._irecv,
            "MpiRecv": self._receive,
            "MpiIrecv": self._received,
            "MpiRequestCancelled": self._cancelled,
            "MpiCollectiveBegin": self._collective_begins,
            "MpiCollectiveEnd": self._collective,
            "NonBlockingCollectiveRequest": self._collective_request,
            "NonBlockingCollectiveComplete": self._collective_complete,
            "MpiProbe": self._probe,
            "MpiMrecv": self._mrecv,
            "MpiImrecvRequest": self._imrecv,
            "MpiImrecv": self._imreceived,
            "MeasurementOnOff": self._switched,
        }

    def take(self, record: Sequence[Any]) -> None:
        """Take a record: its name, its location, its time in ticks, and what else it says."""
        name, location, ticks, *rest = record
        archive = self._archive
        rank = archive.rank_of.get(archive.said.threads.get(location, -1))
        if rank is None:
            archive.fail(f"location {location} is of no rank, and calls MPI")
        take = self._take.get(name)
        if take is not None:
            take(archive.ranks[rank], archive.threads[location], archive.ns(ticks), *rest)
        elif name.startswith("Rma"):
            archive.ranks[rank].marks.add(Unsound.ONE_SIDED)

    # --- calls ----------------------------------------------------------------------------------------

    def _enter(self, rank: Rank, thread: Thread, time: int, region: str) -> None:
        thread.depth += 1
        if thread.depth == 1:
            thread.call, thread.entered = calls.base(region), time
            self._opened(rank, thread, time)

    def _opened(self, rank: Rank, thread: Thread, time: int) -> None:
        rank.inside += 1
        rank.entries += 1
        rank.threads.setdefault(id(thread), thread)
        thread.entry, thread.is_beside = rank.entries, rank.inside > 1
        if rank.inside == 2:
            rank.together_since = time
        if rank.inside > 1:
            rank.marks.add(Unsound.THREADS)
        if rank.last is None:
            rank.first = rank.last = time

    def _leave(self, rank: Rank, thread: Thread, time: int, region: str) -> None:
        if thread.depth == 0:
            self._archive.fail(f"rank {rank.rank}: {printable(region, _NAME)} is left, and was not entered")
        thread.depth -= 1
        if thread.depth == 0:
            self._left(rank, thread, time)

    def _left(self, rank: Rank, thread: Thread, time: int) -> None:
        rank.inside -= 1
        if rank.inside == 1:
            rank.overlap_ns += max(time - rank.together_since, 0)
        thread.calls += 1
        if thread.is_beside or rank.entries != thread.entry:
            thread.overlapping += 1
            thread.overlapping_ns += max(time - thread.entered, 0)
        call, records = thread.call, thread.records
        thread.records = []
        if (mark := calls.marks(call)) is not None:
            rank.marks.add(mark)
        if records:
            self._archive.known[call] += 1
            self._timed(rank, thread.entered, time, records)
        else:
            self._left_without(rank, thread, time)

    def _left_without(self, rank: Rank, thread: Thread, time: int) -> None:
        """Leave a call of which nothing is recorded but its time."""
        call = thread.call
        if call.startswith("Init"):
            rank.begun = rank.last = time
            rank.carried = 0
        elif call.startswith("Finalize"):
            rank.ended = thread.entered
        elif calls.looks(call):
            rank.carried += max(thread.entered - (rank.last or 0), 0)
            rank.last = time
        elif calls.moves(call):
            rank.without[call] += 1
        elif not calls.is_local(call):
            name = f"MPI_{printable(call, _NAME)}".encode()
            self._timed(rank, thread.entered, time, [Record(Kind.OTHER, payload=name)])

    def _timed(self, rank: Rank, entered: int, left: int, records: list[Record]) -> None:
        first, *others = records
        first.compute_ns = rank.carried + max(entered - (rank.last or 0), 0)
        first.call_ns = max(left - entered, 0)
        if max(first.compute_ns, first.call_ns) > MOST_NS:
            self._archive.fail(f"rank {rank.rank}: damaged: more than thirty years between two records")
        if others:
            first.flags |= Flag.FIRST
        for other in others:
            other.flags |= Flag.NEXT
        rank.records += records
        rank.last, rank.carried = left, 0

    def _add(self, rank: Rank, thread: Thread, time: int, record: Record) -> Record:
        self._count += 1
        if self._count > MOST_RECORDS:
            self._archive.fail(
                f"more than {MOST_RECORDS} records of MPI: record fewer iterations of the program"
            )
        if record.bytes > MOST_BYTES:
            self._archive.fail(f"rank {rank.rank}: damaged: a message of {count(record.bytes, 'byte')}")
        if thread.depth or thread.is_bare:
            thread.records.append(record)
        else:  # a recorder without regions
            if rank.last is None:
                rank.first = rank.last = time
            self._timed(rank, time, time, [record])
        return record

    # --- messages -------------------------------------------------------------------------------------

    def _message(self, rank: Rank, kind: Kind, *said: int) -> Record:
        """Return a record of a message: peer, communicator, tag, bytes."""
        peer, comm, tag, size = said
        members = self._of(rank, comm)
        if members is not None and peer >= max(len(members), 1):
            self._archive.fail(f"rank {rank.rank}: there is no rank {peer} in communicator {comm}")
        if tag > MOST_TAG:
            self._archive.fail(f"rank {rank.rank}: a tag of {tag}")
        return Record(kind, comm, peer if members is not None else NOBODY, tag, bytes=size)

    def _of(self, rank: Rank, comm: int) -> tuple[int, ...] | None:
        """Return the members of a communicator that a rank uses; None of one between two groups."""
        if comm in self._between:
            rank.marks.add(Unsound.INTER)
            return None
        members = self._archive.members.get(comm)
        if members is None:
            self._archive.fail(f"rank {rank.rank}: there is no communicator {comm}")
        if members and rank.rank not in members:
            self._archive.fail(f"rank {rank.rank} uses communicator {comm}, and is not in it")
        rank.used.add(comm)
        return members

    def _send(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        if thread.depth and calls.begins(thread.call):
            self._archive.fail(
                f"rank {rank.rank}: MPI_{printable(thread.call, _NAME)} without its request: record it again with "
                "requests (Score-P: xnonblock in SCOREP_MPI_ENABLE_GROUPS)"
            )
        self._add(rank, thread, time, self._message(rank, calls.send_kind(thread.call, Kind.SEND), *said))

    def _receive(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        record = self._message(rank, Kind.RECV, *said)
        before = thread.records[-1] if thread.records else None
        if thread.call.startswith("Sendrecv") and before is not None and before.kind is Kind.SEND:
            before.kind, record.kind = Kind.SENDRECV, Kind.RECV_PART
        self._add(rank, thread, time, record)

    def _isend(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        *message, request = said
        kind = calls.send_kind(thread.call, Kind.ISEND)
        self._begin(rank, thread, time, self._message(rank, kind, *message), request)

    def _irecv(self, rank: Rank, thread: Thread, time: int, request: int) -> None:
        # From whom is said when it ends.
        self._begin(rank, thread, time, Record(Kind.IRECV, peer=ANY, tag=ANY), request)

    def _begin(self, rank: Rank, thread: Thread, time: int, record: Record, request: int) -> None:
        if request in rank.requests:
            self._archive.never_ended(rank, rank.requests[request])
        record.request = rank.number()
        rank.requests[request] = self._add(rank, thread, time, record)

    def _end(self, rank: Rank, thread: Thread, time: int, request: int) -> None:
        begun = rank.requests.pop(request, None)
        if begun is None:
            self._archive.fail(f"rank {rank.rank}: request {request} ends, and was not begun")
        rank.release(begun.request)
        end = Record(calls.end_kind(thread.call), begun.comm, request=begun.request)
        if begun.kind in (Kind.IRECV, Kind.IMRECV):
            end.peer, end.tag, end.bytes = begun.peer, begun.tag, begun.bytes
        self._add(rank, thread, time, end)

    def _complete(self, rank: Rank, thread: Thread, time: int, request: int) -> None:
        self._end(rank, thread, time, request)

    def _received(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        *message, request = said
        begun = rank.requests.get(request)
        if begun is not None:
            came = self._message(rank, Kind.IRECV, *message)
            begun.comm, begun.peer, begun.tag, begun.bytes = came.comm, came.peer, came.tag, came.bytes
        self._end(rank, thread, time, request)

    def _cancelled(self, rank: Rank, thread: Thread, time: int, request: int) -> None:
        begun = rank.requests.get(request)
        if begun is None or begun.kind is not Kind.IRECV:
            rank.marks.add(Unsound.CANCELLED)
        if begun is None:
            return
        self._add(rank, thread, time, Record(Kind.CANCEL, request=begun.request))
        begun.peer = NOBODY  # a receive got no message
        self._end(rank, thread, time, request)

    def _probe(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        source, comm, tag, message = said
        record = self._message(rank, Kind.PROBE, source, comm, tag, 0)
        rank.matched[message] = (source, comm, tag)
        if not calls.looks(thread.call):
            self._add(rank, thread, time, record)

    def _matched(self, rank: Rank, kind: Kind, message: int, size: int) -> Record:
        found = rank.matched.pop(message, None)
        if found is None:
            self._archive.fail(f"rank {rank.rank}: message {message} is received, and was not matched")
        return self._message(rank, kind, *found, size)

    def _mrecv(self, rank: Rank, thread: Thread, time: int, message: int, size: int) -> None:
        self._add(rank, thread, time, self._matched(rank, Kind.MRECV, message, size))

    def _imrecv(self, rank: Rank, thread: Thread, time: int, message: int, request: int) -> None:
        self._begin(rank, thread, time, self._matched(rank, Kind.IMRECV, message, 0), request)

    def _imreceived(self, rank: Rank, thread: Thread, time: int, request: int, size: int) -> None:
        begun = rank.requests.get(request)
        if begun is not None:
            begun.bytes = size
        self._end(rank, thread, time, request)

    def _switched(self, rank: Rank, _thread: Thread, _time: int, mode: int) -> None:
        if mode != _ON and not rank.was_off:
            rank.was_off = True
            rank.marks.add(Unsound.PASSED)
            self._archive.notes.append(
                f"rank {rank.rank}: recording was switched off for a while: calls are missing"
            )

    # --- collectives ----------------------------------------------------------------------------------

    def _collective_begins(self, rank: Rank, thread: Thread, time: int) -> None:
        if thread.depth == 0:
            thread.call, thread.entered, thread.is_bare = "", time, True
            self._opened(rank, thread, time)
        elif thread.call.startswith("I"):  # EZTrace has no request of those that are only begun
            begun = Record(Kind.BARRIER, request=rank.number(), flags=Flag.NONBLOCKING)
            key = -begun.request
            rank.requests[key] = self._add(rank, thread, time, begun)
            rank.collectives.append(key)

    def _collective(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        if rank.collectives and thread.call.startswith(("Wait", "Test")):
            self._collective_complete(rank, thread, time, *said, rank.collectives.popleft())
            return
        record = self._part(rank, thread, *said)
        if record is not None:
            self._add(rank, thread, time, record)
        if thread.is_bare:
            thread.is_bare = False
            self._left(rank, thread, time)

    def _collective_request(self, rank: Rank, thread: Thread, time: int, request: int) -> None:
        self._begin(rank, thread, time, Record(Kind.BARRIER, flags=Flag.NONBLOCKING), request)

    def _collective_complete(self, rank: Rank, thread: Thread, time: int, *said: int) -> None:
        *collective, request = said
        begun = rank.requests.get(request)
        part = self._part(rank, thread, *collective)
        if begun is not None and part is not None:
            begun.kind, begun.comm, begun.peer, begun.bytes = part.kind, part.comm, part.peer, part.bytes
        self._end(rank, thread, time, request)

    def _part(self, rank: Rank, thread: Thread, *said: int) -> Record | None:
        """Return a rank's part: operation, communicator, root, sent and received bytes; None where it moves nothing."""
        which, comm, root, sent, received = said
        if which > _LAST:
            self._archive.fail(f"rank {rank.rank}: collective {which}, which OTF2 3.2 does not have")
        if which >= len(KINDS):
            return self._making(rank, thread, which, comm)
        members = self._of(rank, comm)
        if members is None:
            return None
        if max(sent, received) > MOST_BYTES:
            self._archive.fail(
                f"rank {rank.rank}: damaged: a collective of {count(max(sent, received), 'byte')}"
            )
        kind, own = KINDS[which], members.index(rank.rank) if members else 0
        part = Part(kind, own, max(len(members), 1), sent, received)
        size = own_bytes(part, self._archive.said.eztrace)
        if kind not in ROOTED:
            return Record(kind, comm, bytes=size)
        root = own if root == _ROOT_SELF else root
        if root >= part.ranks:
            self._archive.fail(
                f"rank {rank.rank}: {kind.name.lower()} of {count(part.ranks, 'rank')} from root {root}"
            )
        return Record(kind, comm, root, bytes=size)

    def _making(self, rank: Rank, thread: Thread, which: int, comm: int) -> Record | None:
        """Return what makes a communicator. Windows and files are known by the calls that make them."""
        if which not in _MAKING or calls.marks(thread.call) is not None or comm == _UNDEFINED:
            return None
        return None if self._of(rank, comm) is None else Record(Kind.MAKE_COMMUNICATOR, comm)
