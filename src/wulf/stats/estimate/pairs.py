"""Which node, link, direction or group of nodes is slow, from the times between all pairs.

The logarithm of a time is the cluster's, and what each of both nodes adds, and a rest: fitted by least squares without
the pairs that stand out, as most are well; a median polish (Tukey, Exploratory Data Analysis, 1977) says where to
begin. A slow node is slow with all others; a slow link is a rest that stands out; slow nodes that are quick among
themselves have what connects them to the others in common.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records.diagnosed import Kind, Suspect

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: Slower by less than this is nobody's concern, as a share.
MARGIN = 0.1
#: Chance that anything is suspected where nothing is wrong.
FALSE_ALARM = 0.01
#: A node that takes so many times as long is suspected where that is so many times as likely by chance: three others
#: are too few to be as sure as of small effects, and clean clusters that scatter so much are rare.
GROSS, LAX = 2.0, 10.0
#: Of a normal distribution: standard deviation ÷ median absolute deviation.
MAD = 1.4826
#: Nodes that are too few for a median polish; from there on a pair within so many times its scatter is near it.
FEW, NEAR = 16, 5.0
#: Rounds of median polish, and what changes less is settled.
ROUNDS, SETTLED = 20, 1e-6
#: Partners without which it cannot be told whether a node or its link is slow.
FEWEST_PARTNERS = 3
#: Share of the nodes that may be slow: of more it is not known who is well.
MOST_OUTLYING = 0.4
#: Pairs from which a block of them has a middle, and rounds in which these are found.
FEWEST_IN_BLOCK, LEVELLING = 4, 3
#: Share of the cases in which what is visible is named; and logarithm beyond which it does not matter how much it is.
SEEN, LARGEST = 0.9, 20.0
#: Groups of which it cannot be told which one is far from the other.
FEWEST_GROUPS = 2
#: Share of a group that has to be slow for it to be called so.
MOST_OF_GROUP = 0.75
#: A scatter below which none is told from another, in logarithms.
LEAST = 1e-4


@dataclass(frozen=True)
class Structure:
    """What makes nodes differ though nothing is wrong."""

    #: Of each node, what hardware it has; empty where that is not known. Nodes are judged among those of their kind.
    kinds: Sequence[str] = ()
    #: Of each node, the switch that it hangs on; empty where all have one. Between switches messages take longer.
    groups: Sequence[int] = ()

    def blocks(self, count: int) -> list[list[NDArray[np.bool_]]]:
        """Return the pairs whose times have something in common: by two kinds, and by two groups."""
        return [
            _blocks(np.array(labels))
            for labels in (self.kinds, self.groups)
            if len(labels) == count and len(set(labels)) > 1
        ]


#: Nothing is known.
PLAIN = Structure()


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
    #: Standard error of what each node adds, and degrees of freedom of the scatter of the rest.
    errors: Vector
    freedom: int
    #: Variance of what is fitted to each pair ÷ that of the pair.
    leverage: Matrix


def additive(logs: Matrix, chance: float = FALSE_ALARM / 2) -> Additive:
    """Fit the times between pairs by least squares, without those that stand out of it.

    Where there are enough nodes a median polish says which may stand out at first; among few it is the worst one each
    time (externally studentized residuals, Bonferroni), as half of what a median polish leaves there is nothing.

    Parameters
    ----------
    logs
        n × n, symmetric: logarithms of times; NaN where none was measured, and on the diagonal.
    chance
        That any pair is left out where all belong to it.
    """
    measured = np.triu(np.isfinite(logs), 1)
    few = len(logs) < FEW
    used = measured if few else _with_lonely(measured & _near_polish(logs), measured)
    for _ in range(int(np.sum(measured)) if few else ROUNDS):
        fit = _least_squares(logs, used)
        outside = _outside(fit, used, measured, chance)
        if few:
            # One at a time: each hides others.
            outside &= used
            worst = np.nanargmax(np.where(outside, np.abs(fit.rest), np.nan)) if outside.any() else None
            if worst is None:
                return fit
            used = used.copy()
            used.flat[worst] = False
        else:
            now = _with_lonely(measured & ~outside, measured)
            if (now == used).all():
                return fit
            used = now
    return _least_squares(logs, used)


def offsets(both: Matrix, structure: Structure, begin: Matrix | None = None) -> Matrix:
    """Return what a pair takes longer for what its nodes are and where they hang, as logarithms, n × n.

    It is the median of what both nodes do not explain, over all pairs of the same two kinds or switches: a link that
    is slow does not move it.

    Parameters
    ----------
    begin
        What pairs are said to take longer at first; as if nothing were, where it is left out. What all nodes of a group
        have in common may be either's, the nodes' or the group's: it stays where it was put first.
    """
    blocks = structure.blocks(len(both))
    found = np.zeros_like(both) if begin is None else begin
    for _ in range(LEVELLING if blocks else 0):
        for division in blocks:
            rest = additive(both - found).rest
            for block in division:
                values = rest[block & np.isfinite(both)]
                if len(values) >= FEWEST_IN_BLOCK:
                    found[block | block.T] += float(np.median(values))
    return found


def _between_groups(both: Matrix, labels: Sequence[int]) -> Matrix:
    """Return the median of all pairs of the same two groups, without that of all pairs; 0 where there is one group."""
    found, groups = np.zeros_like(both), np.array(labels)
    if len(groups) != len(both) or len(np.unique(groups)) < FEWEST_GROUPS:
        return found
    apart = groups[:, None] != groups[None, :]
    # Of two groups with few pairs what all have.
    for block in (apart, ~apart, *_blocks(groups)):
        values = both[block & np.isfinite(both)]
        if len(values) >= FEWEST_IN_BLOCK:
            found[block | block.T] = float(np.median(values))
    return found - float(np.nanmedian(both))


def _blocks(labels: NDArray[np.generic]) -> list[NDArray[np.bool_]]:
    """Return the pairs of nodes of each two labels, or of one, in the upper triangle."""
    places = [labels == label for label in np.unique(labels)]
    found = []
    for first, second in itertools.combinations_with_replacement(places, 2):
        block = first[:, None] & second[None, :]
        found.append(np.triu(block | block.T, 1))
    return found


def among_kinds(nodes: Vector, structure: Structure) -> Vector:
    """Return what nodes add beyond those of their kind; of a kind of few nodes, beyond all."""
    found = nodes.copy()
    kinds = np.array(structure.kinds if len(structure.kinds) == len(nodes) else [""] * len(nodes))
    for kind in np.unique(kinds):
        members = kinds == kind
        if members.sum() > FEWEST_PARTNERS:
            found[members] -= np.median(nodes[members])
    return found


def expected(both: Matrix, structure: Structure, accused: frozenset[int]) -> Matrix:
    """Return the logarithm of the time of every pair as it would be if the accused nodes were like their kind."""
    offset = offsets(both, structure)
    fit = additive(both - offset)
    own = among_kinds(fit.nodes, structure)
    nodes = np.array(
        [added - own[place] if place in accused else added for place, added in enumerate(fit.nodes)]
    )
    return np.asarray(fit.typical + nodes[:, None] + nodes[None, :] + offset)


def _with_lonely(used: NDArray[np.bool_], measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pairs that are used, with all those of nodes of which too few are to know what they add."""
    lonely = (used | used.T).sum(axis=1) < FEWEST_PARTNERS
    return np.asarray(used | (measured & (lonely[:, None] | lonely[None, :])))


def _near_polish(logs: Matrix) -> NDArray[np.bool_]:
    """Return which pairs are near a median polish."""
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
    scatter = max(MAD * float(np.nanmedian(np.abs(rest))), LEAST)
    return np.asarray(np.abs(rest) <= NEAR * scatter)


def _least_squares(logs: Matrix, used: NDArray[np.bool_]) -> Additive:
    """Fit what each of both nodes adds to the times of some pairs (those of the upper triangle that are used)."""
    both = used | used.T
    count = int(np.sum(used))
    normal = both.astype(float)
    np.fill_diagonal(normal, both.sum(axis=1))
    inverse = np.linalg.pinv(normal, hermitian=True)
    shares = inverse @ np.where(both, logs, 0.0).sum(axis=1)
    rest = logs - shares[:, None] - shares[None, :]
    freedom = max(count - len(logs), 1)
    scatter = max(math.sqrt(float(np.sum(rest[used] ** 2)) / freedom), LEAST)
    diagonal = np.diag(inverse)
    # Of the difference to the mean of all. The median is one node's or two nodes', and known no better than these.
    of_median = 1.0 if len(logs) % 2 else 0.5
    variances = diagonal - 2 * inverse.mean(axis=1) + inverse.mean()
    errors = scatter * np.sqrt((1 + of_median) * np.maximum(variances, 0.0))
    nodes = shares - np.median(shares)
    return Additive(
        typical=2 * float(np.median(shares)),
        nodes=nodes,
        rest=rest,
        rest_scatter=scatter,
        node_scatter=max(MAD * float(np.median(np.abs(nodes))), float(np.median(errors)), LEAST),
        errors=errors,
        freedom=freedom,
        leverage=diagonal[:, None] + diagonal[None, :] + 2 * inverse,
    )


def _outside(
    fit: Additive, used: NDArray[np.bool_], measured: NDArray[np.bool_], chance: float
) -> NDArray[np.bool_]:
    """Return which pairs do not belong to a fit."""
    limit = _limit(fit, int(np.sum(measured)), chance)
    return measured & (np.abs(_studentized(fit, used)) > limit)


def _limit(fit: Additive, count: int, chance: float) -> float:
    return float(scipy.stats.t.isf(chance / 2 / count, max(fit.freedom - 1, 1)))


def _studentized(fit: Additive, used: NDArray[np.bool_]) -> Matrix:
    """Return the rest of each pair ÷ what it would scatter by if the pair had not been fitted."""
    both = used | used.T
    inside = fit.rest / (fit.rest_scatter * np.sqrt(np.maximum(1 - fit.leverage, SETTLED)))
    beyond = fit.rest / (fit.rest_scatter * np.sqrt(1 + fit.leverage))
    left = np.maximum(fit.freedom - inside**2, SETTLED)
    return np.where(both, inside * np.sqrt(max(fit.freedom - 1, 1) / left), beyond)


def suspects(
    logs: Matrix,
    names: Sequence[str],
    *,
    margin: float = MARGIN,
    false_alarm: float = FALSE_ALARM,
    structure: Structure = PLAIN,
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
    structure
        What makes them differ though nothing is wrong.
    """
    both = mean_of_directions(logs)
    floor = math.log1p(margin)
    offset = offsets(both, structure, _between_groups(both, structure.groups))
    fit = additive(both - offset)
    fit = replace(fit, nodes=among_kinds(fit.nodes, structure))
    slow = _slow_nodes(fit, floor, false_alarm / 2)
    found = list(_nodes_and_groups(fit, slow, names))
    # Fewer groups have no usual one.
    if len(set(structure.groups)) > FEWEST_PARTNERS:
        found += _far_groups(offset, fit, structure, floor, false_alarm / 2, names)
    else:
        found += _far_of_few(both, structure, floor, false_alarm / 2, names)
    # A link is what neither nodes nor groups explain, whichever of both does.
    level = both - offsets(both, structure)
    found += _links(level, additive(level), floor, false_alarm / 2, names)
    found += _directions(logs, floor, false_alarm / 2, names)
    return sorted(found, key=lambda one: -one.slower)


def visible(logs: Matrix, structure: Structure, margin: float = MARGIN) -> float:
    """Return how much slower a node has to be to be found in nine cases out of ten, as a share.

    Parameters
    ----------
    logs, structure, margin
        As of `suspects`.
    """
    both = mean_of_directions(logs)
    fit = additive(both - offsets(both, structure))
    own = among_kinds(fit.nodes, structure)
    well = own[~outlying(own, FALSE_ALARM / 2)]
    count = len(well)
    scatter = max(float(np.std(well, ddof=1)), LEAST) * math.sqrt(count / (count - 1))
    chances = FALSE_ALARM / 2, LAX * FALSE_ALARM / 2
    strict, lax = (_seen(float(scipy.stats.t.isf(one / count, count - 2)), count - 2) for one in chances)
    usual = max(math.log1p(margin) + _seen(0.0, count - 2) * scatter, strict * scatter)
    return math.expm1(min(usual, max(math.log(GROSS), lax * scatter), LARGEST))


def _seen(limit: float, freedom: int) -> float:
    """Return the mean, in scatters, of what exceeds a limit of Student's t in nine cases out of ten.

    By the normal approximation of the noncentral t (Johnson and Welch 1940, Biometrika 31, 362-389).
    """
    spread = math.sqrt(1 + limit**2 / (2 * freedom))
    return (limit + float(scipy.stats.norm.isf(1 - SEEN)) * spread) / (1 - 1 / (4 * freedom))


def scores(logs: Matrix, confidence: float) -> tuple[Vector, Vector]:
    """Return what each node adds to the logarithm of a time, and half the width of its interval.

    Parameters
    ----------
    logs
        As of `suspects`.
    """
    fit = additive(mean_of_directions(logs))
    return fit.nodes, np.asarray(scipy.stats.t.ppf((1 + confidence) / 2, fit.freedom) * fit.errors)


def mean_of_directions(logs: Matrix) -> Matrix:
    """Return the mean of both directions of each pair; of one that was measured in one direction, that."""
    return np.where(
        np.isfinite(logs) & np.isfinite(logs.T),
        (logs + logs.T) / 2,
        np.where(np.isfinite(logs), logs, logs.T),
    )


def _slow_nodes(fit: Additive, floor: float, chance: float) -> NDArray[np.bool_]:
    """Nodes that add more than those that are alike do, in all but so few cases."""
    clear = fit.nodes > max(floor, math.log(GROSS))
    return (outlying(fit.nodes, chance) & (fit.nodes > floor)) | (outlying(fit.nodes, LAX * chance) & clear)


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
        quantile = float(scipy.stats.t.isf(chance / count, count - 2))
        limit = (count - 1) * quantile / math.sqrt((count - 2 + quantile**2) * count)
        if (others[0] - float(np.mean(others))) / scatter > limit:
            found[order[: taken + 1]] = True
    return found


def _far_groups(
    offset: Matrix, fit: Additive, structure: Structure, floor: float, chance: float, names: Sequence[str]
) -> Iterator[Suspect]:
    """Yield groups of nodes that are further from all others, also from the nearest, than these are from each other.

    At the end of a line of switches a group is far from most, and as near to its neighbour as any.
    """
    groups = np.array(structure.groups)
    labels = np.unique(groups)
    apart = np.array(
        [[np.median(offset[np.ix_(groups == one, groups == other)]) for other in labels] for one in labels]
    )
    np.fill_diagonal(apart, np.inf)
    own = np.min(apart, axis=1)
    for place in np.flatnonzero(outlying(own, chance) & (own - np.median(own) > floor)).tolist():
        effect = float(own[place] - np.median(own))
        yield Suspect(
            kind="group",
            nodes=[names[node] for node in np.flatnonzero(groups == labels[place]).tolist()],
            slower=math.expm1(effect),
            scatter=fit.node_scatter,
            p_value=_chance(effect / fit.node_scatter, len(labels)),
        )


def _far_of_few(
    both: Matrix, structure: Structure, floor: float, chance: float, names: Sequence[str]
) -> Iterator[Suspect]:
    """Yield the group, of two or three, whose nodes are slow with all that is between groups.

    Of two it is the smaller one: two switches look the same as nodes behind a slow one. Of three what all are apart by
    at least is no fault of one.
    """
    labels = np.array(structure.groups)
    distinct = np.unique(labels)
    if len(distinct) < FEWEST_GROUPS:
        return
    apart = labels[:, None] != labels[None, :]
    step = np.zeros_like(both)
    if len(distinct) > FEWEST_GROUPS:
        usual = _between_groups(both, structure.groups)
        step[apart] = float(np.min(usual[apart])) - float(np.median(usual[~apart]))
    fit = additive(both - step - offsets(both - step, replace(structure, groups=())))
    fit = replace(fit, nodes=among_kinds(fit.nodes, structure))
    groups = [{names[place] for place in np.flatnonzero(labels == one).tolist()} for one in distinct]
    for one in _nodes_and_groups(fit, _slow_nodes(fit, floor, chance), names):
        if one.kind == "group" and any(
            set(one.nodes) <= group and len(one.nodes) >= MOST_OF_GROUP * len(group) for group in groups
        ):
            yield one


def _nodes_and_groups(fit: Additive, slow: NDArray[np.bool_], names: Sequence[str]) -> Iterator[Suspect]:
    """Yield slow nodes, put together where they are quick among themselves."""
    places = np.flatnonzero(slow)
    if not len(places):
        return
    among = fit.rest[np.ix_(places, places)]
    added = fit.nodes[places]
    # Quicker than half of what both add.
    quick = among < -(added[:, None] + added[None, :]) / 2
    _, labels = scipy.sparse.csgraph.connected_components(
        scipy.sparse.csr_matrix(np.where(np.isfinite(among), quick, False)), directed=False
    )
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
    limit = _limit(fit, count, chance)
    scores = fit.rest / (fit.rest_scatter * np.sqrt(1 + fit.leverage))
    for i, j in np.argwhere(upper & (fit.rest > floor) & (scores > limit)).tolist():
        effect = float(fit.rest[i, j])
        yield Suspect(
            kind="link",
            nodes=[names[i], names[j]],
            slower=math.expm1(effect),
            scatter=fit.rest_scatter,
            p_value=min(1.0, count * float(scipy.stats.t.sf(scores[i, j], max(fit.freedom - 1, 1)))),
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
    return min(1.0, among * float(scipy.stats.norm.sf(score)))
