"""Calls of ranks, as `otf2_ranks` has gathered them, as streams.  Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wulf.base.text import count
from wulf.base.trace.imported.numbers import MOST_NS
from wulf.base.trace.imported.otf2_record import Archive, End, Rank, Record
from wulf.base.trace.imported.otf2_sizes import SIZED, SUMMED
from wulf.base.trace.layout import SELF, WORLD, Flag, Kind, Unsound
from wulf.base.trace.writer import StreamWriter

_TO = (Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.ISEND, Kind.ISSEND, Kind.IBSEND, Kind.SENDRECV)
_FROM = (Kind.RECV, Kind.RECV_PART, Kind.IRECV, Kind.MRECV, Kind.IMRECV)


class _Number(NamedTuple):
    """Of a communicator: in a rank's stream, and which of those with the same members it is."""

    own: int
    place: int


#: Of a rank: communicator of the archive → number.
_Numbers = dict[int, _Number]


def streams(archive: Archive, end: End) -> list[bytes]:
    """Return the streams of all ranks; adds to the archive's notes what could not be followed.

    Raises
    ------
    TraceError
        Calls that others depend on are missing.
    """
    for location, (announced, there) in end.missing.items():
        archive.fail(f"cut off: {there} of {count(announced, 'record')} of location {location}")
    for rank in archive.ranks:
        _close(archive, rank)
        _compute_at_ends(archive, rank, end)
    _note_unmatched(archive)
    _note_without(archive)
    _note_others(archive, end)
    numbers = _numbers(archive)
    for at_once in _together(archive, numbers):
        _share_sizes(archive, at_once)
    return [_stream(archive, rank, own, end) for rank, own in zip(archive.ranks, numbers, strict=True)]


def _close(archive: Archive, rank: Rank) -> None:
    """Look at what a rank has left open: nobody waits for a send that is freed."""
    for begun in rank.requests.values():
        if begun.kind is Kind.IRECV or begun.flags & Flag.NONBLOCKING:
            archive.never_ended(rank, begun)
        rank.records.append(Record(Kind.FREE, begun.comm, request=begun.request))


def _compute_at_ends(archive: Archive, rank: Rank, end: End) -> None:
    """Add the computing before the first call, where MPI_Init is not recorded, and after the last."""
    begun, ended = _span(archive, rank, end)
    if rank.begun is None and rank.first is not None and rank.records:
        rank.records[0].compute_ns += max(rank.first - begun, 0)
    left = rank.carried + max(ended - (begun if rank.last is None else rank.last), 0)
    if left:
        rank.records.append(Record(Kind.PHASE, compute_ns=left))


# --- what is said of it -------------------------------------------------------------------------------


def _note_unmatched(archive: Archive) -> None:
    """Name receivers of which another number of messages is recorded than was sent to them."""
    sent = Counter(pair for rank in archive.ranks for pair in _pairs(archive, rank, _TO))
    received = Counter(pair[::-1] for rank in archive.ranks for pair in _pairs(archive, rank, _FROM))
    wrong = sorted(pair for pair in sent.keys() | received.keys() if sent[pair] != received[pair])
    for _, to in wrong:
        archive.ranks[to].marks.add(Unsound.PASSED)
    if wrong:
        source, to = wrong[0]
        more = f" (and so for {count(len(wrong) - 1, 'other pair')})" if len(wrong) > 1 else ""
        archive.notes.append(
            f"rank {source} sends {count(sent[wrong[0]], 'message')} to rank {to}, which receives "
            f"{received[wrong[0]]}{more}: calls are missing"
        )


def _pairs(archive: Archive, rank: Rank, kinds: Sequence[Kind]) -> Iterator[tuple[int, int]]:
    """Yield a rank and that at the other end, for each message."""
    for record in rank.records:
        if record.kind in kinds and record.peer >= 0:
            members = archive.members[record.comm] or (rank.rank,)
            yield rank.rank, members[record.peer]


def _note_without(archive: Archive) -> None:
    """Name calls without a record of what they moved: to nobody, or of a kind that is not recorded."""
    without = sum((rank.without for rank in archive.ranks), Counter[str]())
    for call, calls in sorted(without.items()):
        if archive.known[call]:
            archive.notes.append(
                f"{count(calls, 'call')} of MPI_{call} moved nothing: taken as to MPI_PROC_NULL"
            )
            continue
        archive.notes.append(
            f"{count(calls, 'call')} of MPI_{call} without what was moved: it is not recorded"
        )
        for rank in archive.ranks:
            if rank.without[call]:
                rank.marks.add(Unsound.PASSED)


def _note_others(archive: Archive, end: End) -> None:
    if end.others:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(end.others.items()))
        archive.notes.append(f"records that say nothing of messages: {listed}")
    if archive.said.others:
        archive.notes.append(
            f"not read: {count(archive.said.others, 'location')} other than threads of a CPU"
        )
    summed = sum(record.kind in SUMMED for rank in archive.ranks for record in rank.records)
    if summed:
        archive.notes.append(
            f"{count(summed, 'call')} of MPI_Alltoallv or MPI_Alltoallw: OTF2 has only sums, taken as equal shares of "
            "all ranks"
        )


# --- communicators ------------------------------------------------------------------------------------


def _numbers(archive: Archive) -> list[_Numbers]:
    """Return the numbers of communicators, by rank.

    Where several ranks use the same one, its number is that of all of them; else each rank has numbers of its own, and
    the order of these tells which are the same.
    """
    users = Counter(comm for rank in archive.ranks for comm in rank.used)
    shared: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for comm, several in users.items():
        if several > 1:
            shared[archive.members[comm]].add(comm)
    return [_numbers_of(archive, rank, shared) for rank in archive.ranks]


def _numbers_of(archive: Archive, rank: Rank, shared: Mapping[tuple[int, ...], set[int]]) -> _Numbers:
    own: _Numbers = {}
    for members in sorted({archive.members[comm] for comm in rank.used}):
        of_all = shared.get(members, set())
        alone = {comm for comm in rank.used if archive.members[comm] == members} - of_all
        for place, comm in enumerate([*_in_order(archive, of_all), *_in_order(archive, alone)]):
            own[comm] = _Number(_number(archive, members, place, len(own)), place)
    return own


def _in_order(archive: Archive, comms: set[int]) -> list[int]:
    return sorted(comms, key=lambda comm: (archive.said.comms[comm][0] != "MPI_COMM_WORLD", comm))


def _number(archive: Archive, members: tuple[int, ...], place: int, before: int) -> int:
    if not members:
        return SELF
    is_world = place == 0 and members == tuple(range(len(archive.ranks)))
    return WORLD if is_world else before + 2


# --- sizes --------------------------------------------------------------------------------------------


def _together(archive: Archive, numbers: Sequence[_Numbers]) -> Iterator[tuple[Record, ...]]:
    """Yield the records of all members of each collective, in the order of the members."""
    made: dict[tuple[tuple[int, ...], int], list[list[Record]]] = {}
    for rank, own in zip(archive.ranks, numbers, strict=True):
        for record in rank.records:
            if Kind.BARRIER <= record.kind <= Kind.MAKE_COMMUNICATOR and record.comm in own:
                members = archive.members[record.comm] or (rank.rank,)
                of_all = made.setdefault((members, own[record.comm].place), [[] for _ in members])
                of_all[members.index(rank.rank)].append(record)
    for (members, _), of_all in made.items():
        if len({len(records) for records in of_all}) > 1:
            told = ", ".join(
                f"{len(records)} of rank {rank}"
                for rank, records in list(zip(members, of_all, strict=True))[:4]
            )
            archive.fail(f"collectives of one communicator: {told}: some are missing")
        yield from zip(*of_all, strict=True)


def _share_sizes(archive: Archive, at_once: Sequence[Record]) -> None:
    """Give a collective the sizes of all ranks, of which each has said its own."""
    kind, root = at_once[0].kind, at_once[0].peer
    if any(one.kind is not kind or one.peer != root for one in at_once):
        archive.fail(
            "ranks of one communicator make different collectives at the same time: some are missing"
        )
    if kind in SIZED:
        payload = _sizes([one.bytes for one in at_once])
        for place, one in enumerate(at_once):
            if kind is not Kind.SCATTERV or place == root:
                one.payload = payload
    elif kind in SUMMED:
        for one in at_once:
            each, rest = divmod(one.bytes, len(at_once))
            one.payload = _sizes([each + (place < rest) for place in range(len(at_once))])
            one.bytes = 0


def _sizes(sizes: Sequence[int]) -> bytes:
    return b"".join(size.to_bytes(8, "little") for size in sizes)


# --- streams ------------------------------------------------------------------------------------------


def _stream(archive: Archive, rank: Rank, own: _Numbers, end: End) -> bytes:
    made = StreamWriter(
        rank.rank, len(archive.ranks), host=_host(archive, rank), library=archive.said.creator, program="OTF2"
    )
    for comm, (number, _) in own.items():
        members = archive.members[comm]
        if number > SELF:
            made.communicator(number, members, rank=members.index(rank.rank))
    for mark in rank.marks:
        made.mark(mark)
    if len(rank.threads) > 1:
        told = [(one.name, one.calls, one.overlapping, one.overlapping_ns) for one in rank.threads.values()]
        made.threads(told, rank.overlap_ns)
    for record in rank.records:
        made.add(
            record.kind,
            flags=record.flags,
            comm=own[record.comm].own if record.comm in own else WORLD,
            peer=record.peer,
            tag=record.tag,
            request=record.request,
            bytes=record.bytes,
            compute_ns=record.compute_ns,
            call_ns=record.call_ns,
            payload=record.payload,
        )
    begun, ended = _span(archive, rank, end)
    return made.finish(max(ended - begun, 0))


def _host(archive: Archive, rank: Rank) -> str:
    """Return the node of a rank; EZTrace has the program's name in its place."""
    group = archive.said.threads[archive.said.ranks[rank.rank]]
    return "" if archive.said.eztrace else archive.said.hosts.get(group, "")


def _span(archive: Archive, rank: Rank, end: End) -> tuple[int, int]:
    """Return when a rank ran [ns]: between MPI_Init and MPI_Finalize, else as long as it was recorded."""
    first, last = end.spans.get(archive.said.ranks[rank.rank], (0, 0))
    begun = rank.begun if rank.begun is not None else archive.ns(first)
    ended = rank.ended if rank.ended is not None else archive.ns(last)
    if ended - begun > MOST_NS:
        archive.fail(f"rank {rank.rank}: damaged: it ran for more than thirty years")
    return begun, ended
