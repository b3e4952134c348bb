"""Steps of a program as they are made: computing, and collectives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from wulf.base.pattern import distributions, graph
from wulf.base.pattern.distributions import Amount, Samples
from wulf.base.pattern.language import Step
from wulf.base.pattern.ranks import Group
from wulf.base.trace.layout import NOBODY, Kind

Fail = Callable[[str, str], NoReturn]
#: Steps that happen now and then are counted with fractions, which are not exact.
ROUNDING = 1e-9
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
_ROOTED = {Kind.BCAST, Kind.GATHER, Kind.SCATTER, Kind.REDUCE}


class Action:
    """One step of a program; `make` is called in every iteration in which it happens."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail) -> None:
        self.step, self.group, self.tag, self.fail = step, group, tag, fail

    def happens(self, iteration: int) -> int:
        """Return how often it is made in an iteration."""
        return share(iteration, self.step.times)

    def count(self, iterations: int) -> int:
        """Return how often it is made in all."""
        return math.floor(iterations * self.step.times + ROUNDING)

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


def share(iteration: int, rate: float) -> int:
    return math.floor((iteration + 1) * rate + ROUNDING) - math.floor(iteration * rate + ROUNDING)


class Collective(Action):
    """All ranks of a group, or of each of several, call it."""

    def __init__(self, step: Step, group: Group, tag: int, fail: Fail, everybody: int) -> None:
        super().__init__(step, group, tag, fail)
        self.kind = _COLLECTIVES[str(step.collective)]
        self.groups = [group]
        if step.groups is not None:
            parts = _parts(step, len(group), fail)
            self.groups = [Group([group.ranks[one] for one in part], everybody) for part in parts]
        root = step.root or 0
        if not 0 <= root < min(map(len, self.groups)):
            fail("root", f"{root} is not a rank of a group of {min(map(len, self.groups))}")
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


def _parts(step: Step, ranks: int, fail: Fail) -> list[list[int]]:
    if isinstance(step.groups, list):
        named = [rank for part in step.groups for rank in part]
        if len(set(named)) != len(named) or any(not part for part in step.groups):
            fail("groups", "each rank is in one group at most, and none is empty")
        if any(not 0 <= rank < ranks for rank in named):
            fail("groups", f"{max(named)} is not a rank of a program of {ranks}: they are counted from 0")
        return step.groups
    rows, columns = graph.balanced(ranks, 2)
    if step.groups == "rows":
        return [list(range(row * columns, (row + 1) * columns)) for row in range(rows)]
    return [list(range(column, ranks, columns)) for column in range(columns)]
