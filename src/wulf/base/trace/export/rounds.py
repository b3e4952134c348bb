"""Collectives as rounds of messages, in textbook algorithms: in a round all is begun, then waited for.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wulf.base.errors import TraceError
from wulf.base.trace.layout import NOBODY, Kind
from wulf.base.trace.reader import Entry

#: To whom how many bytes, and from whom: ranks of the communicator.
Round = tuple[list[tuple[int, int]], list[int]]
#: What making a communicator agrees on [B].
_AGREED = 8


@dataclass(frozen=True)
class Group:
    """A communicator on one rank, its members as ranks of the world."""

    members: tuple[int, ...]
    #: Neighbours, as ranks of the communicator.
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Call:
    rank: int
    ranks: int
    root: int
    bytes: int
    #: Of each rank, or to each; empty where all are alike.
    sizes: tuple[int, ...]

    def of(self, rank: int) -> int:
        return self.sizes[rank] if self.sizes else self.bytes

    @property
    def whole(self) -> int:
        return sum(self.sizes) if self.sizes else self.bytes * self.ranks


def rounds(entry: Entry, group: Group, rank: int) -> Iterator[Round]:
    """Yield what a rank of a communicator sends and receives in a collective.

    Raises
    ------
    TraceError
        There is no algorithm for it.
    """
    sizes = tuple(int(size) for size in entry.sizes())
    if is_neighbourhood(entry.kind):
        own = sizes or (entry.bytes,) * len(group.targets)
        yield list(zip(group.targets, own, strict=True)), list(group.sources)
        return
    ranks = len(group.members)
    if entry.kind not in _ALGORITHMS:
        raise TraceError(f"{entry.kind.name} is not a collective that can be exported")
    root = 0 if entry.peer == NOBODY else entry.peer
    if not 0 <= root < ranks:
        raise TraceError(f"{entry.kind.name}: its root is rank {root} of {ranks}")
    yield from _ALGORITHMS[entry.kind](_Call(rank, ranks, root, entry.bytes, sizes))


def is_neighbourhood(kind: Kind) -> bool:
    """Whether a collective is of neighbours."""
    return Kind.NEIGHBOR_ALLGATHER <= kind <= Kind.NEIGHBOR_ALLTOALLW


def _barrier(call: _Call, size: int = 0) -> Iterator[Round]:
    distance = 1
    while distance < call.ranks:
        yield [((call.rank + distance) % call.ranks, size)], [(call.rank - distance) % call.ranks]
        distance *= 2


def _made(call: _Call) -> Iterator[Round]:
    # A number is proposed, found to be free, and used.
    for _ in range(3):
        yield from _barrier(call, _AGREED)


def _tree(call: _Call, root: int) -> tuple[list[int], int]:
    """Return the children of a rank in a binomial tree, largest part first, and its parent."""
    own = (call.rank - root) % call.ranks
    top = 1
    while top < call.ranks and not own & top:
        top *= 2
    children, part = [], top // 2
    while part:
        if own + part < call.ranks:
            children.append((own + part + root) % call.ranks)
        part //= 2
    return children, (own - top + root) % call.ranks if own else NOBODY


def _bcast(call: _Call, root: int | None = None, size: int | None = None) -> Iterator[Round]:
    children, parent = _tree(call, call.root if root is None else root)
    if parent != NOBODY:
        yield [], [parent]
    yield [(child, call.bytes if size is None else size) for child in children], []


def _reduce(call: _Call, root: int | None = None, size: int | None = None) -> Iterator[Round]:
    children, parent = _tree(call, call.root if root is None else root)
    yield from (([], [child]) for child in reversed(children))
    if parent != NOBODY:
        yield [(parent, call.bytes if size is None else size)], []


def _allreduce(call: _Call) -> Iterator[Round]:
    yield from _reduce(call, 0)
    yield from _bcast(call, 0)


def _others(call: _Call) -> list[int]:
    return [(call.rank + step) % call.ranks for step in range(1, call.ranks)]


def _gather(call: _Call) -> Iterator[Round]:
    yield ([], _others(call)) if call.rank == call.root else ([(call.root, call.bytes)], [])


def _scatter(call: _Call, root: int | None = None) -> Iterator[Round]:
    top = call.root if root is None else root
    yield ([(one, call.of(one)) for one in _others(call)], []) if call.rank == top else ([], [top])


def _allgather(call: _Call) -> Iterator[Round]:
    after, before = (call.rank + 1) % call.ranks, (call.rank - 1) % call.ranks
    for step in range(call.ranks - 1):
        yield [(after, call.of((call.rank - step) % call.ranks))], [before]


def _alltoall(call: _Call) -> Iterator[Round]:
    others = _others(call)
    yield [(one, call.of(one)) for one in others], others[::-1]


def _reduce_scatter(call: _Call) -> Iterator[Round]:
    yield from _reduce(call, 0, call.whole)
    yield from _scatter(call, 0)


def _scan(call: _Call) -> Iterator[Round]:
    if call.rank > 0:
        yield [], [call.rank - 1]
    if call.rank < call.ranks - 1:
        yield [(call.rank + 1, call.bytes)], []


_ALGORITHMS: dict[Kind, Callable[[_Call], Iterator[Round]]] = {
    Kind.BARRIER: _barrier,
    Kind.MAKE_COMMUNICATOR: _made,
    Kind.BCAST: _bcast,
    Kind.REDUCE: _reduce,
    Kind.ALLREDUCE: _allreduce,
    Kind.GATHER: _gather,
    Kind.GATHERV: _gather,
    Kind.SCATTER: _scatter,
    Kind.SCATTERV: _scatter,
    Kind.ALLGATHER: _allgather,
    Kind.ALLGATHERV: _allgather,
    Kind.ALLTOALL: _alltoall,
    Kind.ALLTOALLV: _alltoall,
    Kind.ALLTOALLW: _alltoall,
    Kind.REDUCE_SCATTER: _reduce_scatter,
    Kind.REDUCE_SCATTER_BLOCK: _reduce_scatter,
    Kind.SCAN: _scan,
    Kind.EXSCAN: _scan,
}
