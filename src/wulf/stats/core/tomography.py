"""Which part of a network makes the flows slow that pass it: arrays in, effects with intervals out.

Flows between the same two nodes differ in nothing but their way, which a switch chooses by a hash of their ports: as
good as at random. So flows are held against others of the same pair, and what a part adds is judged by how far chance
would bring as many flows of each pair together (the variance of a permutation within strata: Hoeffding 1951, Ann. Math.
Statist. 22, 558-566). That is right whatever else makes flows differ, as the queue of a NIC that a port is hashed to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Vector = NDArray[np.float64]
#: Flows that must pass a part, and so many that do not: one odd flow is no part's doing.
FEWEST = 5
#: Parts that are named at most.
MOST = 8
#: A part that adds less than this share of what one that contains it, or is in it, was found to add is the same fault.
NESTED = 0.5
#: Lost packets of a flow that are more than an accident, and the share of packets that any network may lose.
LEAST_LOST, LEAST_SHARE = 2, 0.001
#: Share of the cases in which what is visible is named.
SEEN = 0.9
CONFIDENCE = 0.95
#: Values further from the others of their stratum than so many times their scatter count as if they were there.
FARTHEST = 6.0
#: Of a normal distribution: standard deviation ÷ median absolute deviation, error of a median ÷ that of a mean.
MAD, OF_MEDIAN = 1.4826, 1.2533
#: The scatter of a stratum counts as so large a part of the middle one's at least.
LEAST_SCATTER = 0.1
#: Nothing is told apart below this.
TINY = 1e-12


@dataclass(frozen=True)
class Part:
    """A part of the network that adds to what its flows meet."""

    #: Columns that say the same of every flow, the first being the one that was asked.
    columns: tuple[int, ...]
    effect: float
    low: float
    high: float
    #: Chance that any part seems to add as much where none does.
    p_value: float


def parts(
    values: Vector,
    strata: NDArray[np.int64],
    passes: Vector,
    *,
    false_alarm: float,
    margin: float = 0.0,
    events: NDArray[np.int64] | None = None,
    trials: NDArray[np.int64] | None = None,
) -> list[Part]:
    """Return the parts that add to the values of flows that pass them, the clearest first.

    Parameters
    ----------
    values
        What each of n flows met; NaN where that is not known.
    strata
        Which flows are alike but for their way: n numbers.
    passes
        n × m: how often each flow passes each part.
    false_alarm
        Chance that any is returned where none adds anything.
    margin
        Less is not returned, in the unit of the values.
    events, trials
        Of values that are shares: so many of so many. Few events have no normal distribution: they have to be too many
        for a binomial one, too.
    """
    known = np.isfinite(values)
    groups, strata, passes = _same(passes[known]), strata[known], passes[known]
    columns = np.array([group[0] for group in groups], dtype=int)
    counted = None if events is None or trials is None else (events[known], trials[known])
    ways = _centred_all(passes[:, columns], strata)
    able = _enough(ways)
    left = values[known]
    found: list[Part] = []
    used: list[int] = []
    for _ in range(MOST):
        best, chance = _clearest(left, strata, ways, able, used, counted, false_alarm)
        if chance > false_alarm:
            break
        used.append(best)
        effect, error = _effect(left, passes[:, columns[best]], strata, is_share=counted is not None)
        if effect > margin and not _is_shadow(effect, passes[:, columns], best, found, groups):
            half = error * float(scipy.stats.norm.isf((1 - CONFIDENCE) / 2))
            found.append(Part(tuple(groups[best]), effect, effect - half, effect + half, chance))
        left = left - effect * passes[:, columns[best]]
    return found


def _clearest(
    left: Vector,
    strata: NDArray[np.int64],
    ways: Vector,
    able: NDArray[np.bool_],
    used: Sequence[int],
    counted: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    false_alarm: float,
) -> tuple[int, float]:
    """Return the part that explains most of what is left of those that stand out, and how likely chance does so.

    Infinity where none stands out.
    """
    scores, gains = _scores(left if counted else _standard(left, strata), ways, strata)
    among = int(able.sum())
    clear = able & (scores > scipy.stats.norm.isf(false_alarm / max(among, 1)))
    clear[used] = False
    if not clear.any():
        return -1, math.inf
    best = int(np.argmax(np.where(clear, gains, -np.inf)))
    chance = _chance(scores[best], among)
    if counted is None:
        return best, chance
    free = np.asarray(~(ways[:, used] > 0).any(axis=1))
    return best, max(chance, among * _chance_of_events(*counted, strata, ways[:, best] > 0, free))


def _chance_of_events(
    events: NDArray[np.int64],
    trials: NDArray[np.int64],
    strata: NDArray[np.int64],
    inside: NDArray[np.bool_],
    free: NDArray[np.bool_],
) -> float:
    """Return the chance that so many of all events are inside, each of a stratum being anywhere in it."""
    expected, count = 0.0, 0
    for stratum in np.unique(strata):
        mine = (strata == stratum) & free
        here = int(events[mine].sum())
        count += here
        expected += here * float(trials[mine & inside].sum()) / max(float(trials[mine].sum()), 1.0)
    within = int(events[inside & free].sum())
    return float(scipy.stats.binom.sf(within - 1, count, expected / count)) if count else 1.0


def visible(
    values: Vector,
    strata: NDArray[np.int64],
    passes: Vector,
    *,
    false_alarm: float,
    trials: NDArray[np.int64] | None = None,
) -> float:
    """Return what a part must add to be returned by `parts` in nine cases out of ten; infinite where none could be.

    It is that of the part in the middle of those that can be judged.

    Parameters
    ----------
    values, strata, passes, false_alarm, trials
        As of `parts`.
    """
    known = np.isfinite(values)
    groups, strata = _same(passes[known]), strata[known]
    columns = np.array([group[0] for group in groups], dtype=int)
    ways = _centred_all(passes[known][:, columns], strata)
    able = _enough(ways)
    if not able.any():
        return math.inf
    left = values[known]
    chance = false_alarm / float(able.sum())
    scatters = np.ones(len(left)) if trials is not None else _scatters(left, strata)[1]
    standard = left if trials is not None else _standard(left, strata)
    _, places, counts = np.unique(strata, return_inverse=True, return_counts=True)
    spread = np.bincount(places, _centred(standard, strata) ** 2, minlength=len(counts)) / np.maximum(
        counts - 1, 1
    )
    squares = ways[:, able] ** 2
    errors = np.sqrt(spread[places] @ squares) / np.maximum((1 / scatters) @ squares, TINY)
    found = limit(chance) * float(np.median(errors))
    return found if trials is None else max(found, _visible_events(chance, trials[known], ways[:, able] > 0))


def _visible_events(chance: float, trials: NDArray[np.int64], inside: NDArray[np.bool_]) -> float:
    """Return the share of trials inside a part that have to be events, where no other ones are."""
    passed = (trials[:, None] * inside).sum(axis=0)
    each = float(np.median(passed))
    part = min(max(float(np.median(passed)) / max(float(trials.sum()), 1.0), TINY), 1 - TINY)
    least = math.ceil(math.log(chance) / math.log(part))
    return float(scipy.stats.gamma.isf(1 - SEEN, max(least, 2))) / max(each, 1.0)


def slower(values: Vector, errors: Vector, *, false_alarm: float, margin: float) -> NDArray[np.bool_]:
    """Tell the flows of one pair that are slower than those that most resemble each other, by their own scatter.

    For flows whose way is not known. Half of them may be slow.

    Parameters
    ----------
    values, errors
        Of n flows: what each met, and its standard error; NaN where that is not known.
    false_alarm
        Chance that any is told where all are alike.
    margin
        Slower by less is not told, in the unit of the values.
    """
    known = np.isfinite(values) & np.isfinite(errors)
    if known.sum() < FEWEST:
        return np.zeros(len(values), dtype=bool)
    error = math.sqrt(float(np.mean(errors[known] ** 2))) + TINY
    middle = _fast_middle(values[known], error)
    reach = float(scipy.stats.norm.isf(false_alarm / known.sum()))
    return np.asarray(known & (values - middle > margin + reach * error))


def losing(
    lost: NDArray[np.int64], sent: NDArray[np.int64], *, false_alarm: float, margin: float
) -> NDArray[np.bool_]:
    """Tell the flows of one pair that lose more than others: too many of them lose too much.

    Parameters
    ----------
    lost, sent
        Of n flows.
    false_alarm, margin
        As of `slower`; the margin is a share, beyond that which a quarter of the flows lose less than.
    """
    none = np.zeros(len(lost), dtype=bool)
    if len(lost) < FEWEST or lost.max() < LEAST_LOST:
        return none
    usual = min(float(np.quantile(lost / np.maximum(sent, 1), 0.25)) + margin, 1.0)
    steps = np.unique(lost[lost >= LEAST_LOST])
    each = np.array([float(np.mean(scipy.stats.binom.sf(step - 1, sent, usual))) for step in steps])
    many = np.array([int((lost >= step).sum()) for step in steps])
    chances = np.where(many > 1, scipy.stats.binom.sf(many - 1, len(lost), each), 1.0)
    best = int(np.argmin(chances))
    return np.asarray(lost >= steps[best]) if chances[best] * len(steps) < false_alarm else none


def limit(false_alarm: float) -> float:
    """Return how far a value must be from what is usual, in standard errors, to be told in nine cases out of ten."""
    return float(scipy.stats.norm.isf(false_alarm) + scipy.stats.norm.isf(1 - SEEN))


def visible_loss(false_alarm: float, sent: float, flows: float) -> float:
    """Return the share that a quarter of a pair's flows must lose to be told by `losing` in nine cases out of ten.

    Parameters
    ----------
    false_alarm
        Chance that any flow of the pair is told where nothing is lost.
    sent, flows
        Packets of each flow, and flows of the pair.
    """
    for lost in range(LEAST_LOST, max(int(sent), LEAST_LOST) + 1):
        chance = float(scipy.stats.binom.sf(lost - 1, int(sent), LEAST_SHARE))
        if scipy.stats.binom.sf(max(flows / 8, 2) - 1, int(flows), chance) < false_alarm:
            # Half of the quarter has to lose so many.
            return float(scipy.stats.gamma.isf(0.5, lost)) / max(sent, 1.0)
    return math.inf


def _fast_middle(values: Vector, error: float) -> float:
    """Return the middle of the fastest flows that belong together: those before the first wide gap that are a third."""
    ordered = np.sort(values)
    gaps = np.flatnonzero(np.diff(ordered) > FARTHEST * error) + 1
    enough = [end for end in gaps if end >= len(ordered) / 4]
    return float(np.median(ordered[: enough[0]] if enough else ordered))


def _same(passes: Vector) -> list[list[int]]:
    """Return the columns that some flow passes, in groups of those that say the same of every flow."""
    groups: dict[bytes, list[int]] = {}
    for column in range(passes.shape[1]):
        if passes[:, column].any():
            groups.setdefault(np.ascontiguousarray(passes[:, column]).tobytes(), []).append(column)
    return list(groups.values())


def _scatters(values: Vector, strata: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """Return the median of the stratum of each value, and how much its stratum scatters: not much less than others."""
    _, places = np.unique(strata, return_inverse=True)
    count = int(places.max(initial=-1)) + 1
    middles = np.array([float(np.median(values[places == place])) for place in range(count)])
    apart = np.abs(values - middles[places])
    scatters = np.array([MAD * float(np.median(apart[places == place])) for place in range(count)])
    least = max(LEAST_SCATTER * float(np.median(scatters)), TINY) if count else TINY
    return middles[places], np.maximum(scatters, least)[places]


def _standard(values: Vector, strata: NDArray[np.int64]) -> Vector:
    """Return values in scatters of their stratum from its median; outliers count as if they were nearer."""
    middles, scatters = _scatters(values, strata)
    return np.asarray(np.clip((values - middles) / scatters, -FARTHEST, FARTHEST))


def _centred(values: Vector, strata: NDArray[np.int64]) -> Vector:
    return _centred_all(values[:, None], strata)[:, 0]


def _centred_all(values: Vector, strata: NDArray[np.int64]) -> Vector:
    """Return each column without the mean of the stratum."""
    _, places, counts = np.unique(strata, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, places, values)
    return np.asarray(values - (sums / counts[:, None])[places])


def _enough(ways: Vector) -> NDArray[np.bool_]:
    """Return the parts that enough flows pass, and enough of the same pairs do not."""
    return np.asarray(((ways > TINY).sum(axis=0) >= FEWEST) & ((ways < -TINY).sum(axis=0) >= FEWEST))


def _scores(values: Vector, ways: Vector, strata: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """Return of each part how far it is from chance, in standard deviations, and what it explains of the squares.

    A switch of which one link is bad is as far from chance as that link, and explains less.
    """
    left = _centred(values, strata)
    _, places, counts = np.unique(strata, return_inverse=True, return_counts=True)
    spread = np.bincount(places, left**2, minlength=len(counts)) / np.maximum(counts - 1, 1)
    squares = np.zeros((len(counts), ways.shape[1]))
    np.add.at(squares, places, ways**2)
    products = ways.T @ left
    return (
        products / np.sqrt(np.maximum(spread @ squares, TINY**2)),
        products**2 / np.maximum(squares.sum(axis=0), TINY),
    )


def _effect(
    values: Vector, passes: Vector, strata: NDArray[np.int64], *, is_share: bool
) -> tuple[float, float]:
    """Return what a part adds each time that it is passed, and the standard error of that.

    It is the median (of shares the mean) of what flows that pass it have more than the middle of those that do not.
    """
    excess = []
    for stratum in np.unique(strata[passes > 0]):
        mine = strata == stratum
        other = values[mine & (passes == 0)]
        if len(other):
            usual = float(np.mean(other) if is_share else np.median(other))
            excess.append((values[mine & (passes > 0)] - usual) / passes[mine & (passes > 0)])
    if not excess:
        return 0.0, math.inf
    whole = np.concatenate(excess)
    if is_share:
        return float(np.mean(whole)), float(np.std(whole)) / math.sqrt(len(whole))
    middle = float(np.median(whole))
    scatter = MAD * float(np.median(np.abs(whole - middle)))
    return middle, OF_MEDIAN * scatter / math.sqrt(len(whole))


def _chance(score: float, among: int) -> float:
    return min(1.0, max(among, 1) * float(scipy.stats.norm.sf(score)))


def _is_shadow(
    effect: float, passes: Vector, best: int, found: Sequence[Part], groups: Sequence[Sequence[int]]
) -> bool:
    """Whether what a part seems to add is what is left of one that was found and has the same flows, or more."""
    mine = passes[:, best] > 0
    for part in found:
        other = (
            passes[:, next(place for place, group in enumerate(groups) if group[0] == part.columns[0])] > 0
        )
        if ((mine & ~other).sum() == 0 or (other & ~mine).sum() == 0) and effect < NESTED * part.effect:
            return True
    return False
