"""Which node, link, direction or group of nodes is slow, from the times between all pairs.

The logarithm of a time is the cluster's, and what each of both nodes adds, and a rest: fitted by median polish, as
most nodes and links are well (Tukey, Exploratory Data Analysis, 1977). A slow node is slow with everybody; a slow link
is a rest that stands out; slow nodes that are quick among themselves have what connects them to the others in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm, t

from wulf.records.diagnosed import Kind, Suspect

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: Slower by less than this is nobody's concern, as a share.
MARGIN = 0.1
#: Chance that anything is suspected where nothing is wrong.
FALSE_ALARM = 0.01
#: Of a normal distribution: standard deviation ÷ median absolute deviation, and of a median ÷ of a mean.
MAD, MEDIAN = 1.4826, 1.2533
#: Rounds of median polish, and what changes less is settled.
ROUNDS, SETTLED = 20, 1e-6
#: Partners without which it cannot be told whether a node or its link is slow.
FEWEST_PARTNERS = 3
#: Share of the nodes that may be slow: of more it is not known who is well.
MOST_OUTLYING = 0.4
#: A scatter below which none is told from another, in logarithms.
LEAST = 1e-4


@dataclass(frozen=True)
class Additive:
    """The logarithms of times as a sum of three."""

    #: Of the whole cluster.
    typical: float
    #: What each node adds; the median is 0.
    nodes: Vector
    #: What is left of each pair; NaN where none was measured.
    rest: Matrix
    #: Scatter of the rest, and of the nodes.
    rest_scatter: float
    node_scatter: float


def additive(logs: Matrix) -> Additive:
    """Fit the times between pairs.

    Parameters
    ----------
    logs
        n × n, symmetric: logarithms of times; NaN where none was measured, and on the diagonal.
    """
    nodes = np.zeros(len(logs))
    typical = float(np.nanmedian(logs))
    for _ in range(ROUNDS):
        before = nodes
        nodes = np.nanmedian(logs - typical - nodes[None, :], axis=1)
        nodes = nodes - np.median(nodes)
        typical = float(np.nanmedian(logs - nodes[:, None] - nodes[None, :]))
        if np.max(np.abs(nodes - before)) < SETTLED:
            break
    rest = logs - typical - nodes[:, None] - nodes[None, :]
    rest_scatter = max(MAD * float(np.nanmedian(np.abs(rest))), LEAST)
    partners = np.maximum(np.sum(np.isfinite(logs), axis=1), 1)
    own = MEDIAN * rest_scatter / np.sqrt(np.median(partners))
    node_scatter = max(MAD * float(np.median(np.abs(nodes))), float(own), LEAST)
    return Additive(typical, nodes, rest, rest_scatter, node_scatter)


def suspects(
    logs: Matrix, names: Sequence[str], *, margin: float = MARGIN, false_alarm: float = FALSE_ALARM
) -> list[Suspect]:
    """Return what is slower than it should be, the worst first.

    Parameters
    ----------
    logs
        As of `additive`; where it is not symmetric, row i, column j is the time of what i sends to j.
    margin
        Slower by less is not said, as a share.
    false_alarm
        Chance that anything is said where all are alike.
    """
    both = _mean_of_directions(logs)
    fit = additive(both)
    floor = math.log1p(margin)
    slow = _slow_nodes(fit, floor, false_alarm / 2)
    found = list(_nodes_and_groups(both, fit, slow, names))
    found += _links(both, fit, floor, false_alarm / 2, names)
    found += _directions(logs, floor, false_alarm / 2, names)
    return sorted(found, key=lambda one: -one.slower)


def _mean_of_directions(logs: Matrix) -> Matrix:
    return np.where(
        np.isfinite(logs) & np.isfinite(logs.T),
        (logs + logs.T) / 2,
        np.where(np.isfinite(logs), logs, logs.T),
    )


def _slow_nodes(fit: Additive, floor: float, chance: float) -> NDArray[np.bool_]:
    """Nodes that add more than those that are alike do, in all but so few cases."""
    return outlying(fit.nodes, chance) & (fit.nodes > floor)


def outlying(values: Vector, chance: float) -> NDArray[np.bool_]:
    """Tell the large ones that do not belong to a normal distribution, of which most are (Rosner's generalized ESD).

    Parameters
    ----------
    chance
        Of any where all belong to it.
    """
    found = np.zeros(len(values), dtype=bool)
    order = np.argsort(-values)
    for taken in range(min(int(MOST_OUTLYING * len(values)), len(values) - FEWEST_PARTNERS)):
        others = values[order[taken:]]
        count = len(others)
        scatter = max(float(np.std(others, ddof=1)), LEAST)
        quantile = float(t.isf(chance / count, count - 2))
        limit = (count - 1) * quantile / math.sqrt((count - 2 + quantile**2) * count)
        if (others[0] - float(np.mean(others))) / scatter > limit:
            found[order[: taken + 1]] = True
    return found


def _nodes_and_groups(
    both: Matrix, fit: Additive, slow: NDArray[np.bool_], names: Sequence[str]
) -> Iterator[Suspect]:
    """Yield slow nodes, put together where they are quick among themselves."""
    places = np.flatnonzero(slow)
    if not len(places):
        return
    among = both[np.ix_(places, places)] - fit.typical
    added = fit.nodes[places]
    quick = among < (added[:, None] + added[None, :]) / 2
    _, labels = connected_components(csr_matrix(np.where(np.isfinite(among), quick, False)), directed=False)
    for label in range(int(labels.max()) + 1):
        members = places[labels == label]
        effect = float(np.median(fit.nodes[members]))
        yield Suspect(
            kind="node" if len(members) == 1 else "group",
            nodes=[names[place] for place in members],
            slower=math.expm1(effect),
            scatter=fit.node_scatter,
            p_value=_chance(effect / fit.node_scatter, len(names)),
        )


def _links(
    both: Matrix, fit: Additive, floor: float, chance: float, names: Sequence[str]
) -> Iterator[Suspect]:
    upper = np.triu(np.ones_like(both, dtype=bool), 1) & np.isfinite(both)
    count = int(np.sum(upper))
    if not count:
        return
    limit = max(floor, float(norm.isf(chance / count)) * fit.rest_scatter)
    for i, j in np.argwhere(upper & (fit.rest > limit)).tolist():
        effect = float(fit.rest[i, j])
        yield Suspect(
            kind="link",
            nodes=[names[i], names[j]],
            slower=math.expm1(effect),
            scatter=fit.rest_scatter,
            p_value=_chance(effect / fit.rest_scatter, count),
        )


def _directions(logs: Matrix, floor: float, chance: float, names: Sequence[str]) -> Iterator[Suspect]:
    """Yield nodes that are slower in sending than in receiving, or the other way round."""
    difference = logs - logs.T
    if not np.isfinite(difference).any() or np.nanmax(np.abs(difference)) == 0:
        return
    # Half of it is the sender's, half the receiver's: with everybody alike it is 0.
    own = np.nanmedian(difference, axis=1)
    scatter = max(MAD * float(np.nanmedian(np.abs(own))), LEAST)
    kinds: tuple[tuple[Kind, Vector], ...] = ("sending", own), ("receiving", -own)
    for kind, excess in kinds:
        for place in map(int, np.flatnonzero(outlying(excess, chance / 2) & (excess > floor))):
            effect = float(excess[place])
            yield Suspect(
                kind=kind,
                nodes=[names[place]],
                slower=math.expm1(effect),
                scatter=scatter,
                p_value=_chance(effect / scatter, len(own)),
            )


def _chance(score: float, among: int) -> float:
    """Chance of so high a score among so many that are alike."""
    return min(1.0, among * float(norm.sf(score)))
