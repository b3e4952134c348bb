"""What each rank of a pattern does, as records that a tracer would have written.

A pattern and a traced program are the same to all that comes after: the emulator and the replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.pattern import distributions, graph
from wulf.pattern.distributions import Amount, Samples
from wulf.pattern.language import Document, Program, Step
from wulf.wtrace.layout import NOBODY, WORLD, Flag, Kind, Unsound
from wulf.wtrace.writer import StreamWriter

#: What the streams say that wrote them.
LIBRARY = "wulf pattern"
#: Steps that happen now and then are counted with fractions, which are not exact.
_ROUNDING = 1e-9
#: A farm without `tasks` has so many for each worker.
_TASKS_EACH = 4
#: All records of all ranks: 32 bytes each, in memory.
MOST_RECORDS = 50_000_000
_COLLECTIVES = {
    "barrier": Kind.BARRIER,
    "bcast": Kind.BCAST,
    "gather": Kind.GATHER,
    "scatter": Kind.SCATTER,
    "allgather": Kind.ALLGATHER,
    "alltoall": Kind.ALLTOALL,
    "reduce": Kind.REDUCE,
    "allreduce": Kind.ALLREDUCE,
    "reduce-scatter": Kind.REDUCE_SCATTER_BLOCK,
    "scan": Kind.SCAN,
    "exscan": Kind.EXSCAN,
}

Fail = Callable[[str, str], NoReturn]


class Operations(msgspec.Struct, frozen=True):
    """What all ranks do."""

    #: Of each rank, as `wulf.wtrace.writer.write_container` takes them.
    streams: list[bytes]
    #: Name of each program → its ranks, in the order of the pattern.
    programs: dict[str, list[int]]


class _Rank:
    """One rank: its stream, and its own time were the network without delay."""

    def __init__(self, rank: int, ranks: int, title: str) -> None:
        self.number = rank
        self.stream = StreamWriter(rank, ranks, library=LIBRARY, program=title)
        self.now_ns = 0
        self.records = 0
        self.program = 0
        self.persistent = 0
        self._compute_ns = 0
        self._communicators = 1

    def compute(self, time_ns: int) -> None:
        self._compute_ns += time_ns
        self.now_ns += time_ns

    def add(  # the fields of a record
        self,
        kind: Kind,
        *,
        flags: int = 0,
        comm: int = 0,
        peer: int = NOBODY,
        tag: int = 0,
        request: int = 0,
        size: int = 0,
        payload: bytes = b"",
    ) -> None:
        self.stream.add(
            kind,
            flags=flags,
            comm=comm,
            peer=peer,
            tag=tag,
            request=request,
            bytes=size,
            compute_ns=self._compute_ns,
            payload=payload,
        )
        self._compute_ns = 0
        self.records += 1

    def communicator(
        self, members: Sequence[int], sources: Sequence[int] = (), targets: Sequence[int] = ()
    ) -> int:
        """Make a communicator, and return its number."""
        self._communicators += 1
        rank = members.index(self.number)
        self.stream.communicator(self._communicators, members, rank=rank, sources=sources, targets=targets)
        return self._communicators

    def wait(self, requests: Sequence[int], comm: int, peers: Sequence[int], tag: int) -> None:
        """Wait for all of them in one call."""
        for place, (request, peer) in enumerate(zip(requests, peers, strict=True)):
            flags = 0 if len(requests) == 1 else Flag.FIRST if place == 0 else Flag.NEXT
            self.add(Kind.WAIT, flags=flags, comm=comm, peer=peer, tag=tag, request=request)

    def finish(self) -> bytes:
        if self._compute_ns:
            # Time after the last call belongs to what ends it.
            self.add(Kind.PHASE, tag=0)
        return self.stream.finish(self.now_ns)


class _Group:
    """The ranks of a program, or some of them, with their communicator."""

    def __init__(self, ranks: Sequence[_Rank], everybody: int) -> None:
        self.ranks = ranks
        members = [rank.number for rank in ranks]
        is_world = members == list(range(everybody))
        self.comm = [WORLD if is_world else rank.communicator(members) for rank in ranks]

    def __len__(self) -> int:
        return len(self.ranks)


class _Step:
    """One step of a program; `make` is called in every iteration in which it happens."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        self.step, self.group, self.tag, self.fail = step, group, tag, fail

    def happens(self, iteration: int) -> int:
        """Return how often it is made in an iteration."""
        return _share(iteration, self.step.times)

    def count(self, iterations: int) -> int:
        """Return how often it is made in all."""
        return math.floor(iterations * self.step.times + _ROUNDING)

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        """Draw all that is drawn, for so many times that it is made."""
        self.compute = self._table("compute", count, len(self.group), generator, samples)

    def make(self, turn: int) -> None:
        """Add the records of one time."""
        self._compute(turn)

    def end(self) -> None:
        """Add what comes after the last iteration."""

    def _table(
        self, key: str, count: int, columns: int, generator: np.random.Generator, samples: Samples
    ) -> list[list[int]]:
        amount: Amount | None = getattr(self.step, key)
        is_time = distributions.OF_STEP[key]
        drawn = distributions.draw(amount, count * columns, generator, samples, is_time=is_time)
        rows: list[list[int]] = drawn.reshape(count, columns).tolist()
        return rows

    def _compute(self, turn: int) -> None:
        for rank, time_ns in zip(self.group.ranks, self.compute[turn], strict=True):
            rank.compute(time_ns)


def _share(iteration: int, rate: float) -> int:
    return math.floor((iteration + 1) * rate + _ROUNDING) - math.floor(iteration * rate + _ROUNDING)


class _Collective(_Step):
    """All ranks of a group, or of each of several, call it."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail, everybody: int) -> None:
        super().__init__(step, group, tag, fail)
        self.kind = _COLLECTIVES[str(step.collective)]
        self.groups = [group]
        if step.groups is not None:
            parts = _parts(step, len(group), fail)
            self.groups = [_Group([group.ranks[one] for one in part], everybody) for part in parts]
        root = step.root or 0
        if not 0 <= root < min(map(len, self.groups)):
            fail("root", f"{root} is no rank of a group of {min(map(len, self.groups))}")
        self.root = root if step.root is not None or self.kind in _ROOTED else NOBODY

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        super().draw(count, generator, samples)
        self.sizes = self._table("size", count, len(self.groups), generator, samples)

    def make(self, turn: int) -> None:
        super().make(turn)
        for group, size in zip(self.groups, self.sizes[turn], strict=True):
            end_ns = max(rank.now_ns for rank in group.ranks)
            for rank, comm in zip(group.ranks, group.comm, strict=True):
                rank.add(self.kind, comm=comm, peer=self.root, size=size)
                rank.now_ns = end_ns


_ROOTED = {Kind.BCAST, Kind.GATHER, Kind.SCATTER, Kind.REDUCE}


def _parts(step: Step, ranks: int, fail: Fail) -> list[list[int]]:
    if isinstance(step.groups, list):
        named = [rank for part in step.groups for rank in part]
        if len(set(named)) != len(named) or any(not part for part in step.groups):
            fail("groups", "each rank is in one group at most, and none is empty")
        if any(not 0 <= rank < ranks for rank in named):
            fail("groups", f"{max(named)} is no rank of a program of {ranks}: they are counted from 0")
        return step.groups
    rows, columns = graph.balanced(ranks, 2)
    if step.groups == "rows":
        return [list(range(row * columns, (row + 1) * columns)) for row in range(rows)]
    return [list(range(column, ranks, columns)) for column in range(columns)]


class _Exchange(_Step):
    """All ranks send along the edges of a graph, and receive, at the same time."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        rounds = graph.rounds(step, len(group), fail)
        self.edges = [edge for one in rounds for edge in one]
        self.rounds = list(_numbered(rounds))
        self.rates = (
            [messages for _, _, messages in graph.weighted(step, len(group), fail)]
            if step.exchange == "edges"
            else [1.0] * len(self.edges)
        )

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        super().draw(count, generator, samples)
        self.overlap = self._table("overlap", count, len(self.group), generator, samples)
        messages = sum(math.floor(count * rate + _ROUNDING) for rate in self.rates)
        amount = self.step.size
        drawn = distributions.draw(amount, messages, generator, samples, is_time=False)
        self._sizes: Iterator[int] = iter(drawn.tolist())

    def make(self, turn: int) -> None:
        super().make(turn)
        messages = [
            (number, next(self._sizes))
            for number, rate in enumerate(self.rates)
            for _ in range(_share(turn, rate))
        ]
        by_edge: dict[int, list[int]] = {}
        for number, size in messages:
            by_edge.setdefault(number, []).append(size)
        for numbers in self.rounds:
            self.exchange(
                [(*self.edges[one], size) for one in numbers for size in by_edge.get(one, [])], turn
            )

    def exchange(self, messages: Sequence[tuple[int, int, int]], turn: int) -> None:
        """Add the records of messages that are under way together: from, to, size."""
        raise NotImplementedError

    def _arrive(self, messages: Sequence[tuple[int, int, int]]) -> None:
        """Let nobody go on before what it is sent has begun."""
        begun = [rank.now_ns for rank in self.group.ranks]
        for one, other, _ in messages:
            self.group.ranks[other].now_ns = max(self.group.ranks[other].now_ns, begun[one])

    def _require_one_each(self) -> None:
        if any(rate != 1 for rate in self.rates):
            self.fail(
                "edges", f"{self.step.method}: one message for each edge in an iteration, not more or fewer"
            )


def _numbered(rounds: Sequence[Sequence[graph.Edge]]) -> Iterator[list[int]]:
    """Yield the numbers of the edges of each round."""
    first = 0
    for one in rounds:
        yield list(range(first, first + len(one)))
        first += len(one)


class _Blocking(_Exchange):
    """MPI_Sendrecv, turn by turn; MPI_Send or MPI_Recv where a rank has only one of them in a turn."""

    def exchange(self, messages: Sequence[tuple[int, int, int]], turn: int) -> None:  # noqa: ARG002 - the base's
        for numbers in graph.in_turns([(one, other) for one, other, _ in messages]):
            now = [messages[number] for number in numbers]
            sent = {one: (other, size) for one, other, size in now}
            received = {other: (one, size) for one, other, size in now}
            for place, (rank, comm) in enumerate(zip(self.group.ranks, self.group.comm, strict=True)):
                to, size = sent.get(place, (NOBODY, 0))
                source, expected = received.get(place, (NOBODY, 0))
                if place in sent:
                    kind = Kind.SENDRECV if place in received else Kind.SEND
                    rank.add(
                        kind,
                        flags=Flag.FIRST if place in received else 0,
                        comm=comm,
                        peer=to,
                        tag=self.tag,
                        size=size,
                    )
                if place in received:
                    kind = Kind.RECV_PART if place in sent else Kind.RECV
                    flags = Flag.NEXT if place in sent else 0
                    rank.add(kind, flags=flags, comm=comm, peer=source, tag=self.tag, size=expected)
            self._arrive(now)


class _Nonblocking(_Exchange):
    """MPI_Irecv from all sources, MPI_Isend to all targets, MPI_Waitall."""

    def exchange(self, messages: Sequence[tuple[int, int, int]], turn: int) -> None:
        sources: list[list[tuple[int, int]]] = [[] for _ in self.group.ranks]
        targets: list[list[tuple[int, int]]] = [[] for _ in self.group.ranks]
        for one, other, size in messages:
            targets[one].append((other, size))
            sources[other].append((one, size))
        for place, (rank, comm) in enumerate(zip(self.group.ranks, self.group.comm, strict=True)):
            both = [(Kind.IRECV, *one) for one in sources[place]]
            both += [(Kind.ISEND, *one) for one in targets[place]]
            first = rank.persistent + 1
            for request, (kind, peer, size) in enumerate(both, first):
                rank.add(kind, comm=comm, peer=peer, tag=self.tag, request=request, size=size)
            rank.compute(self.overlap[turn][place])
            rank.wait(range(first, first + len(both)), comm, [peer for _, peer, _ in both], self.tag)
        self._arrive(messages)


class _Persistent(_Exchange):
    """Requests that are made once, before the first iteration, with sizes that stay."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        self._require_one_each()

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        super().draw(count, generator, samples)
        sizes = distributions.draw(
            self.step.size, len(self.edges), generator, samples, is_time=False
        ).tolist()
        #: Of each round and rank: request and peer.
        self.requests: list[list[list[tuple[int, int]]]] = []
        for numbers in self.rounds:
            own: list[list[tuple[int, int]]] = [[] for _ in self.group.ranks]
            for kind in (Kind.RECV_INIT, Kind.SEND_INIT):
                for number in numbers:
                    one, other = self.edges[number]
                    place, peer = (other, one) if kind is Kind.RECV_INIT else (one, other)
                    own[place].append((self._init(kind, place, peer, sizes[number]), peer))
            self.requests.append(own)

    def _init(self, kind: Kind, place: int, peer: int, size: int) -> int:
        rank = self.group.ranks[place]
        rank.persistent += 1
        comm = self.group.comm[place]
        rank.add(kind, comm=comm, peer=peer, tag=self.tag, request=rank.persistent, size=size)
        return rank.persistent

    def make(self, turn: int) -> None:
        self._compute(turn)
        for numbers, own in zip(self.rounds, self.requests, strict=True):
            for place, (rank, comm) in enumerate(zip(self.group.ranks, self.group.comm, strict=True)):
                for position, (request, _) in enumerate(own[place]):
                    several = len(own[place]) > 1
                    flags = 0 if not several else Flag.FIRST if position == 0 else Flag.NEXT
                    rank.add(Kind.START, flags=flags, comm=comm, request=request)
                rank.compute(self.overlap[turn][place])
                rank.wait([one for one, _ in own[place]], comm, [peer for _, peer in own[place]], self.tag)
            self._arrive([(*self.edges[number], 0) for number in numbers])

    def end(self) -> None:
        for own in self.requests:
            for rank, requests in zip(self.group.ranks, own, strict=True):
                for request, _ in requests:
                    rank.add(Kind.FREE, request=request)


class _Neighborhood(_Exchange):
    """MPI_Neighbor_alltoallv on a communicator that has the graph; where something overlaps, its nonblocking form."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        self._require_one_each()
        members = [rank.number for rank in group.ranks]
        self.rounds = [list(range(len(self.edges)))]
        self.graph_comm = [
            rank.communicator(
                members,
                [one for one, other in self.edges if other == place],
                [other for one, other in self.edges if one == place],
            )
            for place, rank in enumerate(group.ranks)
        ]

    def exchange(self, messages: Sequence[tuple[int, int, int]], turn: int) -> None:
        sizes: list[list[int]] = [[] for _ in self.group.ranks]
        for one, _, size in messages:
            sizes[one].append(size)
        is_begun = self.step.overlap is not None
        for place, (rank, comm) in enumerate(zip(self.group.ranks, self.graph_comm, strict=True)):
            request = rank.persistent + 1 if is_begun else 0
            rank.add(
                Kind.NEIGHBOR_ALLTOALLV,
                flags=Flag.NONBLOCKING if is_begun else 0,
                comm=comm,
                request=request,
                size=sum(sizes[place]),
                payload=np.array(sizes[place], dtype="<u8").tobytes(),
            )
            if is_begun:
                rank.compute(self.overlap[turn][place])
                rank.wait([request], comm, [NOBODY], 0)
        self._arrive(messages)


class _OneSided(_Exchange):
    """MPI_Put into a window of each rank, between two MPI_Win_fence."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        for rank in group.ranks:
            rank.stream.mark(Unsound.ONE_SIDED)

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        super().draw(count, generator, samples)
        drawn = list(self._sizes)
        self._sizes = iter(drawn)
        # All messages of an iteration lie side by side in the window.
        incoming = np.zeros(len(self.group), dtype=np.int64)
        for turn in range(count):
            now: NDArray[np.int64] = np.zeros(len(self.group), dtype=np.int64)
            for (_, other), rate in zip(self.edges, self.rates, strict=True):
                for _ in range(_share(turn, rate)):
                    now[other] += next(self._sizes)
            incoming = np.maximum(incoming, now)
        self._sizes = iter(drawn)
        for rank, comm, size in zip(self.group.ranks, self.group.comm, incoming.tolist(), strict=True):
            rank.add(Kind.WINDOW, comm=comm, tag=self.tag, size=size)

    def exchange(self, messages: Sequence[tuple[int, int, int]], turn: int) -> None:
        for rank, comm in zip(self.group.ranks, self.group.comm, strict=True):
            rank.add(Kind.FENCE, comm=comm, tag=self.tag)
        offsets = [0] * len(self.group)
        for one, other, size in messages:
            payload = offsets[other].to_bytes(8, "little")
            rank = self.group.ranks[one]
            rank.add(
                Kind.PUT, comm=self.group.comm[one], peer=other, tag=self.tag, size=size, payload=payload
            )
            offsets[other] += size
        latest_ns = 0
        for place, (rank, comm) in enumerate(zip(self.group.ranks, self.group.comm, strict=True)):
            rank.compute(self.overlap[turn][place])
            rank.add(Kind.FENCE, comm=comm, tag=self.tag, size=offsets[place])
            latest_ns = max(latest_ns, rank.now_ns)
        for rank in self.group.ranks:
            rank.now_ns = latest_ns

    def end(self) -> None:
        for rank, comm in zip(self.group.ranks, self.group.comm, strict=True):
            rank.add(Kind.WINDOW_FREE, comm=comm, tag=self.tag)


class _Ordered(_Step):
    """Steps in which one rank waits for another: blocking messages."""

    def draw(self, count: int, generator: np.random.Generator, samples: Samples) -> None:
        tasks = self.tasks()
        self.compute = self._table("compute", count, tasks, generator, samples)
        self.think = self._table("think", count, tasks, generator, samples)
        self.sizes = self._table("size", count, tasks, generator, samples)
        self.replies = self.sizes
        if self.step.reply is not None:
            self.replies = self._table("reply", count, tasks, generator, samples)

    def tasks(self) -> int:
        """Return how many times something is computed, and sent, each time that the step is made."""
        return len(self.group)

    def send(self, one: int, other: int, size: int, *, is_any: bool = False, tag_of: int = 0) -> None:
        """Send a message from one rank to the other, which receives it now."""
        self.begin(one, other, size, tag_of=tag_of)
        self.receive(one, other, size, self.group.ranks[one].now_ns, is_any=is_any, tag_of=tag_of)

    def begin(self, one: int, other: int, size: int, *, tag_of: int = 0) -> None:
        rank, comm = self.group.ranks[one], self.group.comm[one]
        rank.add(Kind.SEND, comm=comm, peer=other, tag=self.tag + tag_of, size=size)

    def receive(
        self, one: int, other: int, size: int, sent_ns: int, *, is_any: bool = False, tag_of: int = 0
    ) -> None:
        rank, comm = self.group.ranks[other], self.group.comm[other]
        flags = Flag.WILD if is_any else 0
        rank.add(Kind.RECV, flags=flags, comm=comm, peer=one, tag=self.tag + tag_of, size=size)
        rank.now_ns = max(rank.now_ns, sent_ns)


class _Pipeline(_Ordered):
    """Each rank gets an item from the one before it, computes, and gives it to the next."""

    def make(self, turn: int) -> None:
        last = len(self.group) - 1
        for place, rank in enumerate(self.group.ranks):
            rank.compute(self.compute[turn][place])
            if place < last:
                self.send(place, place + 1, self.sizes[turn][place])


class _TokenRing(_Ordered):
    """A token goes once around; who has it computes."""

    def make(self, turn: int) -> None:
        count = len(self.group)
        for place, rank in enumerate(self.group.ranks):
            rank.compute(self.compute[turn][place])
            if count > 1:
                self.send(place, (place + 1) % count, self.sizes[turn][place])


class _Tree(_Ordered):
    """From the root down to the leaves, up from them to the root, or first down and then up."""

    def make(self, turn: int) -> None:
        direction = self.step.direction or "both"
        fan_out = self.step.fan_out or 2
        count = len(self.group)
        links = [graph.tree(place, count, fan_out) for place in range(count)]
        if direction != "up":
            for place, (_, children) in enumerate(links):
                self.group.ranks[place].compute(self.compute[turn][place])
                for child in children:
                    self.send(place, child, self.sizes[turn][child])
        if direction == "down":
            return
        for place in reversed(range(count)):
            if direction == "up":
                self.group.ranks[place].compute(self.compute[turn][place])
        for place in reversed(range(count)):
            parent = links[place][0]
            if parent is not None:
                self.begin(place, parent, self.replies[turn][place], tag_of=1)
                sent_ns = self.group.ranks[place].now_ns
                self.receive(place, parent, self.replies[turn][place], sent_ns, tag_of=1)


class _ClientServer(_Ordered):
    """Clients think, ask, and wait for the answer; a server serves who came first."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        self.servers = step.servers or 1
        self.requests = step.requests or 1
        if len(group) <= self.servers:
            fail(
                "servers",
                f"{self.servers} of {len(group)} ranks: no client is left; give the program more ranks",
            )

    def tasks(self) -> int:
        return (len(self.group) - self.servers) * self.requests

    def make(self, turn: int) -> None:
        ranks = self.group.ranks
        for server in range(self.servers):
            clients = range(self.servers + server, len(ranks), self.servers)
            waiting: list[tuple[int, int, int]] = []
            for client in clients:
                self._ask(turn, client, server, 0, waiting)
            while waiting:
                sent_ns, client, number = heappop(waiting)
                task = self._task(client, number)
                self.receive(client, server, self.sizes[turn][task], sent_ns, is_any=True)
                ranks[server].compute(self.compute[turn][task])
                self.send(server, client, self.replies[turn][task], tag_of=1)
                if number + 1 < self.requests:
                    self._ask(turn, client, server, number + 1, waiting)

    def _task(self, client: int, number: int) -> int:
        return (client - self.servers) * self.requests + number

    def _ask(
        self, turn: int, client: int, server: int, number: int, waiting: list[tuple[int, int, int]]
    ) -> None:
        task = self._task(client, number)
        self.group.ranks[client].compute(self.think[turn][task])
        self.begin(client, server, self.sizes[turn][task])
        heappush(waiting, (self.group.ranks[client].now_ns, client, number))


class _TaskFarm(_Ordered):
    """The first rank gives tasks out, one at a time to each of the others; who is back first gets the next."""

    def __init__(self, step: Step, group: _Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        if len(group) == 1:
            fail("exchange", "a task farm has a master and workers: give the program 2 ranks or more")

    def tasks(self) -> int:
        return self.step.tasks or _TASKS_EACH * (len(self.group) - 1)

    def make(self, turn: int) -> None:
        tasks = self.tasks()
        ranks = self.group.ranks
        working: list[tuple[int, int, int]] = []
        given = 0
        for worker in range(1, len(ranks)):
            if given < tasks:
                working.append(self._give(turn, worker, given))
                given += 1
            else:
                self._end(worker)
        heapify(working)
        while working:
            back_ns, worker, task = heappop(working)
            self.begin(worker, 0, self.replies[turn][task], tag_of=1)
            self.receive(worker, 0, self.replies[turn][task], back_ns, is_any=True, tag_of=1)
            if given < tasks:
                heappush(working, self._give(turn, worker, given))
                given += 1
            else:
                self._end(worker)

    def _give(self, turn: int, worker: int, task: int) -> tuple[int, int, int]:
        """Send a task; returns when the worker is done with it, the worker, and the task."""
        self.send(0, worker, self.sizes[turn][task])
        self.group.ranks[worker].compute(self.compute[turn][task])
        return self.group.ranks[worker].now_ns, worker, task

    def _end(self, worker: int) -> None:
        self.send(0, worker, 0, tag_of=2)


_METHODS: dict[str, type[_Exchange]] = {
    "blocking": _Blocking,
    "nonblocking": _Nonblocking,
    "persistent": _Persistent,
    "neighborhood": _Neighborhood,
    "one-sided": _OneSided,
}
_ORDERED: dict[str, type[_Ordered]] = {
    "client-server": _ClientServer,
    "task-farm": _TaskFarm,
    "token-ring": _TokenRing,
    "pipeline": _Pipeline,
    "tree": _Tree,
}
#: Tags that one step may use.
_TAGS = 4


def ranks_of(document: Document, ranks: int | None) -> tuple[int, list[list[int]]]:
    """Return how many ranks a pattern has, and those of each program.

    Parameters
    ----------
    ranks
        As many as there are to be; None for those that the pattern says.

    Raises
    ------
    ConfigError
        They are not enough, or nobody says how many.
    """
    pattern = document.pattern
    everybody = ranks if ranks is not None else pattern.ranks
    if everybody is None:
        everybody = _least(pattern.program)
    if everybody is None:
        document.fail("ranks", "missing: how many ranks there are; give it here or with --ranks")
    taken = 0
    found = []
    for number, program in enumerate(pattern.program):

        def fail(why: str, at: str = f"program[{number}].ranks") -> NoReturn:
            document.fail(at, why)

        own, taken = _own(program, taken, everybody, fail)
        found.append(own)
    return everybody, found


def _least(programs: Sequence[Program]) -> int | None:
    """Return the ranks that programs name themselves, where all do."""
    counted = 0
    highest = 0
    for program in programs:
        if isinstance(program.ranks, int):
            counted += program.ranks
        elif isinstance(program.ranks, list):
            highest = max([highest, *(rank + 1 for rank in program.ranks)])
        else:
            return None
    return max(counted, highest)


def _own(
    program: Program, taken: int, everybody: int, fail: Callable[[str], NoReturn]
) -> tuple[list[int], int]:
    """Return the ranks of a program, and how many are taken by programs that take the next ones."""
    said = program.ranks
    if said is None:
        return list(range(everybody)), taken
    if isinstance(said, list):
        if not said or len(set(said)) != len(said):
            fail(f"{said}: each rank once, and at least one")
        if min(said) < 0 or max(said) >= everybody:
            fail(f"{max(said) if min(said) >= 0 else min(said)}: there are the ranks 0 to {everybody - 1}")
        return said, taken
    if isinstance(said, str):
        share = said.strip().removesuffix("%")
        if not said.strip().endswith("%") or not share.isdigit() or not 1 <= int(share) <= 100:
            fail(f'{said!r}: a number, a list of ranks, or a share such as "50%"')
        said = max(1, everybody * int(share) // 100)
    if said < 1:
        fail(f"{said}: 1 or more")
    if taken + said > everybody:
        fail(
            f"{said} more ranks than the {taken} of programs before it, of {everybody}: there are not as many"
        )
    return list(range(taken, taken + said)), taken + said


def operations(document: Document, ranks: int | None, samples: Samples) -> Operations:
    """Return what every rank of a pattern does; the same for the same pattern, ranks and seed.

    Parameters
    ----------
    ranks
        See `ranks_of`.
    samples
        What the pattern's empirical distributions are drawn from.

    Raises
    ------
    ConfigError
        The pattern cannot have so many ranks; names the file, the line and the key.
    """
    pattern = document.pattern
    everybody, members = ranks_of(document, ranks)
    all_ranks = [_Rank(rank, everybody, pattern.title) for rank in range(everybody)]
    programs = []
    for number, own in enumerate(members):
        group = _Group([all_ranks[rank] for rank in own], everybody)
        programs.append(_steps(document, number, group, everybody))
    for number, (program, steps) in enumerate(zip(pattern.program, programs, strict=True)):
        for place, step in enumerate(steps):
            seed = np.random.SeedSequence([pattern.seed, number, place])
            step.draw(step.count(program.iterations), np.random.default_rng(seed), samples)
    # Ranks of several programs go on with the one that is behind; all of them in the same order.
    turns = [0] * sum(map(len, programs))
    for number, iteration in _in_order([program.iterations for program in pattern.program]):
        _iterate(number, iteration, programs, turns)
        if sum(rank.records for rank in all_ranks) > MOST_RECORDS:
            document.fail(
                f"program[{number}].iterations",
                f"more than {MOST_RECORDS} operations: fewer iterations are enough, as they are repeated",
            )
    for steps in programs:
        for step in steps:
            step.end()
    names = [program.name for program in pattern.program]
    return Operations([rank.finish() for rank in all_ranks], dict(zip(names, members, strict=True)))


def _steps(document: Document, number: int, group: _Group, everybody: int) -> list[_Step]:
    found = []
    for place, step in enumerate(document.pattern.program[number].step):

        def fail(key: str, why: str, at: str = f"program[{number}].step[{place}]") -> NoReturn:
            document.fail(f"{at}.{key}", why)

        found.append(_made(step, group, place * _TAGS, fail, everybody))
    return found


def _made(step: Step, group: _Group, tag: int, fail: Fail, everybody: int) -> _Step:
    if step.collective is not None:
        return _Collective(step, group, tag, fail, everybody)
    if step.exchange in _ORDERED:
        return _ORDERED[step.exchange](step, group, tag, fail)
    if step.exchange is not None:
        return _METHODS[step.method or "nonblocking"](step, group, tag, fail)
    return _Step(step, group, tag, fail)


def _in_order(iterations: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield program and iteration of all programs, in the order in which a rank of all would make them."""
    following = [((0.0, number), 0) for number in range(len(iterations))]
    heapify(following)
    while following:
        (_, number), iteration = heappop(following)
        yield number, iteration
        if iteration + 1 < iterations[number]:
            heappush(following, (((iteration + 1) / iterations[number], number), iteration + 1))


def _iterate(number: int, iteration: int, programs: Sequence[Sequence[_Step]], turns: list[int]) -> None:
    """Add one iteration of a program."""
    steps = programs[number]
    for rank in steps[0].group.ranks:
        if rank.program != number + 1:
            rank.program = number + 1
            rank.add(Kind.PHASE, tag=number + 1)
    first = sum(map(len, programs[:number]))
    for place, step in enumerate(steps, first):
        for _ in range(step.happens(iteration)):
            step.make(turns[place])
            turns[place] += 1
