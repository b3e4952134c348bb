"""From what flows met to the part of the network that makes them suffer.  Pure.

Flows whose way is known are judged by what they pass (`wulf.stats.core.tomography.parts`); those that are still worse
than others of their pair, or whose way is not known, by themselves.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from wulf.base.records.base import Estimate, Pair
from wulf.base.records.flows import FlowSeen
from wulf.stats.core import tomography
from wulf.tools.paths.record import Culprit, Metric, MpiExposure, PathEffect, Sight, Spread, Way

#: Chance that anything is named where all paths are alike.
FALSE_ALARM = 0.01
#: Larger messages are streams [B].
STREAM_BYTES = 64 << 10
#: What has to be seen: more latency [s], or so much of a round trip; share of packets; time of a stream ÷ usual time.
WANTED_S, WANTED_OF_ROUND_TRIP, WANTED_LOSS, WANTED_RATE = 50e-6, 0.5, 0.01, 2.0
#: What is nobody's concern: a share of the round trip and [s]; of packets; of a stream's time.
MARGIN_OF_ROUND_TRIP, MARGIN_S, MARGIN_LOSS, MARGIN_RATE = 0.1, 3e-6, 0.001, 0.15
#: Flows of a pair that are worse without a known reason: one alone says nothing of a path.
FEWEST_ALONE = 2
METRICS: tuple[Metric, ...] = ("latency", "loss", "rate")
#: A switch, or a link in one direction.
Part = tuple[str, ...]
Key = tuple[Pair, str, int]


@dataclass
class _Rows:
    """Flows as one metric judges them: what each met, and where it went."""

    metric: Metric
    flows: list[FlowSeen] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    strata: list[tuple[object, ...]] = field(default_factory=list)
    ways: list[list[Part]] = field(default_factory=list)

    def add(self, flow: FlowSeen, value: float, stratum: tuple[object, ...], way: list[Part]) -> None:
        """Take what a flow met."""
        self.flows.append(flow)
        self.values.append(value)
        self.errors.append(math.nan)
        self.counts.append((0, 0))
        self.strata.append(stratum)
        self.ways.append(way)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The number of each one's stratum."""
        known = {stratum: number for number, stratum in enumerate(dict.fromkeys(self.strata))}
        return np.array([known[stratum] for stratum in self.strata], dtype=np.int64)

    @cached_property
    def met(self) -> NDArray[np.float64]:
        """The values."""
        return np.array(self.values)

    @cached_property
    def margin(self) -> float:
        """What is nobody's concern, in the unit of the values."""
        if self.metric == "latency":
            return max(MARGIN_S, MARGIN_OF_ROUND_TRIP * float(np.median(self.met)))
        return MARGIN_LOSS if self.metric == "loss" else math.log1p(MARGIN_RATE)

    @cached_property
    def matrix(self) -> tuple[NDArray[np.float64], list[Part]]:
        """How often each flow passes each part, and the parts: switches before links."""
        names = sorted({part for way in self.ways for part in way}, key=lambda part: (len(part), part))
        places = {part: place for place, part in enumerate(names)}
        passes = np.zeros((len(self.flows), len(names)))
        for row, way in enumerate(self.ways):
            for part in way:
                passes[row, places[part]] += 1
        return passes, names


@dataclass(frozen=True)
class Verdict:
    """What is bad, and what could have been seen."""

    culprits: list[Culprit]
    sights: list[Sight]


def judge(
    seen: Sequence[FlowSeen], again: Sequence[FlowSeen] | None = None, false_alarm: float = FALSE_ALARM
) -> Verdict:
    """Return what is bad.

    Parameters
    ----------
    seen
        What flows met.
    again
        The flows of some pairs, measured once more: those that are worse without a known reason count only if they are
        worse again. None where nothing was; then they are suspected.
    """
    found: list[Culprit] = []
    sights = []
    share = false_alarm / len(METRICS) / 2
    for pick in _PICKS.values():
        rows = pick(seen)
        if not rows.flows:
            continue
        parts, explained = _by_way(rows, share)
        found += parts
        worse = _alone(rows, explained, share)
        if again is not None:
            worse &= _still(rows, pick(again), share)
        found += _unexplained(rows, worse, share)
        sights.append(_sight(rows, share))
    return Verdict(list(_together(found)), sights)


def unexplained(verdict: Verdict) -> list[Pair]:
    """Return the pairs whose flows are worse without a known reason: those to measure once more."""
    pairs = (pair for culprit in verdict.culprits if not culprit.ways for pair in culprit.pairs)
    return list(dict.fromkeys(pairs))


def exposure(seen: Sequence[FlowSeen], culprits: Sequence[Culprit]) -> MpiExposure:
    """Return how many of the connections of a job with one between each two nodes suffer."""
    shares: dict[frozenset[str], float] = {}
    for culprit in culprits:
        for pair in culprit.pairs:
            both = frozenset(pair)
            shares[both] = max(shares.get(both, 0.0), culprit.share)
    measured = {frozenset(flow.nodes) for flow in seen}
    well = math.prod(1 - share for share in shares.values())
    return MpiExposure(connections=len(measured), suffering=sum(shares.values()), any=1 - well)


def spread(seen: Sequence[FlowSeen], culprits: Sequence[Culprit]) -> Spread:
    """Return how flows are spread over paths, as far as their ways and what they met tell."""
    ways: dict[Pair, set[tuple[str | None, ...]]] = defaultdict(set)
    for flow in seen:
        if flow.out and None not in flow.out:
            ways[flow.nodes].add(tuple(flow.out))
    if any(len(of_pair) > 1 for of_pair in ways.values()):
        return "ECMP"
    if any(not culprit.ways for culprit in culprits):
        return "below the routes" if ways else "unknown"
    return "one path" if ways else "unknown"


def examples(
    seen: Sequence[FlowSeen], culprit: Culprit, metric: Metric
) -> tuple[FlowSeen | None, FlowSeen | None]:
    """Return the flow that shows a culprit most clearly, and one between the same nodes that is well."""
    rows = _PICKS[metric](seen)
    asked = {tuple(way.hops) for way in culprit.ways}
    pairs = set(culprit.pairs)
    of_pairs = [
        row
        for row, flow in enumerate(rows.flows)
        if (flow.nodes[::-1] if rows.strata[row][-1] == "back" else flow.nodes) in pairs
    ]
    bad = [row for row in of_pairs if not asked or asked.intersection(rows.ways[row])]
    if not bad:
        return None, None
    # Times between other nodes are others: what counts is how much worse it is than the others of its own.
    usual = {
        stratum: float(np.median([rows.values[row] for row in of_pairs if rows.strata[row] == stratum]))
        for stratum in {rows.strata[row] for row in of_pairs}
    }
    worst = max(bad, key=lambda row: rows.values[row] - usual[rows.strata[row]])
    others = [row for row in of_pairs if rows.strata[row] == rows.strata[worst]]
    best = min(others, key=lambda row: (row in bad and bool(asked), rows.values[row]))
    return rows.flows[worst], rows.flows[best] if best != worst else None


def parts_of(hops: Sequence[str | None], start: str, end: str) -> list[Part]:
    """Return the switches and links that a flow passes from one node to another."""
    whole = [start, *hops, end]
    switches: list[Part] = [(hop,) for hop in hops if hop is not None]
    links: list[Part] = [
        (first, second)
        for first, second in itertools.pairwise(whole)
        if first is not None and second is not None and hops
    ]
    return switches + links


def _out(flow: FlowSeen) -> list[Part]:
    return parts_of(flow.out, *flow.nodes)


def _back(flow: FlowSeen) -> list[Part]:
    return parts_of(flow.back, flow.nodes[1], flow.nodes[0])


def _latency(seen: Sequence[FlowSeen]) -> _Rows:
    rows = _Rows("latency")
    for flow in seen:
        if flow.size_bytes < STREAM_BYTES and flow.time_s is not None and flow.error_s is not None:
            rows.add(flow, flow.time_s, (flow.nodes, flow.protocol), _out(flow) + _back(flow))
            rows.errors[-1] = flow.error_s
    return rows


def _loss(seen: Sequence[FlowSeen]) -> _Rows:
    """Return requests and answers apart; of connections those of pairs where one was never answered."""
    rows = _Rows("loss")
    dead = {flow.nodes for flow in seen if flow.protocol == "tcp" and flow.time_s is None}
    for flow in seen:
        if flow.size_bytes >= STREAM_BYTES or not flow.sent:
            continue
        if flow.protocol == "tcp":
            lost = flow.sent if flow.time_s is None else 0
            if flow.nodes in dead:
                rows.add(flow, lost / flow.sent, (flow.nodes, "tcp"), _out(flow) + _back(flow))
                rows.counts[-1] = lost, flow.sent
            continue
        rows.add(flow, flow.lost_out / flow.sent, (flow.nodes, "out"), _out(flow))
        rows.counts[-1] = flow.lost_out, flow.sent
        arrived = flow.sent - flow.lost_out
        if arrived:
            rows.add(flow, flow.lost_back / arrived, (flow.nodes, "back"), _back(flow))
            rows.counts[-1] = flow.lost_back, arrived
    return rows


def _rate(seen: Sequence[FlowSeen]) -> _Rows:
    rows = _Rows("rate")
    for flow in seen:
        if flow.size_bytes >= STREAM_BYTES and flow.time_s and flow.error_s is not None and flow.time_s > 0:
            rows.add(flow, math.log(flow.time_s), (flow.nodes,), _out(flow))
            rows.errors[-1] = flow.error_s / flow.time_s
    return rows


#: What each metric judges.
_PICKS: Mapping[Metric, Callable[[Sequence[FlowSeen]], _Rows]] = MappingProxyType(
    {"latency": _latency, "loss": _loss, "rate": _rate}
)


def _wanted(rows: _Rows) -> float:
    if rows.metric == "latency":
        return max(WANTED_S, WANTED_OF_ROUND_TRIP * float(np.median(rows.met)))
    return WANTED_LOSS if rows.metric == "loss" else WANTED_RATE


def _counts(rows: _Rows, place: int) -> NDArray[np.int64] | None:
    """Return what was lost, or what was sent, of each row; None of a metric that is no share."""
    if rows.metric != "loss":
        return None
    return np.array([count[place] for count in rows.counts], dtype=np.int64)


def _by_way(rows: _Rows, false_alarm: float) -> tuple[list[Culprit], NDArray[np.bool_]]:
    """Return the parts that make flows suffer, and which rows pass any of them."""
    passes, names = rows.matrix
    explained = np.zeros(len(rows.flows), dtype=bool)
    if not names:
        return [], explained
    found = tomography.parts(
        rows.met,
        rows.numbers,
        passes,
        false_alarm=false_alarm,
        margin=rows.margin,
        events=_counts(rows, 0),
        trials=_counts(rows, 1),
    )
    culprits = []
    for part in found:
        bad = passes[:, part.columns[0]] > 0
        explained |= bad
        ways = [Way(hops=list(names[column]), names=list(names[column])) for column in part.columns]
        effect = _effect(rows.metric, part.effect, part.low, part.high, part.p_value, int(bad.sum()))
        culprits.append(_culprit(rows, bad, ways, effect))
    return culprits, explained


def _alone(rows: _Rows, explained: NDArray[np.bool_], false_alarm: float) -> NDArray[np.bool_]:
    """Tell the flows that are worse than others of their pair though nothing that they pass explains it."""
    numbers = rows.numbers
    strata = np.unique(numbers)
    bad = np.zeros(len(numbers), dtype=bool)
    for stratum in strata:
        mine = np.flatnonzero((numbers == stratum) & ~explained)
        worse = _worse(rows, mine, false_alarm / len(strata))
        if worse.sum() < FEWEST_ALONE:
            continue
        bad[mine[worse]] = True
    return bad


def _still(rows: _Rows, again: _Rows, false_alarm: float) -> NDArray[np.bool_]:
    """Tell the flows that are worse once more."""
    worse = _alone(again, np.zeros(len(again.flows), dtype=bool), false_alarm)
    known = {
        (stratum, flow.port)
        for stratum, flow, bad in zip(again.strata, again.flows, worse, strict=True)
        if bad
    }
    return np.array(
        [(stratum, flow.port) in known for stratum, flow in zip(rows.strata, rows.flows, strict=True)],
        dtype=bool,
    )


def _unexplained(rows: _Rows, bad: NDArray[np.bool_], false_alarm: float) -> Iterator[Culprit]:
    """Yield flows that are worse for no known reason, all in one."""
    numbers, values = rows.numbers, rows.met
    effects = [
        float(np.median(values[(numbers == stratum) & bad]) - np.median(values[(numbers == stratum) & ~bad]))
        for stratum in np.unique(numbers[bad])
        if ((numbers == stratum) & bad).sum() >= FEWEST_ALONE and ((numbers == stratum) & ~bad).any()
    ]
    if effects:
        low, middle, high = np.quantile(effects, (0, 0.5, 1))
        effect = _effect(rows.metric, float(middle), float(low), float(high), false_alarm, int(bad.sum()))
        yield _culprit(rows, bad, [], effect)


def _worse(rows: _Rows, mine: NDArray[np.int64], false_alarm: float) -> NDArray[np.bool_]:
    if rows.metric == "loss":
        counts = np.array([rows.counts[row] for row in mine.tolist()], dtype=np.int64).reshape(-1, 2)
        return tomography.losing(counts[:, 0], counts[:, 1], false_alarm=false_alarm, margin=MARGIN_LOSS)
    errors = np.array([rows.errors[row] for row in mine.tolist()])
    return tomography.slower(rows.met[mine], errors, false_alarm=false_alarm, margin=rows.margin)


def _effect(metric: Metric, value: float, low: float, high: float, chance: float, count: int) -> PathEffect:
    unit = {"latency": "s", "loss": "share", "rate": "ratio"}[metric]
    if metric == "rate":
        value, low, high = math.exp(value), math.exp(low), math.exp(high)
    return PathEffect(
        metric=metric,
        value=Estimate(
            value=value,
            low=low,
            high=high,
            confidence=tomography.CONFIDENCE,
            unit=unit,
            n=count,
            method="flows of the same pairs held against each other",
        ),
        p_value=chance,
    )


def _culprit(rows: _Rows, bad: NDArray[np.bool_], ways: list[Way], effect: PathEffect) -> Culprit:
    directions = defaultdict(set)
    suffering = set()
    for row in np.flatnonzero(bad).tolist():
        flow, stratum = rows.flows[row], rows.strata[row]
        pair = flow.nodes[::-1] if stratum[-1] == "back" else flow.nodes
        directions[pair].add(stratum)
        suffering.add((pair, flow.protocol, flow.port))
    strata = set().union(*directions.values())
    all_of = {
        (flow.nodes[::-1] if stratum[-1] == "back" else flow.nodes, flow.protocol, flow.port)
        for flow, stratum in zip(rows.flows, rows.strata, strict=True)
        if stratum in strata
    }
    pairs = list(directions)
    common = set(pairs[0]).intersection(*map(set, pairs)) if len(pairs) > 1 else set()
    return Culprit(
        ways=ways,
        effects=[effect],
        pairs=pairs,
        common=sorted(common),
        suffering=len(suffering),
        flows=len(all_of),
        reproduction=None,
    )


def _together(culprits: Sequence[Culprit]) -> Iterator[Culprit]:
    """Yield culprits, with all effects of one and the same in one."""
    by_way: dict[tuple[object, ...], list[Culprit]] = defaultdict(list)
    for culprit in culprits:
        key = _key(culprit, [kept[0] for kept in by_way.values()])
        by_way[key].append(culprit)
    for same in by_way.values():
        most = max(same, key=lambda one: one.suffering)
        effects = [effect for one in same for effect in one.effects]
        pairs = list(dict.fromkeys(pair for one in same for pair in one.pairs))
        # What is any of many by one metric may be fewer by another.
        ways = min((one.ways for one in same), key=len)
        yield Culprit(
            ways=ways,
            effects=effects,
            pairs=pairs,
            common=most.common,
            suffering=most.suffering,
            flows=most.flows,
            reproduction=None,
        )


def _key(culprit: Culprit, known: Sequence[Culprit]) -> tuple[object, ...]:
    """Return what tells a culprit from others: the first way that an earlier one has, too."""
    mine = {tuple(way.hops) for way in culprit.ways}
    for other in known:
        if mine & {tuple(way.hops) for way in other.ways} or (not mine and not other.ways):
            return _own(other)
    return _own(culprit)


def _own(culprit: Culprit) -> tuple[object, ...]:
    return tuple(tuple(way.hops) for way in culprit.ways)


def _sight(rows: _Rows, false_alarm: float) -> Sight:
    passes, names = rows.matrix
    margin = rows.margin
    found = math.inf
    if names:
        found = tomography.visible(
            rows.met, rows.numbers, passes, false_alarm=false_alarm, trials=_counts(rows, 1)
        )
    if not math.isfinite(found):
        found = _visible_alone(rows, false_alarm)
    shown = max(found, margin)
    value = math.exp(min(shown, 700.0)) if rows.metric == "rate" else shown
    return Sight(metric=rows.metric, visible=value if math.isfinite(shown) else None, wanted=_wanted(rows))


def _visible_alone(rows: _Rows, false_alarm: float) -> float:
    """Return what a flow must be worse by to be told by itself, in the middle of all pairs."""
    strata = len(set(rows.strata))
    each = max(len(rows.flows) / strata, 1.0)
    if each < tomography.FEWEST:
        return math.inf
    limit = tomography.limit(false_alarm / strata / each)
    if rows.metric == "loss":
        sent = float(np.median([count for _, count in rows.counts]))
        return MARGIN_LOSS + tomography.visible_loss(false_alarm / strata, sent, each)
    errors = [error for error in rows.errors if math.isfinite(error)]
    if not errors:
        return math.inf
    return rows.margin + limit * math.sqrt(float(np.mean(np.square(errors))))
