"""Whether a suspect is slow also while nothing else is measured: many pairs at once disturb each other.  Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import scipy

from wulf.base.records import Pair
from wulf.base.records.diagnosed import Matrix, Suspect
from wulf.stats.estimate.pairs import outlying

#: Nodes of a group that stand for it.
OF_A_GROUP = 2
#: Nodes that are well, with which they are measured.
WELL = 4
#: Chance that any suspect that is not slow is taken for one once more.
CHANCE = 0.05
#: Share of what a link seemed to be slower by that it has to be slower by once more: it was one value.
STILL = 0.5
#: Chance that the largest of a few times is left out though it belongs to them.
ODD = 0.02


def pairs(matrices: Sequence[Matrix]) -> list[Pair]:
    """Return the pairs to measure again: each suspect with nodes that are well, and these among themselves.

    Nothing where nobody is suspected, or nobody is well.
    """
    suspects = sorted((one for matrix in matrices for one in matrix.suspects), key=lambda one: -one.slower)
    found: dict[frozenset[str], Pair] = {}
    well = well_nodes(matrices)
    chosen = [(first, second) for at, first in enumerate(well) for second in well[at + 1 :]]
    for suspect in suspects if len(well) > 1 else []:
        if suspect.kind == "link":
            chosen.append((suspect.nodes[0], suspect.nodes[1]))
        else:
            chosen += [(node, other) for node in suspect.nodes[:OF_A_GROUP] for other in well]
    for pair in chosen if suspects and len(well) > 1 else []:
        found.setdefault(frozenset(pair), pair)
    return list(found.values())


def well_nodes(matrices: Sequence[Matrix]) -> list[str]:
    """Return nodes that no suspicion is about, the most typical ones first."""
    accused = {node for matrix in matrices for one in matrix.suspects for node in one.nodes}
    far: dict[str, float] = {}
    for score in (score for matrix in matrices for score in matrix.scores if score.node not in accused):
        far[score.node] = max(far.get(score.node, 0.0), abs(math.log(score.ratio.value)))
    return sorted(far, key=lambda node: far[node])[:WELL]


def is_slow(
    suspect: Suspect,
    times: Mapping[Pair, float],
    accused: frozenset[str],
    margin: float,
    *,
    usual: Callable[[Pair], float] = lambda _pair: 0.0,
    among: int = 1,
) -> bool | None:
    """Tell whether a suspect is slow among pairs that were measured one at a time.

    None where too few were, and of one that is slow in one direction: both together do not show that.

    Parameters
    ----------
    times
        Pair → time [s], of one operation at one size.
    accused
        All nodes that any suspicion is about.
    margin
        Slower by less than half of it is not slow, as a share.
    usual
        Logarithm of the time that a pair would have without the suspicion: nodes of other kinds, and those behind
        another switch, take longer though nothing is wrong.
    among
        Suspects that are measured again.
    """
    well = [math.log(time) - usual(pair) for pair, time in times.items() if accused.isdisjoint(pair)]
    own = [math.log(time) - usual(pair) for pair, time in _own(suspect, times, accused)]
    if suspect.kind in ("sending", "receiving") or not own or len(well) < 2:
        return None
    own, well = _without_odd(own), _without_odd(well)
    excess = float(np.mean(own) - np.mean(well))
    chance = CHANCE / among
    if len(own) == 1:
        scatter = float(np.std(well, ddof=1)) * math.sqrt(1 + 1 / len(well))
        clear = excess > float(scipy.stats.t.isf(chance, len(well) - 1)) * scatter
    else:
        clear = float(scipy.stats.ttest_ind(own, well, alternative="greater").pvalue) <= chance
    still = STILL * math.log1p(suspect.slower) if suspect.kind == "link" else 0.0
    return clear and excess > max(math.log1p(margin) / 2, still)


def _without_odd(values: Sequence[float]) -> list[float]:
    """Return values without those that are far larger than the others: one odd pair is not what is asked about."""
    array = np.array(values)
    return [float(one) for one in array[~outlying(array, ODD)]]


def _own(
    suspect: Suspect, times: Mapping[Pair, float], accused: frozenset[str]
) -> Iterator[tuple[Pair, float]]:
    """Yield the pairs that the suspicion is about, with their times [s]."""
    members = set(suspect.nodes)
    for pair, time in times.items():
        inside = members.intersection(pair)
        outside = set(pair) - members
        if (
            inside == members
            if suspect.kind == "link"
            else inside and outside and accused.isdisjoint(outside)
        ):
            yield pair, time
