"""Sum up a trace.  Reads nothing but the trace."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import TraceError
from wulf.base.records import SCHEMA_VERSION
from wulf.base.records.traced import (
    TracedCall,
    TracedPair,
    TracedRank,
    TracedSize,
    TracedThread,
    TracedThreads,
    TraceSummary,
)
from wulf.base.text import count
from wulf.base.trace.columns import KINDS, PART_OF, PARTS, times
from wulf.base.trace.layout import Flag, Kind, Unsound
from wulf.base.trace.messages import Messages, members, sent
from wulf.base.trace.reader import Stream, Trace
from wulf.base.trace.timeline import timeline

UNSOUND: dict[Unsound, str] = {
    Unsound.THREADS: "threads call MPI at the same time",
    Unsound.ONE_SIDED: "memory of other ranks is used",
    Unsound.PROCESSES: "processes are started or joined",
    Unsound.INTER: "two groups talk with each other",
    Unsound.CANCELLED: "requests are cancelled that are no receives, or whose end was not seen",
    Unsound.PASSED: "calls that are not recorded move data",
}
#: How the names of calls on files begin.
FILE_CALLS = "MPI_File_"
#: What is neither a call nor counted as one.
_NO_CALL = (Kind.COMMUNICATOR, Kind.TIME, Kind.RECV_PART)
_NAMED = frozenset(int(kind) for kind in Kind if kind is not Kind.OTHER)
#: Collectives whose part is the sum of what goes to each rank or neighbour.
_TO_EACH = (Kind.ALLTOALLV, Kind.ALLTOALLW, Kind.NEIGHBOR_ALLTOALLV, Kind.NEIGHBOR_ALLTOALLW)
_WITHOUT_DATA = (Kind.BARRIER, Kind.MAKE_COMMUNICATOR)


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
        unsound=[UNSOUND[one] for one in sorted(unsound(trace)) if one in UNSOUND],
        threads=[_threads(stream) for stream in trace.streams if stream.threads.threads],
        records=sum(len(stream.slots) for stream in trace.streams),
        file_bytes=trace.path.stat().st_size,
        ranks=ranks,
        calls=total.calls(),
        sizes=total.sizes.told(),
        collective_sizes=total.collective_sizes.told(),
        pairs=total.pairs(),
        timeline=timeline(trace),
    )


def unsound(trace: Trace) -> frozenset[Unsound]:
    """Return what a replay cannot follow: calls of threads at the same time only where that is more than a little."""
    overlapping = any(
        Unsound.THREADS in one.unsound and not one.threads.is_little(one.run_ns) for one in trace.streams
    )
    return trace.unsound if overlapping else trace.unsound - {Unsound.THREADS}


def overlaps(trace: Trace) -> dict[int, float]:
    """Return the part of its run that calls of threads at the same time took, by rank; of all threads together."""
    return {
        one.rank: one.threads.overlapping_ns / one.run_ns
        for one in trace.streams
        if Unsound.THREADS in one.unsound and one.run_ns
    }


def _threads(stream: Stream) -> TracedThreads:
    said = stream.threads
    return TracedThreads(
        rank=stream.rank,
        threads=said.threads,
        overlap_s=said.overlap_ns * 1e-9,
        overlapping_s=said.overlapping_ns * 1e-9,
        is_little=said.is_little(stream.run_ns),
        of=[
            TracedThread(
                name=one.name,
                calls=one.calls,
                overlapping=one.overlapping,
                overlapping_s=one.overlapping_ns * 1e-9,
            )
            for one in said.of
        ],
    )


def file_calls(trace: Trace) -> dict[str, float]:
    """Return the calls on files with their time, the mean of the ranks [s]; those with most first."""
    spent: Counter[str] = Counter()
    for stream in trace.streams:
        starts = stream.starts()
        records = stream.slots[starts]
        _, call_ns = times(stream, starts, records)
        for place in np.flatnonzero(records["kind"] == Kind.OTHER).tolist():
            name = stream.payload(int(starts[place])).decode(errors="replace")
            if name.startswith(FILE_CALLS):
                spent[name] += int(call_ns[place])
    return {name: ns * 1e-9 / trace.ranks for name, ns in spent.most_common()}


def run_time(trace: Trace) -> float:
    """Return how long the traced program ran, by its slowest rank; 0 where the trace does not say [s]."""
    return max(stream.run_ns for stream in trace.streams) * 1e-9


def command_of(trace: Trace) -> str:
    """Return what was run, as its note says; else as a rank calls itself."""
    said = trace.note.get("command", "")
    text = said if isinstance(said, str) else " ".join(map(str, said))
    return text or next((stream.program for stream in trace.streams if stream.program), "")


#: No message and no share of a collective is larger [B].
_MOST_BYTES = 1 << 50


class _Sizes:
    """Counts by size, in powers of two."""

    def __init__(self) -> None:
        self._count: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()

    def take(self, sizes: NDArray[np.int64]) -> None:
        powers = np.ceil(np.log2(sizes + 1.0)).astype(np.int64)
        for power in np.unique(powers).tolist():
            of_size = sizes[powers == power]
            self._count[power] += len(of_size)
            self._bytes[power] += int(of_size.sum())

    def told(self) -> list[TracedSize]:
        return [
            TracedSize(below_bytes=1 << power, count=count, bytes=self._bytes[power])
            for power, count in sorted(self._count.items())
        ]


class _Calls:
    """Counts of calls of one name."""

    def __init__(self) -> None:
        self.count = self.ns = self.bytes = 0
        #: By rank [ns].
        self.of_ranks: list[int] = []

    def take(self, count: int, ns: int, size: int) -> None:
        self.count += count
        self.ns += ns
        self.bytes += size
        self.of_ranks.append(ns)

    def told(self, name: str, ranks: int) -> TracedCall:
        least = min(self.of_ranks) if len(self.of_ranks) == ranks else 0
        return TracedCall(
            call=name,
            count=self.count,
            seconds=self.ns * 1e-9,
            least_s=least * 1e-9,
            most_s=max(self.of_ranks) * 1e-9,
            bytes=self.bytes,
        )


class _Sum:
    """Sums over the ranks that it has taken in."""

    def __init__(self) -> None:
        self._calls: dict[str, _Calls] = defaultdict(_Calls)
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}
        self._ranks = 0
        self.sizes, self.collective_sizes = _Sizes(), _Sizes()

    def take(self, stream: Stream) -> TracedRank:
        """Add a rank; return what is to be said of it alone."""
        starts = stream.starts()
        records = stream.slots[starts]
        kinds = records["kind"]
        largest = int(records["bytes"].max(initial=0, where=kinds != Kind.TIME))
        if largest > _MOST_BYTES:
            raise TraceError(f"{stream.origin}: damaged: a message of {count(largest, 'byte')}")
        compute_ns, call_ns = times(stream, starts, records)
        parts_s = np.bincount(PART_OF[kinds], weights=call_ns, minlength=len(PARTS)) * 1e-9
        sizes = _own_parts(stream, starts, records)
        # Of a call with several records, such as MPI_Waitall, the first one counts.
        is_call = ~np.isin(kinds, _NO_CALL) & ((records["flags"] & Flag.NEXT) == 0)
        self._ranks += 1
        self._take_calls(kinds, is_call, call_ns, sizes)
        files_ns = self._take_others(stream, starts, records, call_ns)
        is_collective = (kinds >= Kind.BARRIER) & (kinds <= Kind.MAKE_COMMUNICATOR)
        self.collective_sizes.take(sizes[is_collective & ~np.isin(kinds, _WITHOUT_DATA)])
        for messages in sent(records, members(stream, starts, records)):
            self._take_messages(stream.rank, messages)
        return TracedRank(
            rank=stream.rank,
            host=stream.host,
            state=stream.state.name.lower(),
            run_s=stream.run_ns * 1e-9 if stream.run_ns else None,
            mpi_s=float(call_ns.sum()) * 1e-9,
            compute_s=float(compute_ns.sum()) * 1e-9,
            files_s=files_ns * 1e-9,
            **{f"{part}_s": float(spent) for part, spent in zip(PARTS, parts_s, strict=True)},
            calls=int(is_call.sum()),
            lost=stream.lost,
        )

    def calls(self) -> list[TracedCall]:
        """Return the kinds of calls, those with most time first."""
        told = [calls.told(name, self._ranks) for name, calls in self._calls.items()]
        return sorted(told, key=lambda one: -one.seconds)

    def pairs(self) -> list[TracedPair]:
        """Return who sends whom how much."""
        return [
            TracedPair(source=source, destination=destination, count=count, bytes=size)
            for (source, destination), (count, size) in sorted(self._pairs.items())
        ]

    def _take_calls(
        self,
        kinds: NDArray[np.uint8],
        is_call: NDArray[np.bool_],
        call_ns: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> None:
        count = np.bincount(kinds[is_call], minlength=KINDS)
        ns, size = (np.bincount(kinds, weights=of, minlength=KINDS) for of in (call_ns, sizes))
        for kind in np.flatnonzero(count).tolist():
            if kind in _NAMED:
                self._calls[Kind(kind).name.lower()].take(int(count[kind]), int(ns[kind]), int(size[kind]))

    def _take_others(
        self, stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void], call_ns: NDArray[np.int64]
    ) -> int:
        """Add calls that are known by their name; return the time of those on files [ns]."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place in np.flatnonzero(records["kind"] == Kind.OTHER).tolist():
            name = stream.payload(int(starts[place])).decode(errors="replace") or "other"
            found[name].append((int(call_ns[place]), int(records["bytes"][place])))
        for name, calls in found.items():
            self._calls[name].take(len(calls), *(sum(of) for of in zip(*calls, strict=True)))
        return sum(ns for name, calls in found.items() if name.startswith(FILE_CALLS) for ns, _ in calls)

    def _take_messages(self, source: int, messages: Messages) -> None:
        self.sizes.take(messages.bytes)
        for peer in np.unique(messages.peers).tolist():
            of_pair = messages.bytes[messages.peers == peer]
            count, size = self._pairs.get((source, peer), (0, 0))
            self._pairs[source, peer] = (count + len(of_pair), size + int(of_pair.sum()))


def _own_parts(stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]) -> NDArray[np.int64]:
    """Return what each record moves [B]; of collectives with a size for each, their sum."""
    sizes: NDArray[np.int64] = records["bytes"].astype(np.int64)
    for place in np.flatnonzero(np.isin(records["kind"], _TO_EACH)).tolist():
        payload = stream.payload(int(starts[place]))
        sizes[place] = np.frombuffer(payload, dtype="<u8", count=len(payload) // 8).sum(dtype=np.int64)
    # Of these it is a time.
    sizes[records["kind"] == Kind.TIME] = 0
    return sizes
