"""SMPI's time-independent text, of which SimGrid replays a line after the other.  Pure.

As SimGrid 3.32 (Debian 12) to 4 read it (``src/smpi/internals/smpi_replay.cpp``): `RANK ACTION ARGUMENTS`, amounts
of computing in operations, sizes in elements of types that stand at the end. What may be left out has SimGrid's
defaults: root 0, and as type that of `init`: bytes, or doubles where `init` has an argument. Arguments beyond those
that an action has are not looked at. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from wulf.base.errors import TraceError
from wulf.base.text import printable
from wulf.base.trace.imported import numbers
from wulf.base.trace.imported.steps import Steps
from wulf.base.trace.layout import Kind

#: Bytes of an element by the number of its type (``src/smpi/mpi/smpi_datatype.cpp``) on 64-bit Linux; 0 is no type.
_TYPES = (
    # double, int, char, short, long, float, byte, long long; signed and unsigned ones; long double, wchar_t, bool
    *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1),
    # int8_t to uint64_t, complex, MPI_Aint, MPI_Offset
    *(1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8),
    # pairs for reductions, types of Fortran and C++, packed, pointer, count
    *(8, 16, 16, 8, 8, 8, 16, 16),
    *(4, 4, 8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32, 1, 8, 16, 32),
    *(0, 0, 1, 8, 8),
)
_DOUBLE, _BYTE = 0, 6
#: What was begun: (from, to, tag) → request, peer, tag, size.
_Begun = dict[tuple[int, int, int], deque[tuple[int, int, int, int]]]
#: Largest number of operations of a line.
_MOST_OPERATIONS = 1e30


def streams(files: Mapping[str, str], speed: float) -> list[bytes]:
    """Return the streams of all ranks.

    Parameters
    ----------
    files
        Name → text; lines of a rank are in one file, in their order.
    speed
        Operations that a host computes in a second.

    Raises
    ------
    TraceError
        A line cannot be followed; names file and line.
    """
    if not 0 < speed < float("inf"):
        raise TraceError(f"a host computes {speed:g} operations in a second: expected more than none")
    lines: dict[int, list[_Line]] = defaultdict(list)
    for name, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            words = line.split()
            if words and not words[0].startswith("#"):
                rank, one = _line(f"{name}:{number}", line, words)
                lines[rank].append(one)
    if not lines:
        raise TraceError("no line says what a rank does")
    missing = next((rank for rank in range(max(lines) + 1) if rank not in lines), None)
    if missing is not None:
        raise TraceError(f"there are lines of rank {max(lines)}, and none of rank {missing}")
    default = _default_type(lines)
    return [_Rank(rank, len(lines), default, speed).follow(lines[rank]) for rank in range(len(lines))]


class _Line(NamedTuple):
    """A line without its rank."""

    place: str
    verb: str
    arguments: Sequence[str]


def _line(place: str, line: str, words: Sequence[str]) -> tuple[int, _Line]:
    def fail(why: str) -> NoReturn:
        raise TraceError(f"{place}: {printable(line.strip(), 60)}: {why}")

    if len(words) == 1 or not words[0].isdecimal():
        fail("a rank and what it does")
    rank = numbers.whole(words[0], numbers.MOST_RANKS - 1, "the rank", fail)
    return rank, _Line(place, words[1], words[2:])


def _default_type(lines: Mapping[int, Sequence[_Line]]) -> int:
    """Return the type of what names none. SimGrid has one for all ranks, that of the `init` that comes last."""
    said = {
        _DOUBLE if one.arguments else _BYTE: one.place
        for rank in sorted(lines)
        for one in lines[rank]
        if one.verb.lower() == "init"
    }
    if len(said) > 1:
        raise TraceError(
            f"{said[_DOUBLE]}: init with an argument, and none at {said[_BYTE]}: types differ by chance"
        )
    return next(iter(said), _BYTE)


class _Rank:
    """Follows the lines of one rank."""

    def __init__(self, rank: int, ranks: int, default: int, speed: float) -> None:
        self.rank, self.ranks, self.default, self.speed = rank, ranks, default, speed
        self.made = Steps(rank, ranks, "SMPI")
        self.begun: _Begun = defaultdict(deque)

    def follow(self, lines: Iterable[_Line]) -> bytes:
        for line in lines:
            action = _Action(line, self)
            follow = _ACTIONS.get(line.verb.lower())
            if follow is None:
                action.fail("an action that cannot be followed here")
            follow(action)
        self.wait_for_all()
        return self.made.finish()

    def wait_for_all(self) -> None:
        for request in sorted(one for several in self.begun.values() for one in several):
            self.made.wait(*request)
        self.begun.clear()


class _Action:
    """An action with its arguments, counted from 0."""

    def __init__(self, line: _Line, of: _Rank) -> None:
        self._line, self.of, self.made = line, of, of.made

    def fail(self, why: str) -> NoReturn:
        """Raise TraceError: what is wrong with this line."""
        words = " ".join([self._line.verb, *self._line.arguments])
        raise TraceError(f"{self._line.place}: {printable(words, 60)}: {why}")

    def has(self, number: int) -> bool:
        """Whether an argument is there."""
        return number < len(self._line.arguments)

    def amount(self, number: int, most: float = _MOST_OPERATIONS) -> float:
        """Return a number, which may have a point."""
        return numbers.amount(self._word(number), most, f"argument {number + 1}", self.fail)

    def elements(self, number: int) -> int:
        """Return how many elements: a fraction is cut off, as SimGrid does."""
        return int(self.amount(number, numbers.MOST_BYTES))

    def rank(self, number: int) -> int:
        """Return one of the ranks."""
        value = numbers.whole(self._word(number), numbers.MOST_RANKS, f"argument {number + 1}", self.fail)
        if value >= self.of.ranks:
            self.fail(f"there is no rank {value}")
        return value

    def root(self, number: int) -> int:
        """Return the root, which may be left out."""
        return self.rank(number) if self.has(number) else 0

    def tag(self, number: int) -> int:
        """Return a tag."""
        return numbers.whole(self._word(number), numbers.MOST_TAG, f"argument {number + 1}", self.fail)

    def type(self, number: int) -> int:
        """Return the bytes of an element: of the rank's usual type where none is named."""
        kind = self.of.default
        if self.has(number):
            kind = numbers.whole(self._word(number), numbers.MOST_TAG, f"argument {number + 1}", self.fail)
        if kind >= len(_TYPES) or _TYPES[kind] == 0:
            self.fail(f"there is no type {kind}")
        return _TYPES[kind]

    def compute(self, number: int) -> None:
        """Compute as many operations."""
        self.pass_time(self.amount(number) / self.of.speed)

    def pass_time(self, seconds: float) -> None:
        """Compute for so long [s]."""
        if not seconds * 1e9 <= numbers.MOST_NS:
            self.fail("it computes for more than thirty years")
        self.made.compute(seconds * 1e9)

    def _word(self, number: int) -> str:
        if not self.has(number):
            self.fail(f"argument {number + 1} is missing")
        return self._line.arguments[number]


def _nothing(_: _Action) -> None:
    """Communicators and places in a source: SimGrid does nothing either."""


def _compute(action: _Action) -> None:
    action.compute(0)


def _sleep(action: _Action) -> None:
    action.pass_time(action.amount(0))


def _send(action: _Action) -> None:
    action.made.send(*_message(action))


def _receive(action: _Action) -> None:
    action.made.receive(*_message(action))


def _begin_send(action: _Action) -> None:
    message = _message(action)
    peer, tag, _ = message
    action.of.begun[action.of.rank, peer, tag].append((action.made.begin_send(*message), *message))


def _begin_receive(action: _Action) -> None:
    message = _message(action)
    peer, tag, _ = message
    action.of.begun[peer, action.of.rank, tag].append((action.made.begin_receive(*message), *message))


def _message(action: _Action) -> tuple[int, int, int]:
    """Return peer, tag and bytes; a receive whose size is less than 0 gets whatever is sent."""
    line = action._line
    unknown = line.verb.lower() in ("recv", "irecv") and action.has(2) and line.arguments[2].startswith("-")
    if unknown:
        numbers.amount(line.arguments[2][1:], numbers.MOST_BYTES, "argument 3", action.fail)
    size = 0 if unknown else action.elements(2) * action.type(3)
    return action.rank(0), action.tag(1), size


def _send_and_receive(action: _Action) -> None:
    """As isend, recv and wait; the types have to be there."""
    sent, target = action.elements(0), action.rank(1)
    received, source = action.elements(2), action.rank(3)
    if not action.has(5):
        action.fail("expected sizes, ranks and two types")
    size = sent * action.type(4)
    request = action.made.begin_send(target, 0, size)
    action.made.receive(source, 0, received * action.type(5))
    action.made.wait(request, target, 0, size)


def _wait(action: _Action) -> None:
    waiting = action.of.begun[action.rank(0), action.rank(1), action.tag(2)]
    if not waiting:
        action.fail("there is no such message under way")
    action.made.wait(*waiting.popleft())


def _test(action: _Action) -> None:
    """Look whether a message is there, which changes nothing: to wait for one that has come takes no time."""
    action.rank(0), action.rank(1), action.tag(2)


def _wait_for_all(action: _Action) -> None:
    action.of.wait_for_all()


def _barrier(action: _Action) -> None:
    action.made.together(Kind.BARRIER, 0)


def _bcast(action: _Action) -> None:
    action.made.together(Kind.BCAST, action.elements(0) * action.type(2), action.root(1))


def _reduce(action: _Action) -> None:
    action.made.together(Kind.REDUCE, action.elements(0) * action.type(3), action.root(2))
    action.compute(1)


def _reduced(kind: Kind) -> Callable[[_Action], None]:
    def follow(action: _Action) -> None:
        action.made.together(kind, action.elements(0) * action.type(2))
        action.compute(1)

    return follow


def _shared(kind: Kind) -> Callable[[_Action], None]:
    """Of collectives without a root, of which each rank gives as much."""

    def follow(action: _Action) -> None:
        action.elements(1), action.type(3)
        action.made.together(kind, action.elements(0) * action.type(2))

    return follow


def _gather(action: _Action) -> None:
    action.elements(1), action.type(4)
    action.made.together(Kind.GATHER, action.elements(0) * action.type(3), action.root(2))


def _scatter(action: _Action) -> None:
    root = action.root(2)
    sent, received = action.elements(0) * action.type(3), action.elements(1) * action.type(4)
    action.made.together(Kind.SCATTER, sent if action.of.rank == root else received, root)


def _gatherv(action: _Action) -> None:
    ranks = action.of.ranks
    _counts(action, 1, action.type(3 + ranks))
    action.made.together(Kind.GATHERV, action.elements(0) * action.type(2 + ranks), action.root(1 + ranks))


def _scatterv(action: _Action) -> None:
    ranks, rank = action.of.ranks, action.of.rank
    root = action.root(1 + ranks)
    sizes = _counts(action, 0, action.type(2 + ranks))
    own = sizes[root] if rank == root else action.elements(ranks) * action.type(3 + ranks)
    action.made.together(Kind.SCATTERV, own, root, _payload(sizes) if rank == root else b"")


def _allgatherv(action: _Action) -> None:
    ranks = action.of.ranks
    # Behind the counts there may be types, places, or types and places; places alone are told by their number.
    behind = sum(action.has(number) for number in range(1 + ranks, 1 + ranks + max(ranks, 2) + 1))
    typed = behind > ranks or behind <= 2
    action.elements(0)
    element = action.type(2 + ranks if typed else len(action._line.arguments))
    sizes = _counts(action, 1, element)
    action.made.together(Kind.ALLGATHERV, sizes[action.of.rank], payload=_payload(sizes))


def _alltoallv(action: _Action) -> None:
    ranks = action.of.ranks
    action.elements(0), action.elements(1 + ranks)
    _counts(action, 2 + ranks, action.type(3 + 2 * ranks))
    sizes = _counts(action, 1, action.type(2 + 2 * ranks))
    action.made.together(Kind.ALLTOALLV, 0, payload=_payload(sizes))


def _reduce_scatter(action: _Action) -> None:
    ranks = action.of.ranks
    sizes = _counts(action, 0, action.type(1 + ranks))
    action.made.together(Kind.REDUCE_SCATTER, sizes[action.of.rank], payload=_payload(sizes))
    action.compute(ranks)


def _counts(action: _Action, first: int, element: int) -> list[int]:
    """Return the bytes of each rank from as many arguments."""
    return [action.elements(first + number) * element for number in range(action.of.ranks)]


def _payload(sizes: Sequence[int]) -> bytes:
    return np.array(sizes, dtype="<u8").tobytes()


#: By name in small letters: what an action of SMPI does.
_ACTIONS: Mapping[str, Callable[[_Action], None]] = {
    **dict.fromkeys(("init", "finalize", "comm_size", "comm_split", "comm_dup", "location"), _nothing),
    "compute": _compute,
    "sleep": _sleep,
    "send": _send,
    "recv": _receive,
    "isend": _begin_send,
    "irecv": _begin_receive,
    "sendrecv": _send_and_receive,
    "wait": _wait,
    "test": _test,
    "waitall": _wait_for_all,
    "barrier": _barrier,
    "bcast": _bcast,
    "reduce": _reduce,
    "allreduce": _reduced(Kind.ALLREDUCE),
    "scan": _reduced(Kind.SCAN),
    "exscan": _reduced(Kind.EXSCAN),
    "gather": _gather,
    "gatherv": _gatherv,
    "scatter": _scatter,
    "scatterv": _scatterv,
    "allgather": _shared(Kind.ALLGATHER),
    "allgatherv": _allgatherv,
    "alltoall": _shared(Kind.ALLTOALL),
    "alltoallv": _alltoallv,
    "reducescatter": _reduce_scatter,
}
