"""Who is given a change next, and where nothing more is set: the course of a roll-out.  Pure.

The real roll-out and the simulated ones of ``make bench NAME=rollout`` go through this and `evidence`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from wulf.base.disjoint_rounds import disjoint
from wulf.base.errors import WulfError
from wulf.base.nodeset import fold
from wulf.base.records import Pair
from wulf.base.text import count
from wulf.tools.rollout.evidence import TRIES, Loss, Match, Round, StepTest, together
from wulf.tools.rollout.record import Hardware, RolledNode, RolloutPlan, RolloutStep

#: Looks at the losses of a pair, at most.
LOOKS = 8
#: Nothing more is set on a kind of nodes after two steps in a row in which more were put back for good than is
#: tolerated, or four after which it could not be told of any node: of a pair of which one harms, that is usual.
STRIKES, PUT_BACK, UNTOLD = 4, 2, 1
#: States of nodes that were put back.
_FAILING = ("harmed", "cannot tell", "refused")


class HaltError(WulfError):
    """Something that halts a whole roll-out, such as a node that does not answer; says what."""


def still_known(steps: Sequence[RolloutStep], having: Collection[str]) -> list[list[RolledNode]]:
    """Return what earlier steps say of their nodes, by step, to who goes on.

    A node that has lost what was kept there (it was booted since, or the program ended before it was set) is to be
    tried again. A step that was halted or interrupted was put back, and says nothing.

    Parameters
    ----------
    having
        Nodes that have the change now.
    """
    outcomes = [
        [one for one in step.outcomes if one.state != "kept" or one.node in having]
        for step in steps
        if step.state in ("proven", "done")
    ]
    return [some for some in outcomes if some]


class Bench(Protocol):
    """Where the nodes of a step are measured."""

    def prepare(self, matches: Sequence[Match]) -> Mapping[str, str]:
        """Try whether the nodes of a step take the change; return those that do not, and why."""

    def round(self, matches: Sequence[Match], number: int) -> Round:
        """Measure every pair under each of the four states, in random order; raises HaltError."""

    def losses(self, matches: Sequence[Match]) -> Mapping[Pair, Loss | str]:
        """Count datagrams lost with the change and without it, on both nodes of a pair or on one; raises HaltError."""


def measure(test: StepTest, bench: Bench, rounds: int, another: Callable[[], bool] = lambda: True) -> None:
    """Measure the nodes of a step until of each is told whether the change harms it, or it takes too long.

    Parameters
    ----------
    another
        Whether there is time for one more round, or look at losses.

    Raises
    ------
    HaltError
        A node does not answer any more.
    """
    test.refuse(bench.prepare(test.matches))
    looks = 0
    while another():
        if test.rounds < rounds and (matches := test.matches):
            test.take(bench.round(matches, test.rounds))
        elif looks < LOOKS and (losing := [*test.losing, *test.sharing]):
            looks += 1
            for turn in _apart(losing):
                test.lose(turn, bench.losses(turn))
        else:
            return


class Course:
    """What became of the nodes so far, and who is next.

    Parameters
    ----------
    hardware
        Kinds of nodes, each node in one of them.
    settled
        Nodes that are not to be changed.
    """

    def __init__(
        self, plan: RolloutPlan, hardware: Sequence[Hardware], settled: Iterable[RolledNode] = ()
    ) -> None:
        self._plan = plan
        self._hardware = {kind.name: kind for kind in hardware}
        self.kind_of = {node: kind.name for kind in hardware for node in kind.nodes}
        self._outcomes = {one.node: one for one in settled}
        #: Nodes of which it could not be told yet: they are tried once more.
        self._open: dict[str, RolledNode] = {}
        self._sizes = {name: float(plan.canary) for name in self._hardware}
        self._strikes: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._ended: dict[str, str] = {}
        order = random.Random(plan.seed)  # noqa: S311 - reproducible, not secret
        self._order = {
            name: order.sample(kind.nodes, len(kind.nodes)) for name, kind in self._hardware.items()
        }
        #: Steps so far.
        self.steps = 0

    def next(self, free: Collection[str]) -> list[Match]:
        """Return who is given the change in the next step, and with whom each is measured; nobody when all is done.

        Parameters
        ----------
        free
            Nodes that may be changed and measured now.
        """
        chosen = {
            name: some
            for name, kind in self._hardware.items()
            if kind.tried and name not in self._ended and (some := self._chosen(name, free))
        }
        good, others = self._partners(chosen, free)
        return _matched(chosen, good, others, self._tries)

    def _chosen(self, name: str, free: Collection[str]) -> list[str]:
        """Return the nodes of a kind that are next: those that were never tried before those of another try."""
        open_ = [node for node in self._order[name] if node in free and node not in self._outcomes]
        fresh = [node for node in open_ if not self._tries[node]]
        size = max(1, int(self._sizes[name]))
        return fresh[:size] or open_[:size]

    def _partners(
        self, chosen: Mapping[str, Collection[str]], free: Collection[str]
    ) -> tuple[list[str], list[str]]:
        """Return who may be measured with and stays as it is: nodes that have the change, and those that have not."""
        taken = {node for nodes in chosen.values() for node in nodes}
        order = [
            node for nodes in self._order.values() for node in nodes if node in free and node not in taken
        ]
        good = [node for node in order if self._has_it(node)]
        return good, [node for node in order if self._may_stand(node)]

    def _has_it(self, node: str) -> bool:
        return node in self._outcomes and self._outcomes[node].state in ("kept", "had it")

    def _may_stand(self, node: str) -> bool:
        return node not in self._outcomes or self._outcomes[node].state == "other hardware"

    def take(self, outcomes: Sequence[RolledNode]) -> None:
        """Take what became of the nodes of a step."""
        self.steps += 1
        for one in outcomes:
            self._tries[one.node] += 1
            if one.state != "cannot tell" or self._tries[one.node] >= TRIES:
                self._outcomes[one.node] = one
            else:
                self._open[one.node] = one
        # Those that are tried again are suspects: of their kind they say little.
        fresh = [one for one in outcomes if self._tries[one.node] == 1]
        for name in {one.hardware for one in fresh}:
            self._judge(name, [one for one in fresh if one.hardware == name])

    def halt(self, outcomes: Sequence[RolledNode]) -> None:
        """Take what became of nodes of a step that was halted, or of nodes that were put back after it."""
        self._outcomes |= {one.node: one for one in outcomes}

    def _judge(self, name: str, outcomes: Sequence[RolledNode]) -> None:
        """Let the next step of a kind be larger, or smaller, or none."""
        bad = [one for one in outcomes if one.state in _FAILING]
        final = [one for one in bad if one.node in self._outcomes]
        if len(final) > self._plan.tolerate * len(outcomes):
            self._strikes[name] += PUT_BACK
        elif len(bad) == len(outcomes):
            self._strikes[name] += UNTOLD
        else:
            self._strikes[name] = 0
            self._sizes[name] *= self._plan.growth
            return
        self._sizes[name] = float(self._plan.canary)
        if self._strikes[name] >= STRIKES:
            nodes = fold(one.node for one in bad)
            self._ended[name] = f"{len(bad)} of {count(len(outcomes), 'node')} had to be put back: {nodes}"

    @property
    def waiting(self) -> list[str]:
        """Nodes that are to be tried yet."""
        return [
            node
            for name, kind in self._hardware.items()
            if kind.tried and name not in self._ended
            for node in kind.nodes
            if node not in self._outcomes
        ]

    def nodes(self, busy: Mapping[str, str], halted: str = "") -> list[RolledNode]:
        """Return what became of every node.

        Parameters
        ----------
        busy
            Node → why it cannot be changed now.
        halted
            Why the roll-out ended before all were tried; empty where it did not.
        """
        unseen = [one for node, one in self._outcomes.items() if node not in self.kind_of]
        return unseen + [
            self._outcomes.get(node) or self._untouched(node, busy, halted)
            for kind in self._hardware.values()
            for node in kind.nodes
        ]

    def _untouched(self, node: str, busy: Mapping[str, str], halted: str) -> RolledNode:
        name = self.kind_of[node]
        if not self._hardware[name].tried:
            return RolledNode(
                node=node, state="other hardware", reason="it was not tested on such nodes", hardware=name
            )
        if node in self._open and (name in self._ended or node not in busy):
            return self._open[node]
        if name in self._ended:
            return RolledNode(
                node=node, state="not reached", reason="it ended for this hardware", hardware=name
            )
        if node in busy:
            return RolledNode(node=node, state="busy", reason=busy[node], hardware=name)
        reason = halted or "there is no node to measure with"
        return RolledNode(node=node, state="not reached", reason=reason, hardware=name)

    def hardware(self) -> list[Hardware]:
        """Return the kinds, with what the change brought on each and why nothing more is set there."""
        found = []
        for name, kind in self._hardware.items():
            nodes = [one for node in kind.nodes if (one := self._outcomes.get(node) or self._open.get(node))]
            ended = self._ended.get(name, "")
            found.append(msgspec.structs.replace(kind, ended=ended, figures=together(nodes)))
        return found


def _apart(matches: Sequence[Match]) -> list[list[Match]]:
    """Return turns of pairs, nobody being in two of a turn."""
    turns = [[matches[index] for index in turn] for turn in disjoint([match.pair for match in matches])]
    return [turn for turn in turns if turn]


def _matched(
    chosen: Mapping[str, Sequence[str]], good: Sequence[str], others: Sequence[str], tries: Mapping[str, int]
) -> list[Match]:
    """Return pairs: two of a kind that are tried for the first time, and all others with one that stays as it is.

    Who is tried again is measured with who has the change: what was seen before may take both. An odd one is, too,
    where there is such a node.
    """
    having, without = list(good), list(others)
    found = []
    for nodes in chosen.values():
        fresh = [node for node in nodes if not tries[node]]
        found += [Match(*two, both=True) for two in zip(fresh[::2], fresh[1::2], strict=False)]
        for node in fresh[len(fresh) - len(fresh) % 2 :]:
            if having or without:
                found.append(Match(node, (having or without).pop(0), both=False))
        for node in nodes:
            if tries[node] and having:
                found.append(Match(node, having.pop(0), both=False))
    return found
