"""Exchanges in which all ranks send at the same time, by each of the methods that MPI has for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from wulf.base.pattern import distributions, graph
from wulf.base.pattern.distributions import Samples
from wulf.base.pattern.language import Step
from wulf.base.pattern.ranks import Group
from wulf.base.pattern.steps import ROUNDING, Action, Fail, share
from wulf.base.trace.layout import NOBODY, Flag, Kind, Unsound


class Exchange(Action):
    """All ranks send along the edges of a graph, and receive, at the same time."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
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
        messages = sum(math.floor(count * rate + ROUNDING) for rate in self.rates)
        amount = self.step.size
        drawn = distributions.draw(amount, messages, generator, samples, is_time=False)
        self._sizes: Iterator[int] = iter(drawn.tolist())

    def make(self, turn: int) -> None:
        super().make(turn)
        messages = [
            (number, next(self._sizes))
            for number, rate in enumerate(self.rates)
            for _ in range(share(turn, rate))
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


class Blocking(Exchange):
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


class Nonblocking(Exchange):
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


class Persistent(Exchange):
    """Requests that are made once, before the first iteration, with sizes that stay."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
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


class Neighborhood(Exchange):
    """MPI_Neighbor_alltoallv on a communicator that has the graph; where something overlaps, its nonblocking form."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
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


class OneSided(Exchange):
    """MPI_Put into a window of each rank, between two MPI_Win_fence."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
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
                for _ in range(share(turn, rate)):
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


METHODS: dict[str, type[Exchange]] = {
    "blocking": Blocking,
    "nonblocking": Nonblocking,
    "persistent": Persistent,
    "neighborhood": Neighborhood,
    "one-sided": OneSided,
}
