"""Which nodes share a switch: messages among them take less time than both nodes explain.

What the additive model of `wulf.diagnose.pairs` leaves of each pair is clustered (average linkage). Clusters are found
in anything, so they count only where they are told apart far better than in matrices of mere noise of the same size;
then each of them is divided again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import squareform

from wulf.diagnose.pairs import Matrix, additive

Labels = NDArray[np.int_]

#: Nodes below which noise divides as well as switches do.
FEWEST = 6
#: Groups that a level of the tree may have, and nodes that a group must have.
MOST_GROUPS, FEWEST_TOGETHER = 32, 2
#: Longer between groups by less is no switch's doing, as a share.
LEAST = 0.01
#: Matrices of noise, and how many times better than in the best of them groups must be told apart.
DRAWS, CLEARLY = 40, 1.5
#: Pairs of all drawn matrices together: of many nodes few will do, as they are all alike.
DRAWN_PAIRS = 200_000
#: The order of more nodes is that of the clusters, without turning each to its neighbour.
MOST_ORDERED = 300
SEED = 1


@dataclass(frozen=True)
class Branch:
    """Nodes with something in common that connects them."""

    #: Places in the matrix.
    nodes: tuple[int, ...]
    #: How much longer a message takes to the other branches beside it than within them, as a share.
    further: float


def branches(logs: Matrix) -> list[Branch]:
    """Return the groups of nodes that are closer to each other than to others, larger ones before what they hold.

    Parameters
    ----------
    logs
        As of `wulf.diagnose.pairs.additive`.
    """
    return list(_branches(logs, np.arange(len(logs))))


def _branches(logs: Matrix, places: Labels) -> Iterator[Branch]:
    if len(places) < FEWEST:
        return
    rest = _rest(logs[np.ix_(places, places)])
    score, further, labels = _divided(rest)
    if further < math.log1p(LEAST) or score <= CLEARLY * _of_noise(len(places)):
        return
    for label in np.unique(labels):
        members = places[labels == label]
        if len(members) >= FEWEST_TOGETHER:
            yield Branch(nodes=tuple(members.tolist()), further=math.expm1(further))
            yield from _branches(logs, members)


def order(logs: Matrix) -> list[int]:
    """Return the nodes in an order in which those that are close to each other are neighbours."""
    if len(logs) < FEWEST:
        return list(range(len(logs)))
    distances = _distances(_rest(logs))
    tree = linkage(distances, "average", optimal_ordering=len(logs) <= MOST_ORDERED)
    return [int(place) for place in leaves_list(tree)]


def _rest(logs: Matrix) -> Matrix:
    """Return what both nodes do not explain of each pair; 0 where it was not measured."""
    rest = additive(logs).rest
    return np.where(np.isfinite(rest), rest, 0.0)


def _distances(rest: Matrix) -> NDArray[np.float64]:
    shifted = (rest + rest.T) / 2 - np.min(rest)
    np.fill_diagonal(shifted, 0.0)
    return np.asarray(squareform(shifted, checks=False))


def _divided(rest: Matrix) -> tuple[float, float, Labels]:
    """Return how clearly the best division tells groups apart, what is between them in logarithms, and the groups."""
    distances = _distances(rest)
    tree = linkage(distances, "average")
    values = rest[np.triu_indices(len(rest), 1)]
    best = 0.0, 0.0, np.zeros(len(rest), dtype=int)
    for groups in range(2, min(len(rest) // 2, MOST_GROUPS) + 1):
        labels = fcluster(tree, groups, "maxclust")
        apart = squareform(labels[:, None] != labels[None, :], checks=False)
        count = int(np.sum(apart))
        if count in (0, len(values)):
            continue
        between, within = values[apart], values[~apart]
        further = float(np.mean(between) - np.mean(within))
        scatter = math.sqrt(
            (np.sum((between - np.mean(between)) ** 2) + np.sum((within - np.mean(within)) ** 2))
            / len(values)
        )
        score = further / max(scatter, 1e-9) / math.sqrt(1 / len(between) + 1 / len(within))
        best = max(best, (score, further, labels), key=lambda one: one[0])
    return best


@functools.cache
def _of_noise(nodes: int) -> float:
    """Return how clearly noise alone is divided at best."""
    rng = np.random.default_rng(SEED)
    draws = min(DRAWS, max(DRAWN_PAIRS // math.comb(nodes, 2), 2))
    found = 0.0
    for _ in range(draws):
        noise = np.triu(rng.standard_normal((nodes, nodes)), 1)
        logs = noise + noise.T
        np.fill_diagonal(logs, np.nan)
        found = max(found, _divided(_rest(logs))[0])
    return found
