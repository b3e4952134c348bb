"""Which nodes share a switch: messages among them take less time than both nodes explain.

The logarithm of a time is what both nodes add, and something more between nodes that share no switch. What the nodes
alone leave of each pair is clustered (average linkage); each division is bettered node by node, and judged by how far
what it adds between its groups is from nothing (Student's t). Clusters are found in anything, so a division counts
only where it is far better than the best ones of mere noise among as many nodes; then each of its groups is divided
again. How much pairs scatter is known from those between the groups, too, whatever the groups hold: that is what tells
a switch of few nodes apart, whose own pairs are too few to say.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.stats.estimate.pairs import Matrix, additive

Labels = NDArray[np.integer]

#: Nodes below which noise divides as well as switches do, and where it is known from others how much pairs scatter.
FEWEST, FEWEST_WITHIN = 6, 4
#: Groups that a level of the tree may have, of many nodes in steps; and nodes that a group must have.
MOST_GROUPS, FEWEST_TOGETHER = 32, 2
STEPS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
#: Longer between groups by less is no switch's doing, as a share.
LEAST = 0.01
#: Matrices of noise, and how many times better than in the best of them groups must be told apart.
DRAWS, CLEARLY = 40, 1.5
#: Degrees of freedom from which on how much pairs scatter is known at all, and as well as needed.
LEAST_FREEDOM, MOST_FREEDOM = 8, 64
#: Pairs of all drawn matrices together: of many nodes few will do, as they are all alike.
DRAWN_PAIRS = 200_000
#: The order of more nodes is that of the clusters, without turning each to its neighbour; and so many are many.
MOST_ORDERED, MANY = 300, 64
#: Times that all nodes of a division are moved to the group that suits them best.
ROUNDS = 5
#: A rest beyond so many times the typical one is taken as that: it is a link's, not a switch's.
FARTHEST = 4.0
SEED = 1


@dataclass(frozen=True)
class Branch:
    """Nodes with something in common that connects them."""

    #: Places in the matrix.
    nodes: tuple[int, ...]
    #: How much longer a message takes to the other branches beside it than within them, as a share.
    further: float


@dataclass(frozen=True)
class _Scatter:
    """How much pairs scatter that the groups and the nodes explain."""

    #: Sum of squares, and its degrees of freedom.
    squares: float = 0.0
    freedom: int = 0

    def with_pairs_between(self, rest: Matrix, labels: Labels) -> _Scatter:
        """Return what is known with the pairs between groups: all of two groups have the same switches between them.

        What both nodes add is taken off each two groups for themselves, so that nothing within a group comes in.
        """
        squares, freedom = self.squares, self.freedom
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        for one, other in itertools.combinations(groups, 2):
            block = rest[np.ix_(one, other)]
            left = block - block.mean(axis=1)[:, None] - block.mean(axis=0)[None, :] + block.mean()
            squares += float(np.sum(left**2))
            freedom += (len(one) - 1) * (len(other) - 1)
        return _Scatter(squares, freedom).rounded()

    def rounded(self) -> _Scatter:
        """Return it with a power of two as degrees of freedom, not more than there are: noise is drawn for each."""
        if not self.freedom:
            return self
        freedom = min(1 << (self.freedom.bit_length() - 1), MOST_FREEDOM)
        return _Scatter(self.squares * freedom / self.freedom, freedom)


NO_SCATTER = _Scatter()


def branches(logs: Matrix) -> list[Branch]:
    """Return the groups of nodes that are closer to each other than to others, larger ones before what they hold.

    Parameters
    ----------
    logs
        As of `wulf.stats.estimate.pairs.additive`.
    """
    return list(_known_branches(np.ascontiguousarray(logs, dtype=np.float64).tobytes(), len(logs)))


@functools.lru_cache(maxsize=8)
def _known_branches(logs: bytes, count: int) -> tuple[Branch, ...]:
    """Return the branches of a matrix: every verdict on it asks for them."""
    return tuple(_branches(np.frombuffer(logs).reshape(count, count), np.arange(count)))


def _branches(logs: Matrix, places: Labels, known: _Scatter = NO_SCATTER) -> Iterator[Branch]:
    """Yield the groups among some of the nodes, where it is known how much pairs of others scatter."""
    if len(places) < (FEWEST_WITHIN if known.freedom >= LEAST_FREEDOM else FEWEST):
        return
    rest = _rest(logs[np.ix_(places, places)])
    score, labels = _divided(_cut(rest), known)
    _, further = _judged(rest, labels, known)
    if further < math.log1p(LEAST) or score <= CLEARLY * _of_noise(len(places), known.freedom):
        return
    within = known.with_pairs_between(rest, labels)
    for label in np.unique(labels):
        members = places[labels == label]
        if len(members) >= FEWEST_TOGETHER:
            yield Branch(nodes=tuple(members.tolist()), further=math.expm1(further))
            yield from _branches(logs, members, within)


def order(logs: Matrix) -> list[int]:
    """Return the nodes in an order in which those that are close to each other are neighbours."""
    if len(logs) < FEWEST:
        return list(range(len(logs)))
    tree = scipy.cluster.hierarchy.linkage(
        _distances(_cut(_rest(logs))), "average", optimal_ordering=len(logs) <= MOST_ORDERED
    )
    return [int(place) for place in scipy.cluster.hierarchy.leaves_list(tree)]


def _rest(logs: Matrix) -> Matrix:
    """Return what both nodes do not explain of each pair; 0 where it was not measured, and on the diagonal."""
    explained = additive(logs)
    known = np.isfinite(logs)
    fitted = explained.typical + explained.nodes[:, None] + explained.nodes[None, :]
    return _without_nodes(np.where(known, logs, fitted))


def _cut(rest: Matrix) -> Matrix:
    """Return a rest without what stands far out."""
    typical = float(np.median(np.abs(rest[~np.eye(len(rest), dtype=bool)])))
    # Once more without the nodes: what was cut is not in them any more.
    return _without_nodes(np.clip(rest, -FARTHEST * typical, FARTHEST * typical))


def _without_nodes(values: Matrix) -> Matrix:
    """Return what is left of a symmetric matrix beside what its nodes add, by least squares; its diagonal is 0."""
    count = len(values)
    inside = values - np.diag(np.diag(values))
    sums = inside.sum(axis=1)
    nodes = (sums - sums.sum() / (2 * (count - 1))) / (count - 2)
    rest = np.asarray(inside - nodes[:, None] - nodes[None, :], dtype=np.float64)
    np.fill_diagonal(rest, 0.0)
    return rest


def _distances(rest: Matrix) -> NDArray[np.float64]:
    shifted = rest - np.min(rest)
    np.fill_diagonal(shifted, 0.0)
    return np.asarray(scipy.spatial.distance.squareform(shifted, checks=False))


def _divided(rest: Matrix, known: _Scatter) -> tuple[float, Labels]:
    """Return how clearly the best division tells groups apart, and the groups."""
    tree = scipy.cluster.hierarchy.linkage(_distances(rest), "average")
    best = 0.0, np.zeros(len(rest), dtype=int)
    most = min(len(rest) // 2, MOST_GROUPS)
    for groups in range(2, most + 1) if len(rest) <= MANY else [step for step in STEPS if step <= most]:
        labels: Labels = scipy.cluster.hierarchy.fcluster(tree, groups, "maxclust")
        for _ in range(ROUNDS):
            score, further = _judged(rest, labels, known)
            best = max(best, (score, labels), key=lambda one: one[0])
            moved = _moved(rest, labels, further)
            if (moved == labels).all():
                break
            labels = moved
    return best


def _judged(rest: Matrix, labels: Labels, known: _Scatter) -> tuple[float, float]:
    """Return Student's t of what is added between groups, and that, where both nodes may add what they like."""
    apart = _without_nodes((labels[:, None] != labels[None, :]).astype(float))
    spread = float(np.sum(apart**2)) / 2
    if spread <= 0:
        return 0.0, 0.0
    further = float(np.sum(apart * rest)) / 2 / spread
    left = float(np.sum((rest - further * apart) ** 2)) / 2 + known.squares
    freedom = max(math.comb(len(rest), 2) - len(rest) - 1, 1) + known.freedom
    return further / max(math.sqrt(left / freedom / spread), LEAST**2), further


def _moved(rest: Matrix, labels: Labels, further: float) -> Labels:
    """Return each node's best group: in which its times scatter least once what is between groups is taken off."""
    groups = np.unique(labels)
    # A node's own share of the between is taken off with its mean; the others' are those of the fit.
    apart = (labels[:, None] != labels[None, :]).astype(float)
    plain = rest + further * (apart - _without_nodes(apart))
    others = ~np.eye(len(rest), dtype=bool)
    costs = np.stack(
        [np.var(plain - further * (labels != group)[None, :], axis=1, where=others) for group in groups]
    )
    return np.asarray(groups[np.argmin(costs, axis=0)])


@functools.cache
def _of_noise(nodes: int, freedom: int) -> float:
    """Return how clearly noise alone is divided at best, where its scatter is known with so many degrees of freedom."""
    rng = np.random.default_rng(SEED)
    draws = min(DRAWS, max(DRAWN_PAIRS // math.comb(nodes, 2), 2))
    found = 0.0
    for _ in range(draws):
        noise = np.triu(rng.standard_normal((nodes, nodes)), 1)
        known = _Scatter(float(rng.chisquare(freedom)) if freedom else 0.0, freedom)
        found = max(found, _divided(_without_nodes(noise + noise.T), known)[0])
    return found
