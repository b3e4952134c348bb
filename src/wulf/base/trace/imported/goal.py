"""GOAL, the text that LogGOPSim (txt2bin) and ATLAHS read: a schedule of calc, send and recv for each rank.  Pure.

A rank's steps may be made in any order that their dependencies allow; here one after the other, in the order of the
text where it is free. Messages are begun, and waited for before what requires them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Literal, NoReturn

from wulf.base.errors import TraceError
from wulf.base.text import count, printable
from wulf.base.trace.imported import numbers
from wulf.base.trace.imported.numbers import Fail
from wulf.base.trace.imported.steps import Steps

#: A comment without an end goes to that of the file, so that none is looked for twice.
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_LABEL = re.compile(r"(\w+)\s*:\s*(.*)")
_CALC = re.compile(r"calc\s+(\d+)((?:\s+\w+\s+\d+)*)")
_MESSAGE = re.compile(r"(send|recv)\s+(\d+)\s*b?\s+(to|from)\s+(\d+)((?:\s+\w+\s+\d+)*)")
_NEEDS = re.compile(r"(\w+)\s+(i?requires)\s+(\w+)")
_RANK = re.compile(r"rank\s+(\d+)\s*\{")


@dataclass
class _Step:
    verb: Literal["calc", "send", "recv"]
    #: Nanoseconds, or bytes.
    amount: int
    peer: int = 0
    tag: int = 0
    #: Steps that have to be done, and to have begun, before it.
    after: set[int] = field(default_factory=set)
    begun_after: set[int] = field(default_factory=set)


def streams(text: str, origin: str) -> list[bytes]:
    """Return the streams of all ranks.

    Raises
    ------
    TraceError
        It is no such text, or a schedule cannot end; names the line.
    """
    schedules = _Reader(origin).read(text)
    return [_stream(rank, len(schedules), steps, origin) for rank, steps in enumerate(schedules)]


class _Reader:
    """Reads one line after the other."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._line = 0
        self._ranks: list[list[_Step] | None] = []
        #: Of the rank that is being read; None between two.
        self._steps: list[_Step] | None = None
        self._labels: dict[str, int] = {}

    def read(self, text: str) -> list[list[_Step]]:
        """Return the steps of all ranks."""
        blank = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
        for self._line, line in enumerate(blank.split("\n"), 1):
            if line.strip():
                self._take(line.strip())
        if not self._ranks:
            self._fail("not GOAL: no num_ranks")
        missing = [rank for rank, found in enumerate(self._ranks) if found is None]
        if missing:
            self._fail(f"rank {missing[0]} is missing")
        return [one for one in self._ranks if one is not None]

    def _fail(self, why: str) -> NoReturn:
        raise TraceError(f"{self._origin}:{self._line}: {why}")

    def _take(self, words: str) -> None:
        rank = _RANK.fullmatch(words)
        if words.startswith("num_ranks"):
            count = words.rsplit(maxsplit=1)[-1]
            if self._ranks or not count.isdecimal() or not count.strip("0"):
                self._fail("num_ranks: the number of ranks, once")
            self._ranks = [None] * numbers.whole(count, numbers.MOST_RANKS, "num_ranks", self._fail)
        elif rank is not None:
            self._begin(numbers.whole(rank[1], numbers.MOST_RANKS, "the rank", self._fail))
        elif words == "}":
            self._steps = None
        elif self._steps is None:
            self._fail(f"{printable(words, 60)}: outside of a rank")
        elif (needs := _NEEDS.fullmatch(words)) is not None:
            self._require(self._steps, *needs.groups())
        else:
            self._add(self._steps, words)

    def _begin(self, rank: int) -> None:
        if rank >= len(self._ranks) or self._ranks[rank] is not None or self._steps is not None:
            self._fail(f"rank {rank}: below num_ranks, each once, after the end of the one before")
        self._steps, self._labels = [], {}
        self._ranks[rank] = self._steps

    def _require(self, steps: list[_Step], label: str, how: str, before: str) -> None:
        for name in (label, before):
            if name not in self._labels:
                self._fail(f"{printable(name, 40)}: there is no such step before this line")
        step = steps[self._labels[label]]
        (step.after if how == "requires" else step.begun_after).add(self._labels[before])

    def _add(self, steps: list[_Step], words: str) -> None:
        labelled = _LABEL.fullmatch(words)
        if labelled is not None:
            if labelled[1] in self._labels:
                self._fail(f"{printable(labelled[1], 40)}: is there twice")
            self._labels[labelled[1]] = len(steps)
            words = labelled[2]
        steps.append(_step(words, len(self._ranks), self._fail))


def _step(words: str, ranks: int, fail: Fail) -> _Step:
    calc, message = _CALC.fullmatch(words), _MESSAGE.fullmatch(words)
    if calc is not None:
        _options(calc[2], fail)
        return _Step("calc", numbers.whole(calc[1], numbers.MOST_NS, "the time", fail))
    if message is None or (message[1] == "send") != (message[3] == "to"):
        fail(f"{printable(words, 60)}: neither calc, send nor recv")
    peer = numbers.whole(message[4], numbers.MOST_RANKS, "the rank", fail)
    if peer >= ranks:
        fail(f"there is no rank {peer}")
    verb: Literal["send", "recv"] = "send" if message[1] == "send" else "recv"
    size = numbers.whole(message[2], numbers.MOST_BYTES, "the size", fail)
    return _Step(verb, size, peer, _options(message[5], fail))


def _options(text: str, fail: Fail) -> int:
    """Return the tag; a rank has one CPU here, and its node one interface."""
    words = text.split()
    options = {
        name: numbers.whole(number, numbers.MOST_TAG, name, fail)
        for name, number in zip(words[::2], words[1::2], strict=True)
    }
    for name in options:
        if name not in ("tag", "cpu", "nic"):
            fail(f"{printable(name, 40)}: neither tag, cpu nor nic")
    if options.get("cpu", 0) > 0:
        fail("a second CPU of a rank: a rank has one here")
    return options.get("tag", 0)


def _stream(rank: int, ranks: int, steps: list[_Step], origin: str) -> bytes:
    made = Steps(rank, ranks, "GOAL")
    begun: dict[int, int] = {}

    def wait(number: int) -> None:
        step = steps[number]
        made.wait(begun.pop(number), step.peer, step.tag, step.amount)

    order = list(_in_order(steps))
    if len(order) < len(steps):
        left = len(steps) - len(order)
        raise TraceError(
            f"{origin}: rank {rank}: {count(left, 'step')} in a circle, each waiting for another"
        )
    for number in order:
        step = steps[number]
        for before in sorted(step.after & begun.keys()):
            wait(before)
        if step.verb == "calc":
            made.compute(step.amount)
        elif step.verb == "send":
            begun[number] = made.begin_send(step.peer, step.tag, step.amount)
        else:
            begun[number] = made.begin_receive(step.peer, step.tag, step.amount)
    for number in sorted(begun):
        wait(number)
    return made.finish()


def _in_order(steps: list[_Step]) -> Iterator[int]:
    """Yield steps so that each comes after those that it needs, else as they stand; not those of a circle."""
    waiting = [len(step.after | step.begun_after) for step in steps]
    followers: list[list[int]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for before in step.after | step.begun_after:
            followers[before].append(number)
    ready = [number for number, count in enumerate(waiting) if count == 0]
    heapify(ready)
    while ready:
        number = heappop(ready)
        yield number
        for follower in followers[number]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, follower)
