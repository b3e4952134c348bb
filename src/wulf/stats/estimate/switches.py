"""Which nodes hang on one switch, and which switches on one above: from ways, from times, from what neighbours say.

Ways of flows tell switches that route, and how many of them are between two nodes; times tell switches that bridge
(`wulf.stats.estimate.tree`), of six nodes and more.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wulf.stats.estimate import tree
from wulf.stats.estimate.pairs import mean_of_directions

Source = Literal["neighbours", "ways", "times"]
Pair = tuple[str, str]
Hops = Sequence[str | None]
Groups = tuple[tuple[str, ...], ...]
#: How often groups are looked for again in times that are as uncertain as those that were measured.
AGAIN = 10


@dataclass(frozen=True)
class Level:
    """One level of the tree: which nodes are together below each switch."""

    groups: Groups
    #: Of the switch of each group, as far as it is known; empty where it is not.
    names: tuple[str, ...]
    source: Source
    #: Of ways the share of the pairs that agree; of times how often they come out again; 1 of what neighbours say.
    confidence: float


def by_neighbours(switches: Mapping[str, str]) -> Level:
    """Return the lowest level from the switch that each node's port hears (LLDP)."""
    groups: dict[str, list[str]] = {}
    for node, switch in switches.items():
        groups.setdefault(switch, []).append(node)
    ordered = sorted((tuple(sorted(members)), switch) for switch, members in groups.items())
    return Level(
        tuple(members for members, _ in ordered), tuple(name for _, name in ordered), "neighbours", 1.0
    )


def by_ways(nodes: Sequence[str], ways: Mapping[Pair, Sequence[Hops]]) -> list[Level]:
    """Return the levels of switches that route, the lowest first; none where none is between any two nodes.

    Parameters
    ----------
    ways
        Pair, in either order → switches on the way of each of its flows.
    """
    far = {pair: min(len(hops) for hops in flows) for pair, flows in ways.items() if flows}
    if not far or not any(far.values()):
        return []
    first = _first_hops(nodes, ways)
    lowest = _joined(
        nodes,
        lambda one, other: (
            far.get((one, other), far.get((other, one))) == 0
            or (first.get(one) is not None and first.get(one) == first.get(other))
        ),
    )
    found = [Level(lowest, tuple(_name(group, first) for group in lowest), "ways", _agreeing(lowest, far, 1))]
    between = sorted({hops for pair, hops in far.items() if not _together(lowest, pair)})
    for most in between[:-1]:
        groups = _joined(nodes, _within(far, most, lowest))
        if len(groups) < len(found[-1].groups):
            found.append(Level(groups, ("",) * len(groups), "ways", _agreeing(groups, far, most)))
    return found


def by_times(
    nodes: Sequence[str], logs: NDArray[np.float64], errors: NDArray[np.float64], seed: int
) -> list[Level]:
    """Return the levels that the times between nodes show, the lowest first; all nodes where there is one switch.

    Parameters
    ----------
    logs
        n × n: logarithms of times; NaN where none was measured.
    errors
        Standard errors of these.
    seed
        Of the draws that tell how sure it is.
    """
    if len(nodes) < tree.FEWEST:
        return []
    partitions = _partitions(nodes, logs)
    rng = np.random.default_rng(seed)
    agreed = Counter[int]()
    for _ in range(AGAIN):
        noise = np.triu(rng.standard_normal(logs.shape), 1)
        drawn = _partitions(nodes, logs + np.nan_to_num(errors) * (noise + noise.T))
        agreed.update(level for level, groups in enumerate(partitions) if groups in drawn)
    return [
        Level(groups, ("",) * len(groups), "times", agreed[level] / AGAIN)
        for level, groups in enumerate(partitions)
    ]


def _partitions(nodes: Sequence[str], logs: NDArray[np.float64]) -> list[Groups]:
    """Return the division into the smallest branches, and that into the largest where it is another."""
    branches = [branch.nodes for branch in tree.branches(mean_of_directions(logs))]
    if not branches:
        return [(tuple(sorted(nodes)),)]
    found = []
    for pick in (min, max):
        own = {
            place: pick((branch for branch in branches if place in branch), key=len, default=(place,))
            for place in range(len(nodes))
        }
        groups = {tuple(sorted(nodes[place] for place in branch)) for branch in own.values()}
        # What is left of a group that was divided further stays together.
        taken = {node for group in groups for node in group}
        found.append(tuple(sorted(groups | {(node,) for node in nodes if node not in taken})))
    return found if found[0] != found[1] else found[:1]


def _first_hops(nodes: Sequence[str], ways: Mapping[Pair, Sequence[Hops]]) -> dict[str, str]:
    """Return the first switch of each node, as most of its flows have it."""
    counts: dict[str, Counter[str]] = {node: Counter() for node in nodes}
    for (start, _), flows in ways.items():
        counts[start].update(hops[0] for hops in flows if hops and hops[0] is not None)
    return {node: count.most_common(1)[0][0] for node, count in counts.items() if count}


def _name(group: Sequence[str], first: Mapping[str, str]) -> str:
    names = Counter(first[node] for node in group if node in first)
    return names.most_common(1)[0][0] if names else ""


def _within(far: Mapping[Pair, int], most: int, lowest: Groups) -> Callable[[str, str], bool]:
    def joined(one: str, other: str) -> bool:
        hops = far.get((one, other), far.get((other, one)))
        return (hops is not None and hops <= most) or _together(lowest, (one, other))

    return joined


def _joined(nodes: Sequence[str], are_together: Callable[[str, str], bool]) -> Groups:
    """Return the nodes that are together directly or by way of others."""
    group = {node: node for node in nodes}
    for one, other in itertools.combinations(nodes, 2):
        if group[one] != group[other] and are_together(one, other):
            old, new = group[other], group[one]
            group = {node: new if own == old else own for node, own in group.items()}
    found: dict[str, list[str]] = {}
    for node, own in group.items():
        found.setdefault(own, []).append(node)
    return tuple(sorted(tuple(sorted(members)) for members in found.values()))


def _together(groups: Groups, pair: Pair) -> bool:
    return any(pair[0] in group and pair[1] in group for group in groups)


def _agreeing(groups: Groups, far: Mapping[Pair, int], most: int) -> float:
    """Return the share of the pairs whose distance agrees with the groups."""
    if not far:
        return math.nan
    return sum(_together(groups, pair) == (hops <= most) for pair, hops in far.items()) / len(far)
