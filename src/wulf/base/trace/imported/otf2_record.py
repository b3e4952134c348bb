"""What an archive of OTF2 defines, and what its ranks do.  Pure."""

from __future__ import annotations

import builtins
from collections import Counter, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NoReturn

import msgspec

from wulf.base.errors import TraceError
from wulf.base.text import count
from wulf.base.trace.imported.numbers import MOST_NS, MOST_RANKS
from wulf.base.trace.layout import NOBODY, WORLD, Kind, Unsound

#: No archive has more records of MPI: each takes some 200 B of memory here.
MOST_RECORDS = 1 << 24


class Definitions(msgspec.Struct):
    """What an archive defines: the first line of `otf2_program`."""

    creator: str
    #: Ticks in a second.
    resolution: int
    eztrace: bool
    #: Location → its group, which is a process; group → host.
    threads: dict[int, int]
    #: Location → what the recorder calls it.
    names: dict[int, str]
    hosts: dict[int, str]
    #: Locations, by rank.
    ranks: list[int]
    #: Group → whether it is the rank alone, whether its members are locations, and not ranks; members.
    groups: dict[int, tuple[bool, bool, list[int]]]
    #: Communicator → name, group.
    comms: dict[int, tuple[str, int]]
    #: Communicators of two groups.
    between: list[int]
    #: Locations that are no threads of a CPU.
    others: int


class End(msgspec.Struct):
    """The last line: records that were not followed, by name; locations with fewer records than announced."""

    others: dict[str, int]
    missing: dict[int, tuple[int, int]]
    spans: dict[int, tuple[int, int]]


class Record(msgspec.Struct, gc=False):
    """A record of ours; its communicator is called as in the archive."""

    kind: Kind
    comm: int = WORLD
    peer: int = NOBODY
    tag: int = 0
    request: int = 0
    bytes: int = 0
    flags: int = 0
    compute_ns: int = 0
    call_ns: int = 0
    payload: builtins.bytes = b""


class Thread:
    """A thread, and the call that it is in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        #: Of them at the same time as another thread's, and what these took [ns].
        self.overlapping = self.overlapping_ns = 0
        #: Of the rank's entries into MPI the one that it is in, and whether another thread was within then.
        self.entry = 0
        self.is_beside = False
        self.depth = 0
        self.call = ""
        self.entered = 0
        self.records: list[Record] = []
        #: A collective of old recorders that stands in no region.
        self.is_bare = False


class Rank:
    """What a process does."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.records: list[Record] = []
        #: Threads within MPI, and how often one has come in.
        self.inside = self.entries = 0
        #: Those that have called, since when two are within, and how long two or more were [ns].
        self.threads: dict[int, Thread] = {}
        self.together_since = self.overlap_ns = 0
        #: Begin of the first call, end of the last, and computing before calls that left no record [ns].
        self.first: int | None = None
        self.last: int | None = None
        self.carried = 0
        self.begun: int | None = None
        self.ended: int | None = None
        self.marks: set[Unsound] = set()
        self.used: set[int] = set()
        self.was_off = False
        self.without: Counter[str] = Counter()
        self.requests: dict[int, Record] = {}
        self.collectives: deque[int] = deque()
        self.matched: dict[int, tuple[int, int, int]] = {}
        self._free: list[int] = []
        self._highest = 0

    def number(self) -> int:
        """Return a number for a request."""
        if self._free:
            return heappop(self._free)
        self._highest += 1
        return self._highest

    def release(self, number: int) -> None:
        """Let a number be used again."""
        heappush(self._free, number)


class Archive:
    """What is known of an archive, and its ranks.

    Attributes
    ----------
    said
        What it defines.
    ranks
        By their number.
    threads, rank_of
        By location, and the rank of a process by its group.
    members
        Communicator → ranks of the world; none where it is the rank alone.
    notes
        What could not be followed, in sentences.

    Raises
    ------
    TraceError
        It is not of an MPI program.
    """

    def __init__(self, said: Definitions, origin: str) -> None:
        self._origin = origin
        if not 0 < said.resolution <= MOST_NS:
            self.fail(f"its clock has {count(said.resolution, 'tick')} in a second")
        if not said.ranks or not said.threads:
            self.fail("it names no ranks of MPI: it is not of an MPI program, or was recorded without MPI")
        if len(said.ranks) > MOST_RANKS:
            self.fail(f"more than {MOST_RANKS} ranks")
        self.said = said
        self.ranks = [Rank(rank) for rank in range(len(said.ranks))]
        self.threads = {location: Thread(said.names.get(location, "")) for location in said.threads}
        self.rank_of = self._processes()
        self.members = dict(self._groups())
        self.notes: list[str] = []
        #: How often a call left a record of what it moved.
        self.known: Counter[str] = Counter()

    def fail(self, why: str) -> NoReturn:
        """Raise TraceError: why it cannot be followed."""
        raise TraceError(f"{self._origin}: {why}")

    def never_ended(self, rank: Rank, begun: Record) -> NoReturn:
        """Raise TraceError: something was begun of which only its end would say what it was."""
        what = "receive" if begun.kind is Kind.IRECV else "send or collective"
        self.fail(
            f"rank {rank.rank}: a {what} is begun and its end is not recorded (EZTrace leaves that out): record the "
            "program with Score-P or `wulf program trace`"
        )

    def ns(self, ticks: int) -> int:
        """Return a time of the archive [ns]."""
        return ticks * 1_000_000_000 // self.said.resolution

    def _processes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for rank, location in enumerate(self.said.ranks):
            group = self.said.threads.get(location)
            if group is None or group in found:
                self.fail(f"rank {rank} is location {location}, which is no process of its own")
            found[group] = rank
        return found

    def _groups(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        of_location = {location: rank for rank, location in enumerate(self.said.ranks)}
        for comm, (_, group) in self.said.comms.items():
            is_self, is_global, members = self.said.groups.get(group, (False, False, []))
            ranks = [of_location.get(one, -1) for one in members] if is_global else members
            if any(not 0 <= rank < len(self.ranks) for rank in ranks) or len(set(ranks)) < len(ranks):
                self.fail(f"communicator {comm} has members that are no ranks")
            yield comm, () if is_self else tuple(ranks)
