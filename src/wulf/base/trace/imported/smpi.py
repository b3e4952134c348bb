"""SMPI's time-independent text, of which SimGrid replays a line after the other.  Pure.

As SimGrid 3.32 (Debian 12) reads it: `RANK ACTION ARGUMENTS`, amounts of computing in operations, sizes in elements of
a type that stands at the end.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NoReturn

from wulf.base.errors import TraceError
from wulf.base.text import printable
from wulf.base.trace.imported.steps import Steps
from wulf.base.trace.layout import NOBODY, Kind

#: Bytes of an element by the number of its type: double, int, char, short, long, float, byte.
_TYPES = (8, 4, 1, 2, 8, 4, 1)
_BYTE = 6
#: What was begun: (from, to, tag) → request, peer, tag, size.
_Begun = dict[tuple[int, int, int], deque[tuple[int, int, int, int]]]
_IGNORED = ("init", "finalize", "comm_size")
#: Collectives: kind, place of the root (or None), place of the type. The first argument is the size of the own part.
_TOGETHER: Mapping[str, tuple[Kind, int | None, int]] = {
    "barrier": (Kind.BARRIER, None, 0),
    "bcast": (Kind.BCAST, 1, 2),
    "reduce": (Kind.REDUCE, 2, 3),
    "allreduce": (Kind.ALLREDUCE, None, 2),
    "gather": (Kind.GATHER, 2, 3),
    "scatter": (Kind.SCATTER, 2, 3),
    "allgather": (Kind.ALLGATHER, None, 2),
    "alltoall": (Kind.ALLTOALL, None, 2),
    "scan": (Kind.SCAN, None, 2),
    "exscan": (Kind.EXSCAN, None, 2),
}


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
    lines: dict[int, list[tuple[str, list[str]]]] = defaultdict(list)
    for name, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if not words[0].isdecimal() or len(words) == 1:
                raise TraceError(f"{name}:{number}: {printable(line, 60)}: a rank and what it does")
            lines[int(words[0])].append((f"{name}:{number}", words[1:]))
    if not lines:
        raise TraceError("no line says what a rank does")
    missing = next((rank for rank in range(max(lines) + 1) if rank not in lines), None)
    if missing is not None:
        raise TraceError(f"there are lines of rank {max(lines)}, and none of rank {missing}")
    return [_stream(rank, len(lines), lines[rank], speed) for rank in range(len(lines))]


def _stream(rank: int, ranks: int, lines: Iterable[tuple[str, list[str]]], speed: float) -> bytes:
    made = Steps(rank, ranks, "SMPI")
    begun: _Begun = defaultdict(deque)
    for place, (verb, *arguments) in lines:
        action = _Action(place, verb.lower(), arguments, ranks)
        if action.verb in _IGNORED:
            continue
        if action.verb in ("compute", "sleep"):
            made.compute(action.amount(0) * 1e9 / (speed if action.verb == "compute" else 1.0))
        elif action.verb in ("send", "isend", "recv", "irecv"):
            _message(action, rank, made, begun)
        elif action.verb == "wait":
            ends = (action.rank(0), action.rank(1), action.whole(2))
            if not begun[ends]:
                action.fail("there is no such message under way")
            made.wait(*begun[ends].popleft())
        elif action.verb == "waitall":
            _wait_for_all(made, begun)
        elif action.verb in _TOGETHER:
            kind, root, type_ = _TOGETHER[action.verb]
            size = action.whole(0) * action.element(type_) if kind is not Kind.BARRIER else 0
            made.together(kind, size, NOBODY if root is None else action.rank(root))
        else:
            action.fail("an action that cannot be followed here")
    _wait_for_all(made, begun)
    return made.finish()


def _message(action: _Action, rank: int, made: Steps, begun: _Begun) -> None:
    peer, tag = action.rank(0), action.whole(1)
    size = action.whole(2) * action.element(3)
    if action.verb == "send":
        made.send(peer, tag, size)
    elif action.verb == "recv":
        made.receive(peer, tag, size)
    elif action.verb == "isend":
        begun[rank, peer, tag].append((made.begin_send(peer, tag, size), peer, tag, size))
    else:
        begun[peer, rank, tag].append((made.begin_receive(peer, tag, size), peer, tag, size))


def _wait_for_all(made: Steps, begun: _Begun) -> None:
    for request in sorted(one for several in begun.values() for one in several):
        made.wait(*request)
    begun.clear()


class _Action:
    """A line without its rank."""

    def __init__(self, place: str, verb: str, arguments: list[str], ranks: int) -> None:
        self.verb = verb
        self._place, self._arguments, self._ranks = place, arguments, ranks

    def fail(self, why: str) -> NoReturn:
        raise TraceError(f"{self._place}: {printable(' '.join([self.verb, *self._arguments]), 60)}: {why}")

    def amount(self, number: int) -> float:
        try:
            value = float(self._arguments[number])
        except (IndexError, ValueError):
            self.fail(f"argument {number + 1} is no number")
        if not 0 <= value < 1e30:
            self.fail(f"argument {number + 1} is out of range")
        return value

    def whole(self, number: int) -> int:
        value = self.amount(number)
        if value != int(value) or value >= 2**63:
            self.fail(f"argument {number + 1} is no whole number")
        return int(value)

    def rank(self, number: int) -> int:
        value = self.whole(number)
        if value >= self._ranks:
            self.fail(f"there is no rank {value}")
        return value

    def element(self, number: int) -> int:
        """Bytes of an element; a line that names no type has bytes."""
        kind = self.whole(number) if number < len(self._arguments) else _BYTE
        if kind >= len(_TYPES):
            self.fail(f"there is no type {kind}")
        return _TYPES[kind]
