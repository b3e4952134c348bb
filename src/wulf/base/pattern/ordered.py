"""Exchanges in which one rank waits for another: who comes first is served first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from wulf.base.pattern import graph
from wulf.base.pattern.distributions import Samples
from wulf.base.pattern.language import Step
from wulf.base.pattern.ranks import Group
from wulf.base.pattern.steps import Action, Fail
from wulf.base.text import count
from wulf.base.trace.layout import Flag, Kind, Mark

#: A farm without `tasks` has so many for each worker.
_TASKS_EACH = 4


class Ordered(Action):
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


class Pipeline(Ordered):
    """Each rank gets an item from the one before it, computes, and gives it to the next."""

    def make(self, turn: int) -> None:
        last = len(self.group) - 1
        for place, rank in enumerate(self.group.ranks):
            rank.compute(self.compute[turn][place])
            if place < last:
                self.send(place, place + 1, self.sizes[turn][place])


class TokenRing(Ordered):
    """A token goes once around; who has it computes."""

    def make(self, turn: int) -> None:
        count = len(self.group)
        for place, rank in enumerate(self.group.ranks):
            rank.compute(self.compute[turn][place])
            if count > 1:
                self.send(place, (place + 1) % count, self.sizes[turn][place])


class Tree(Ordered):
    """From the root down to the leaves, up from them to the root, or first down and then up."""

    def make(self, turn: int) -> None:
        direction = self.step.direction or "both"
        fan_out = self.step.fan_out or graph.FAN_OUT
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


class ClientServer(Ordered):
    """Clients think, ask, and wait for the answer; a server serves who came first."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
        super().__init__(step, group, tag, fail)
        self.servers = step.servers or 1
        self.requests = step.requests or 1
        self.asked = 0
        if len(group) <= self.servers:
            fail(
                "servers",
                f"{self.servers} of {count(len(group), 'rank')}: no client is left; give the program more ranks",
            )

    def tasks(self) -> int:
        return (len(self.group) - self.servers) * self.requests

    def make(self, turn: int) -> None:
        ranks = self.group.ranks
        # A client that is one turn ahead must not be served instead of one that is not.
        self.asked = 2 * (turn % 2)
        for server in range(self.servers):
            clients = range(self.servers + server, len(ranks), self.servers)
            ranks[server].mark(Mark.SERVE, comm=self.group.comm[server])
            waiting: list[tuple[int, int, int]] = []
            for client in clients:
                self._ask(turn, client, server, 0, waiting)
            while waiting:
                sent_ns, client, number = heappop(waiting)
                task = self._task(client, number)
                size = self.sizes[turn][task]
                self.receive(client, server, size, sent_ns, is_any=True, tag_of=self.asked)
                ranks[server].compute(self.compute[turn][task])
                self.send(server, client, self.replies[turn][task], tag_of=1)
                if number + 1 < self.requests:
                    self._ask(turn, client, server, number + 1, waiting)
            ranks[server].mark(Mark.DONE)

    def _task(self, client: int, number: int) -> int:
        return (client - self.servers) * self.requests + number

    def _ask(
        self, turn: int, client: int, server: int, number: int, waiting: list[tuple[int, int, int]]
    ) -> None:
        task = self._task(client, number)
        self.group.ranks[client].compute(self.think[turn][task])
        self.begin(client, server, self.sizes[turn][task], tag_of=self.asked)
        heappush(waiting, (self.group.ranks[client].now_ns, client, number))


class TaskFarm(Ordered):
    """The first rank gives tasks out, one at a time to each of the others; who is back first gets the next."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
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
        self._mark(turn)
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
        for rank in ranks:
            rank.mark(Mark.DONE)

    def _mark(self, turn: int) -> None:
        """Say on every rank that a farm begins, and on the master's what every task is."""
        tasks = np.stack([self.sizes[turn], self.compute[turn], self.replies[turn]], axis=1)
        for place, (rank, comm) in enumerate(zip(self.group.ranks, self.group.comm, strict=True)):
            payload = tasks.astype("<u8").tobytes() if place == 0 else b""
            rank.mark(Mark.FARM, comm=comm, peer=0, payload=payload)

    def _give(self, turn: int, worker: int, task: int) -> tuple[int, int, int]:
        """Send a task; returns when the worker is done with it, the worker, and the task."""
        self.send(0, worker, self.sizes[turn][task])
        self.group.ranks[worker].compute(self.compute[turn][task])
        return self.group.ranks[worker].now_ns, worker, task

    def _end(self, worker: int) -> None:
        self.send(0, worker, 0, tag_of=2)


ORDERED: dict[str, type[Ordered]] = {
    "client-server": ClientServer,
    "task-farm": TaskFarm,
    "token-ring": TokenRing,
    "pipeline": Pipeline,
    "tree": Tree,
}
