"""Where transfers break down, how deep the buffer is, and what would help.  Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records.base import Estimate
from wulf.tools.incast.record import BurstsSeen, Cliff, Depth, IncastCell

#: Message of which nothing is in the queue for long: what receiving one more costs beside the link's time [B].
PROBE_BYTES = 64
#: Chance that anything is named where nothing breaks; and how many times as long as explained is no breakdown.
FALSE_ALARM, MARGIN = 0.01, 1.5
#: A transfer has stalled if it takes so many times as long as explained; and a share that may.
STALLED, SHARE = 3.0, 0.02
CONFIDENCE, SEEN = 0.95, 0.9
#: Rounds without which nothing is judged.
FEWEST_ROUNDS = 5
#: Ethernet's header and check, those of IP and of UDP [B].
OVERHEAD = 14 + 4 + 20 + 8
#: A queue passes on less than this of what it has no room for; where more arrives, it is another kind of loss.
FULL_QUEUE = 0.9
#: Lossy bursts up to so many times the smallest one tell the depth.
NEAR = 4.0
_DRAWS = 400


class Met(NamedTuple):
    """All transfers of one round with so many senders and messages of one size."""

    times_s: NDArray[np.float64]
    #: Segments that were sent again.
    again: int


#: Senders and size → what they met, of one round.
Round = Mapping[tuple[int, int], Met]


class _Level(NamedTuple):
    """What all cells are judged by."""

    rate: float
    #: How much more stalls scatter between rounds than independent ones would.
    dispersion: float
    #: Chance of a false alarm of each test.
    chance: float


def cells(rounds: Sequence[Round]) -> tuple[list[IncastCell], float | None]:
    """Return what each number of senders met at each size, and the rate that the receiver's link has carried."""
    keys = sorted(set.intersection(*map(set, rounds))) if len(rounds) >= FEWEST_ROUNDS else []
    usable = [key for key in keys if key[1] != PROBE_BYTES and {(1, key[1]), (1, PROBE_BYTES)} <= set(keys)]
    if not usable:
        return [], None
    usual = {key: float(np.median(np.concatenate([one[key].times_s for one in rounds]))) for key in keys}
    rate = max(senders * size / usual[senders, size] for senders, size in usable)
    stalls = {key: _stalls(key, rounds, _explained(key, usual, rate)) for key in usable}
    tested = sum(senders > 1 for senders, _ in usable)
    level = _Level(rate, _dispersion(list(stalls.values())), FALSE_ALARM / (2 * max(tested, 1)))
    return _decided([_cell(key, rounds, usual, stalls, level) for key in usable]), rate


def _explained(key: tuple[int, int], single: Mapping[tuple[int, int], float], rate: float) -> float:
    """Return what a transfer takes if the receiver's link carries one message after the other [s].

    That is the time of one, what it takes to receive more small ones, and the link's time for the others.
    """
    senders, size = key
    small = single[1, PROBE_BYTES]
    more_s = max(single.get((senders, PROBE_BYTES), small) - small, 0.0)
    return single[1, size] + more_s + (senders - 1) * size / rate


def _stalls(key: tuple[int, int], rounds: Sequence[Round], explained_s: float) -> NDArray[np.int64]:
    """Return how many transfers stalled, and how many there were: shape (rounds, 2)."""
    limit_s = STALLED * explained_s
    return np.array([[int(np.sum(one[key].times_s > limit_s)), len(one[key].times_s)] for one in rounds])


def _dispersion(stalls: Sequence[NDArray[np.int64]]) -> float:
    """Return how much more the numbers of stalls scatter between rounds than independent stalls, at least 1."""
    squares, degrees = 0.0, 0
    for counted in stalls:
        share = counted[:, 0].sum() / counted[:, 1].sum()
        if 0 < share < 1:
            expected = counted[:, 1] * share
            squares += float(np.sum((counted[:, 0] - expected) ** 2 / (expected * (1 - share))))
            degrees += len(counted) - 1
    return max(squares / degrees, 1.0) if degrees else 1.0


def _cell(
    key: tuple[int, int],
    rounds: Sequence[Round],
    usual: Mapping[tuple[int, int], float],
    stalls: Mapping[tuple[int, int], NDArray[np.int64]],
    level: _Level,
) -> IncastCell:
    senders, size = key
    means = [{own: float(np.mean(met.times_s)) for own, met in one.items()} for one in rounds]
    logs = np.log([one[key] / _explained(key, one, level.rate) for one in means])
    by_mean, visible = _slower(logs, level.chance)
    usual_share = max(SHARE, float(stalls[1, size][:, 0].sum() / stalls[1, size][:, 1].sum()))
    stalled, made = (float(total) for total in stalls[key].sum(axis=0))
    by_stalls = _stalling(stalled / level.dispersion, made / level.dispersion, usual_share)
    one = senders == 1
    return IncastCell(
        senders=senders,
        size_bytes=size,
        time=_mean(np.array([one[key] for one in means]), "s"),
        expected_s=_explained(key, usual, level.rate),
        ratio=_exp(_mean(logs, "ratio")),
        stalled=stalled / made,
        p_value=1.0 if one else min(2 * min(by_mean, by_stalls), 1.0),
        broken=False,
        visible=None if one else visible,
        visible_stalls=None if one else _visible_stalls(made / level.dispersion, usual_share, level.chance),
        again=sum(found[key].again for found in rounds),
        transfers=round(made),
    )


def _slower(logs: NDArray[np.float64], chance: float) -> tuple[float, float]:
    """Return the chance of such a mean where nothing breaks, and how many times as long is seen in most cases."""
    error = float(np.std(logs, ddof=1)) / len(logs) ** 0.5
    beyond = float(np.mean(logs)) - math.log(MARGIN)
    degrees = len(logs) - 1
    limit = float(scipy.stats.t.isf(chance, degrees) + scipy.stats.t.isf(1 - SEEN, degrees))
    p_value = float(scipy.stats.t.sf(beyond / error, degrees)) if error else float(beyond <= 0)
    return p_value, MARGIN * math.exp(min(limit * error, 50.0))


def _stalling(stalled: float, made: float, share: float) -> float:
    """Return the chance of so many stalls where no more than a share stall."""
    return float(scipy.special.betainc(stalled, made - stalled + 1, share)) if stalled > 0 else 1.0


def _visible_stalls(made: float, share: float, chance: float) -> float:
    """Return the share that has to stall to be seen in most cases."""
    limit = next((count for count in range(int(made) + 1) if _stalling(count, made, share) <= chance), None)
    if limit is None:
        return 1.0
    return float(scipy.special.betaincinv(limit, max(made - limit, 0.0) + 1, SEEN))


def _mean(values: NDArray[np.float64], unit: str) -> Estimate:
    middle = float(np.mean(values))
    half = (
        float(scipy.stats.t.isf((1 - CONFIDENCE) / 2, len(values) - 1) * np.std(values, ddof=1))
        / len(values) ** 0.5
    )
    return Estimate(
        value=middle,
        low=middle - half,
        high=middle + half,
        confidence=CONFIDENCE,
        unit=unit,
        n=len(values),
        method="mean of rounds, t interval",
    )


def _exp(logs: Estimate) -> Estimate:
    low, value, high = (math.exp(min(one or 0.0, 50.0)) for one in (logs.low, logs.value, logs.high))
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=logs.confidence,
        unit="ratio",
        n=logs.n,
        method="geometric mean of rounds, t interval of the logarithms",
    )


def _decided(found: Sequence[IncastCell]) -> list[IncastCell]:
    """Return cells that know whether they are broken: Holm's procedure over all of them."""
    tested = sorted((cell for cell in found if cell.senders > 1), key=lambda cell: cell.p_value)
    broken = set()
    for place, cell in enumerate(tested):
        if cell.p_value > FALSE_ALARM / (len(tested) - place):
            break
        broken.add((cell.senders, cell.size_bytes))
    return [msgspec.structs.replace(cell, broken=(cell.senders, cell.size_bytes) in broken) for cell in found]


def cliffs(found: Sequence[IncastCell]) -> list[Cliff]:
    """Return for each size with which number of senders it breaks first."""
    first: dict[int, IncastCell] = {}
    for cell in sorted(found, key=lambda cell: (cell.size_bytes, cell.senders)):
        if cell.broken:
            first.setdefault(cell.size_bytes, cell)
    return [
        Cliff(size_bytes=size, senders=cell.senders, ratio=cell.ratio, stalled=cell.stalled)
        for size, cell in first.items()
    ]


def on_wire(payload_bytes: int, datagram_bytes: int) -> int:
    """Return what datagrams are with the headers of their frames [B]."""
    return payload_bytes + -(-payload_bytes // datagram_bytes) * OVERHEAD


def depth(bursts: Sequence[BurstsSeen], spoiled: str) -> Depth:
    """Return how much the queue holds, from what arrives of bursts that are too large for it.

    All arrives as long as there is room. Of larger bursts arrives what the queue holds, and a share of the burst that
    it passes on meanwhile: a straight line over the size of the burst, whose value at zero is the depth.

    Parameters
    ----------
    spoiled
        Why losses are none of the queue, or are not known to be; empty where nothing speaks for that.
    """
    ordered = sorted(bursts, key=lambda one: one.sent_bytes)
    lossy = [one for one in ordered if not one.whole]
    whole = [
        one.sent_bytes for one in ordered if one.whole and (not lossy or one.sent_bytes < lossy[0].sent_bytes)
    ]
    reason, estimate = spoiled, None
    if not spoiled and lossy:
        reason, estimate = _from_lossy(lossy, whole)
    if not bursts and not spoiled:
        reason = "no bursts were measured"
    return Depth(
        bytes=estimate,
        whole_bytes=max(whole, default=None),
        lossy_bytes=lossy[0].sent_bytes if lossy else None,
        reason=reason,
        bursts=ordered,
    )


def _from_lossy(lossy: Sequence[BurstsSeen], whole: Sequence[int]) -> tuple[str, Estimate | None]:
    if not whole:
        return "even the smallest bursts lost something: packets are lost though the queue has room", None
    near = [one for one in lossy if one.sent_bytes <= NEAR * lossy[0].sent_bytes]
    if len(near) < 2:
        return "too few bursts were larger than the queue", None
    middle, share = _line(near, [np.array(one.arrived_bytes, dtype=np.float64) for one in near])
    if share > FULL_QUEUE or middle <= 0:
        return "what is lost does not grow with the burst: it is not lost in a full queue", None
    random = np.random.default_rng(0)
    drawn = [
        _line(
            near,
            [
                random.choice(np.array(one.arrived_bytes, dtype=np.float64), len(one.arrived_bytes))
                for one in near
            ],
        )[0]
        for _ in range(_DRAWS)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return "", Estimate(
        value=middle,
        low=float(min(low, middle)),
        high=float(max(high, middle)),
        confidence=CONFIDENCE,
        unit="B",
        n=sum(len(one.arrived_bytes) for one in near),
        method="line through what arrives of bursts that are too large, bootstrap",
    )


def _line(bursts: Sequence[BurstsSeen], arrived: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return what a line through the medians has at zero, and its slope: the median of all slopes between two."""
    sent = [float(one.sent_bytes) for one in bursts]
    medians = [float(np.median(values)) for values in arrived]
    slopes = [
        (second - first) / (larger - smaller)
        for (smaller, first), (larger, second) in itertools.combinations(zip(sent, medians, strict=True), 2)
    ]
    slope = max(float(np.median(slopes)), 0.0)
    return float(np.median([value - slope * size for value, size in zip(medians, sent, strict=True)])), slope
