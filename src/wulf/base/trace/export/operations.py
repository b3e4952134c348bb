"""What a rank did, as plain operations between ranks of the world: for other simulators.

Requests are what they belong to, receives from any source have the source they got, and collectives of any
communicator are messages between its members, in textbook algorithms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from wulf.base.errors import TraceError
from wulf.base.trace.export.rounds import Group, rounds
from wulf.base.trace.layout import ANY, NOBODY, SELF, WORLD, Flag, Kind
from wulf.base.trace.reader import Entry, Stream, Trace, communicator
from wulf.base.trace.summary import unsound

Verb = Literal["compute", "send", "receive", "begin_send", "begin_receive", "wait", "collective"]
#: Tags of messages that collectives are made of begin here; programs may use those below.
FIRST_TAG = 1 << 22

_LOOKS = {Kind.PHASE, Kind.PROBE, Kind.OTHER}


# There are millions of them: an alltoall of a thousand ranks is four.
@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a rank does; ranks are those of the world."""

    verb: Verb
    peer: int = NOBODY
    bytes: int = 0
    tag: int = 0
    #: Of what is begun and waited for: unique on the rank.
    number: int = 0
    compute_ns: int = 0
    #: Of a collective.
    kind: Kind = Kind.BARRIER
    sizes: tuple[int, ...] = ()


#: In place of a receive that was taken back.
_NOTHING = Operation("compute")


def exported(trace: Trace, *, whole: frozenset[Kind] = frozenset()) -> list[list[Operation]]:
    """Return what every rank did; a receive has the bytes of the message that it gets.

    Parameters
    ----------
    whole
        Collectives that stay what they are where all ranks take part; others are messages, too.

    Raises
    ------
    TraceError
        It uses what has no messages, or a message is not sent; names the rank.
    """
    lacks = sorted(one.name.lower().replace("_", " ") for one in unsound(trace))
    if lacks:
        raise TraceError(f"{trace.path}: it uses what other simulators cannot follow: {', '.join(lacks)}")
    ranks = [_Rank(stream, whole=whole).operations() for stream in trace.streams]
    # Of each sender, receiver and tag the bytes, last first. (A deque of one takes ten times the memory of a list.)
    sent: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for rank, done in enumerate(ranks):
        for one in reversed(done):
            if one.verb in ("send", "begin_send"):
                sent[rank, one.peer, one.tag].append(one.bytes)
    for rank, done in enumerate(ranks):
        for place, one in enumerate(done):
            if one.verb in ("receive", "begin_receive"):
                waiting = sent[one.peer, rank, one.tag]
                if not waiting:
                    raise TraceError(
                        f"{trace.path}: rank {rank} receives a message that rank {one.peer} does not send"
                    )
                done[place] = replace(one, bytes=waiting.pop())
    return ranks


class _Rank:
    def __init__(self, stream: Stream, *, whole: frozenset[Kind]) -> None:
        self._stream, self._whole = stream, whole
        self._groups = {WORLD: Group(tuple(range(stream.ranks))), SELF: Group((stream.rank,))}
        self._done: list[Operation] = []
        self._open: dict[int, int] = {}  # request → number of what was begun
        self._places: dict[int, int] = {}  # number → place of a receive that has not ended
        self._cancelled: set[int] = set()  # requests
        self._made: dict[int, Entry] = {}
        self._begun: dict[int, Entry] = {}  # request → collective
        self._collectives: dict[int, int] = {}
        self._numbers = 0

    def operations(self) -> list[Operation]:
        for entry in self._stream.records():
            if entry.compute_ns:
                self._done.append(Operation("compute", compute_ns=entry.compute_ns))
            self._take(entry)
        return [one for one in self._done if one is not _NOTHING]

    def _take(self, entry: Entry) -> None:
        kind = entry.kind
        if kind in _TAKES:
            _TAKES[kind](self, entry)
        elif Kind.BARRIER <= kind <= Kind.MAKE_COMMUNICATOR:
            self._collective(entry)
        elif kind not in _LOOKS:
            raise TraceError(f"{self._stream.origin}: {kind.name} has no messages that others could replay")

    def _communicator(self, entry: Entry) -> None:
        said = communicator(entry.payload, self._stream.ranks, self._stream.origin)
        self._groups[entry.comm] = Group(*said)

    def _send(self, entry: Entry) -> None:
        self._message("send", entry)

    def _receive(self, entry: Entry) -> None:
        self._message("receive", entry)

    def _second_part(self, entry: Entry) -> None:
        self._message("receive", entry)
        self._end(0)

    def _begin_send(self, entry: Entry) -> None:
        self._begin("begin_send", entry)

    def _begin_receive(self, entry: Entry) -> None:
        self._begin("begin_receive", entry)

    def _make(self, entry: Entry) -> None:
        self._made[entry.request] = entry

    def _start(self, entry: Entry) -> None:
        made = self._made.get(entry.request)
        if made is None:
            raise TraceError(
                f"{self._stream.origin}: the start of request {entry.request}, which was not made"
            )
        self._begin("begin_receive" if made.kind == Kind.RECV_INIT else "begin_send", made, entry.request)

    def _free(self, entry: Entry) -> None:
        self._made.pop(entry.request, None)

    def _group(self, comm: int) -> Group:
        group = self._groups.get(comm)
        if group is None:
            raise TraceError(f"{self._stream.origin}: communicator {comm}, which was not made")
        return group

    def _world(self, comm: int, rank: int) -> int:
        members = self._group(comm).members
        if not 0 <= rank < len(members):
            raise TraceError(f"{self._stream.origin}: rank {rank} of a communicator of {len(members)}")
        return members[rank]

    def _message(self, verb: Verb, entry: Entry) -> None:
        if entry.peer != NOBODY:
            peer = self._world(entry.comm, entry.peer)
            self._done.append(Operation(verb, peer=peer, bytes=entry.bytes, tag=entry.tag))

    def _begin(self, verb: Verb, entry: Entry, request: int | None = None) -> None:
        if entry.peer == NOBODY:
            return
        self._numbers += 1
        self._open[entry.request if request is None else request] = self._numbers
        if verb == "begin_receive":
            self._places[self._numbers] = len(self._done)
        peer = NOBODY if entry.peer == ANY else self._world(entry.comm, entry.peer)
        self._done.append(Operation(verb, peer, entry.bytes, entry.tag, self._numbers))

    def _ended(self, entry: Entry) -> None:
        self._receive_ended(entry)
        begun = self._begun.pop(entry.request, None)
        if begun is not None:
            self._messages(begun)
        self._end(entry.request)

    def _receive_ended(self, entry: Entry) -> None:
        """Its end says what a receive from anybody got, and whether one that was cancelled got anything."""
        was_cancelled = entry.request in self._cancelled
        self._cancelled.discard(entry.request)
        number = self._open.get(entry.request)
        if number not in self._places:
            return
        place = self._places.pop(number)
        begun = self._done[place]
        if was_cancelled and entry.peer == NOBODY:
            self._done[place] = _NOTHING
            del self._open[entry.request]
        elif begun.peer == NOBODY or begun.tag == ANY:
            peer = self._world(entry.comm, entry.peer)
            self._done[place] = replace(begun, peer=peer, tag=entry.tag)

    def _cancel(self, entry: Entry) -> None:
        self._cancelled.add(entry.request)

    def _end(self, request: int) -> None:
        number = self._open.pop(request, None)
        if number is not None:
            self._done.append(Operation("wait", number=number))

    def _collective(self, entry: Entry) -> None:
        if entry.flags & Flag.NONBLOCKING:
            self._begun[entry.request] = entry
        elif entry.comm == WORLD and entry.kind in self._whole:
            sizes = tuple(int(size) for size in entry.sizes())
            self._done.append(Operation("collective", entry.peer, entry.bytes, kind=entry.kind, sizes=sizes))
        else:
            self._messages(entry)

    def _messages(self, entry: Entry) -> None:
        group = self._group(entry.comm)
        count = self._collectives[entry.comm] = self._collectives.get(entry.comm, 0) + 1
        tag = FIRST_TAG + entry.comm * 1000 + count % 1000
        if self._stream.rank not in group.members or entry.peer >= len(group.members):
            raise TraceError(f"{self._stream.origin}: damaged: {entry.kind.name} without itself or its root")
        try:
            steps = list(rounds(entry, group, group.members.index(self._stream.rank)))
        except (IndexError, ValueError):  # fewer sizes than members
            raise TraceError(f"{self._stream.origin}: damaged: {entry.kind.name} without its sizes") from None
        for sends, receives in steps:
            begun = [("begin_receive", peer, 0) for peer in receives]
            begun += [("begin_send", peer, size) for peer, size in sends]
            numbers = range(self._numbers + 1, self._numbers + 1 + len(begun))
            self._numbers += len(begun)
            for number, (verb, peer, size) in zip(numbers, begun, strict=True):
                self._done.append(Operation(verb, group.members[peer], size, tag, number))  # type: ignore[arg-type]
            self._done += [Operation("wait", number=number) for number in numbers]


_TAKES: dict[Kind, Callable[[_Rank, Entry], None]] = {
    Kind.COMMUNICATOR: _Rank._communicator,
    **dict.fromkeys((Kind.SEND, Kind.SSEND, Kind.BSEND), _Rank._send),
    **dict.fromkeys((Kind.RECV, Kind.MRECV), _Rank._receive),
    **dict.fromkeys((Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV), _Rank._begin_send),
    Kind.RECV_PART: _Rank._second_part,
    **dict.fromkeys((Kind.IRECV, Kind.IMRECV), _Rank._begin_receive),
    **dict.fromkeys((Kind.SEND_INIT, Kind.SSEND_INIT, Kind.BSEND_INIT, Kind.RECV_INIT), _Rank._make),
    Kind.START: _Rank._start,
    Kind.FREE: _Rank._free,
    **dict.fromkeys((Kind.WAIT, Kind.WAIT_SOME, Kind.TEST), _Rank._ended),
    Kind.CANCEL: _Rank._cancel,
}
