"""Two runs against each other: the shift of every cell and of every operation, and a verdict.  Pure.

What a verdict means
--------------------
``better``, ``worse``
    The interval of the ratio excludes "no change", the false-discovery rate over all that was compared is below
    1 % (Benjamini–Hochberg), the effect is larger than the A/A limit, and it is not inside the margin.
``no difference``
    The whole interval lies inside the margin.
``no decision``
    Everything else: there is not enough evidence.

The A/A limit is three times the largest change that a run shows *within itself*, from its first half to its
second. Under a steady drift two runs in a row are twice as far apart as the halves of one, and the change is
itself uncertain; an effect no larger than that proves nothing. Where the launches of a run depend on each other
(a random walk), no effect can be told from that.
An offset between runs that leaves no trace within either (a reboot, another cable) cannot be told from an effect;
settings that alternate within one run can.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.stats import false_discovery_control

from wulf.estimate import by_reference
from wulf.records import (
    PASSING_FACTS,
    SCHEMA_VERSION,
    Analysis,
    Cell,
    CellComparison,
    CellEstimate,
    Comparison,
    Estimate,
    LaunchPoint,
    NodeRecord,
    Place,
    Plan,
    Verdict,
)
from wulf.stats.shift import Shift, shift
from wulf.stats.trend import dependence

#: Small, because two runs are never at exactly the same level: at 5 % simulated A/A pairs were called different in
#: up to 7 % of the cases (`bench/aa_sim.py`).
SIGNIFICANCE = 0.01
#: The A/A limit in changes between the halves of a run; 2 under a steady drift, 3 in simulation (`bench/aa_sim.py`).
DRIFT_FACTOR = 3.0
CAVEAT = "two runs cannot tell a setting's effect from whatever else changed between them"
#: Name of what differs where a node was looked at in one run only.
EVERYTHING = "all facts"
#: Pair of a figure that is pooled over pairs.
ALL_PAIRS: Place = ("all", "pairs")

#: Mean log ratio of each launch to the base's cells, in time order.
Votes = list[float]


def compare(
    base: Analysis,
    candidate: Analysis,
    base_nodes: Sequence[NodeRecord],
    candidate_nodes: Sequence[NodeRecord],
    margin: float = 0.02,
    plans: tuple[Plan, Plan] | None = None,
) -> Comparison:
    """Compare the cells that two runs have in common.

    Parameters
    ----------
    base, candidate
        The runs.
    base_nodes, candidate_nodes
        Facts of their nodes: what differs is listed.
    margin
        Relative change of the time that does not matter.
    plans
        Of the runs: another way to measure is listed with the facts that differ.
    """
    firsts = {cell.cell: cell for cell in base.cells}
    pairs = [(firsts[cell.cell], cell) for cell in candidate.cells if cell.cell in firsts]
    # A time of zero (a clock too coarse for the operation) has no ratio.
    common = [pair for pair in pairs if all(point.median_s > 0 for cell in pair for point in cell.launches)]
    pooled, limits = _pooled(common, margin)
    cells = _cells(common, limits, margin)
    verdict, reason = _overall(pooled, common, margin)
    differing = (_ways(*plans) if plans else {}) | differing_facts(base_nodes, candidate_nodes)
    effects = {op: _smallest(comparison, limits[op]) for op, comparison in pooled.items()}
    return Comparison(
        schema_version=SCHEMA_VERSION,
        base=base.run_id,
        candidate=candidate.run_id,
        differing_facts=differing,
        cells=cells,
        pooled=pooled,
        smallest_effect=max((effect for effect in effects.values() if effect is not None), default=None),
        smallest_effects=effects,
        margin=margin,
        verdict=verdict,
        reason=reason,
        adjusted=by_reference.ratios(base, candidate, differing),
    )


def _ways(base: Plan, candidate: Plan) -> dict[str, tuple[str, str]]:
    """Return in what the ways of measuring differ: a difference of the figures may come from that."""
    pairs = {False: "one at a time", True: "at the same time"}
    said = [
        ("pairs measured", *(pairs[plan.workload.at_once] for plan in (base, candidate))),
        ("length of a visit", *(f"{plan.workload.visit_us} µs" for plan in (base, candidate))),
    ]
    return {what: (before, after) for what, before, after in said if before != after}


def differing_facts(
    base: Iterable[NodeRecord], candidate: Iterable[NodeRecord]
) -> dict[str, tuple[str, str]]:
    """Facts that differ between two runs, ``node: fact`` → (in the base, in the candidate)."""
    firsts, seconds = ({record.node: record for record in nodes} for nodes in (base, candidate))
    result: dict[str, tuple[str, str]] = {}
    if firsts.keys() != seconds.keys():
        result["nodes"] = (", ".join(sorted(firsts)), ", ".join(sorted(seconds)))
    for node in sorted(firsts.keys() & seconds.keys()):
        before, after = firsts[node].facts, seconds[node].facts
        if bool(before) != bool(after):
            # Every single fact differs then, which says no more.
            result[f"{node}: {EVERYTHING}"] = (_looked_at(firsts[node]), _looked_at(seconds[node]))
            continue
        for fact in sorted((before.keys() | after.keys()) - PASSING_FACTS):
            if before.get(fact) != after.get(fact):
                result[f"{node}: {fact}"] = (
                    str(before.get(fact, "unknown")),
                    str(after.get(fact, "unknown")),
                )
    return result


def _looked_at(record: NodeRecord) -> str:
    return f"{len(record.facts)} facts" if record.facts else f"unknown: {record.error or 'no fact is known'}"


def _points(cell: CellEstimate) -> list[LaunchPoint]:
    """Choose the launches that the cell's time is made of: clean ones where those were enough."""
    clean = [point for point in cell.launches if not point.contaminated]
    return clean if len(clean) == cell.time.n else cell.launches


def _medians(cell: CellEstimate) -> list[float]:
    return [point.median_s for point in _points(cell)]


def _cells(
    common: Sequence[tuple[CellEstimate, CellEstimate]], limits: Mapping[str, float], margin: float
) -> list[CellComparison]:
    shifts = [shift(_medians(first), _medians(second)) for first, second in common]
    adjusted = _adjusted([found.p_value for found in shifts])
    return [
        _comparison(first.cell, found, p, limits[first.cell.op], margin)
        for (first, _), found, p in zip(common, shifts, adjusted, strict=True)
    ]


def _pooled(
    common: Sequence[tuple[CellEstimate, CellEstimate]], margin: float
) -> tuple[dict[str, CellComparison], dict[str, float]]:
    """Compare whole operations, one vote per launch; also the A/A limit of each, as a difference of logarithms."""
    groups: dict[str, list[tuple[CellEstimate, CellEstimate]]] = defaultdict(list)
    for first, second in common:
        groups[first.cell.op].append((first, second))
    votes = {op: _launch_votes(group) for op, group in groups.items()}
    limits = {op: max(map(_limit, sides)) for op, sides in votes.items()}
    shifts = {op: shift(np.exp(first), np.exp(second)) for op, (first, second) in votes.items()}
    adjusted = dict(zip(shifts, _adjusted([found.p_value for found in shifts.values()]), strict=True))
    pooled = {
        op: _comparison(Cell(op=op, size_bytes=-1, place=ALL_PAIRS), found, adjusted[op], limits[op], margin)
        for op, found in shifts.items()
    }
    return pooled, limits


def _launch_votes(group: Sequence[tuple[CellEstimate, CellEstimate]]) -> tuple[Votes, Votes]:
    """Mean log ratio of every launch to the base's cells, in time order, for either run."""
    sides: tuple[dict[int, list[float]], dict[int, list[float]]] = (defaultdict(list), defaultdict(list))
    for pair in group:
        centre = math.log(pair[0].time.value)
        for side, cell in zip(sides, pair, strict=True):
            for point in _points(cell):
                side[point.index].append(math.log(point.median_s) - centre)
    first, second = ([float(np.mean(side[index])) for index in sorted(side)] for side in sides)
    return first, second


def _limit(votes: Votes) -> float:
    """A/A limit of a run as a difference of logarithms; infinite where its launches depend on each other."""
    middle = len(votes) // 2
    p_value = dependence(votes)
    if middle == 0 or (p_value is not None and p_value < SIGNIFICANCE):
        return math.inf
    return DRIFT_FACTOR * abs(float(np.median(votes[-middle:]) - np.median(votes[:middle])))


def _adjusted(p_values: Sequence[float]) -> list[float]:
    if not p_values:
        return []
    return [float(p) for p in false_discovery_control(np.asarray(p_values), method="bh")]


def _comparison(cell: Cell, found: Shift, p_adjusted: float, limit: float, margin: float) -> CellComparison:
    interval = found.ratio
    return CellComparison(
        op=cell.op,
        size_bytes=cell.size_bytes,
        place=cell.place,
        ratio=Estimate(
            value=interval.value,
            low=interval.low,
            high=interval.high,
            confidence=interval.confidence,
            unit="ratio",
            n=interval.n,
            method=interval.method,
        ),
        p_value=found.p_value,
        p_adjusted=p_adjusted,
        verdict=_verdict(found, p_adjusted, limit, margin),
    )


def _verdict(found: Shift, p_adjusted: float, limit: float, margin: float) -> Verdict:
    low, high = found.ratio.low, found.ratio.high
    if low is None or high is None:
        return "no decision"
    if 1 - margin <= low and high <= 1 + margin:
        return "no difference"
    changed = p_adjusted < SIGNIFICANCE and (low > 1 or high < 1)
    if not changed or abs(math.log(found.ratio.value)) <= limit:
        return "no decision"
    return "worse" if low > 1 else "better"


def _smallest(pooled: CellComparison, limit: float) -> float | None:
    """Decrease that would have been seen, as a share: beyond the A/A limit, and beyond half the interval."""
    ratio = pooled.ratio
    if ratio.low is None or ratio.high is None or math.isinf(limit):
        return None
    return -math.expm1(-max(limit, math.log(ratio.high / ratio.low) / 2))


def _overall(
    pooled: Mapping[str, CellComparison], common: Sequence[object], margin: float
) -> tuple[Verdict, str]:
    if not common:
        return (
            "no decision",
            "the runs have nothing in common: no operation between the same nodes at the same size",
        )
    found = {comparison.verdict for comparison in pooled.values()}
    ops = {
        verdict: ", ".join(op for op, comparison in pooled.items() if comparison.verdict == verdict)
        for verdict in found
    }
    if {"better", "worse"} <= found:
        return "mixed", f"better: {ops['better']}; worse: {ops['worse']}; {CAVEAT}"
    for verdict in ("worse", "better"):
        if verdict in found:
            return verdict, f"{ops[verdict]}, pooled over all its cells; {CAVEAT}"
    if found == {"no difference"}:
        return "no difference", f"the whole interval lies within ±{margin:.1%} for every operation"
    return "no decision", f"not enough evidence for a change or for none: {ops['no decision']}"
