"""Who takes part in an operation, and who is left out of it.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wulf.base.records import RANKS_OF_A_PAIR, LeftOut, Operation, Pair, Part, Place, Workload
from wulf.base.text import count
from wulf.node.fleet.placement import spread
from wulf.node.probe.suites import Experiment


class Task(NamedTuple):
    """An operation with the sizes that it is to be measured at, as far as it can."""

    operation: Operation
    sizes_bytes: list[int]
    #: How many ranks take part in an operation of all nodes, 0 for all; or in a command, 0 for one that starts its own.
    ranks: int = 0
    #: Of each node.
    ranks_per_node: int = 1
    #: Between two ranks of each node, not between nodes.
    inside: bool = False
    #: What it is made of on every CPU that the nodes turn out to have; None for one that is made as it is.
    each_cpu: Experiment | None = None
    #: Nodes that can take part; None for all.
    nodes: frozenset[str] | None = None
    #: Node of every rank, where that is decided already; empty where it is not.
    place: Place = ()
    #: Pairs, or nodes with themselves, at most; 0 for all.
    most_places: int = 0


def places(task: Task, pairs: Sequence[Pair], left_out: Sequence[LeftOut]) -> list[Place]:
    """Return who takes part.

    That is the pairs; or of the nodes in them that can: all together, if two are left (no more than `task.ranks` of
    their ranks), each alone (of `task.nodes`, where these are named) or with itself; for a command the ranks that it
    has, one on the first node where it starts its own.
    """
    operation = task.operation
    if task.place:
        return [task.place]
    if operation.between_pairs and not task.inside:
        return _some(pairs, task.most_places)
    out = {absent.node for absent in left_out if operation.name in absent.ops}
    everybody = tuple(dict.fromkeys(node for pair in pairs for node in pair if node not in out))
    if task.inside:
        return _some([(node, node) for node in everybody], task.most_places)
    if operation.ranks == 1 and not operation.command:
        return [(node,) for node in everybody if task.nodes is None or node in task.nodes]
    if operation.command:
        return [spread(everybody, task.ranks or 1)]
    ranks = tuple(node for node in everybody for _ in range(task.ranks_per_node))
    ranks = ranks[: task.ranks or None]
    return [ranks] if len(set(ranks)) > 1 else []


def _some(all_of_them: Sequence[Pair], most: int) -> list[Place]:
    """Return so many at most, as far apart as they can be."""
    count = min(most or len(all_of_them), len(all_of_them))
    return [all_of_them[number * len(all_of_them) // count] for number in range(count)]


def absent(workload: Workload, operations: Sequence[Operation], left_out: Sequence[LeftOut]) -> list[LeftOut]:
    """Return who is left out: those who cannot take part, and all where too few others are left for traffic.

    Parameters
    ----------
    left_out
        Those who cannot.
    """
    beside = {operation.name for operation in operations if operation.beside_traffic}
    lonely = [
        lack for part in workload.parts if part.op in beside for lack in _lonely(part, workload, left_out)
    ]
    return [*left_out, *lonely]


def _lonely(part: Part, workload: Workload, left_out: Sequence[LeftOut]) -> list[LeftOut]:
    out = {lack.node for lack in left_out if part.op in lack.ops}
    able = {node for place in workload.places for node in place} - out
    free = min((len(able - set(place)) for place in part.places), default=0)
    if free >= RANKS_OF_A_PAIR:
        return []
    reason = f"it leaves {free} of {count(len(able), 'node')} free, and background traffic needs two: name more nodes"
    return [LeftOut(node=node, ops=[part.op], reason=f"{node}: {reason}") for node in sorted(able)]
