"""Two runs against each other: the shift of every cell and of every operation, and a verdict.  Pure.

What a verdict means
--------------------
``better``, ``worse``
    The runs differ, and with the whole interval by more than two runs of the same thing may (an *offset*: each is 2 to
    5 % off on another day, so 10 %; or what either changed by within itself, if that is more); and a drift that goes on
    from one run to the other does not explain it. A single cell has to be further off than the furthest of as many
    that differ as much as all cells' shifts do.
``different``
    The runs differ, and that may be an offset.
``no difference``
    The whole interval lies inside the margin: of these two runs.
``no decision``
    Everything else: there is not enough evidence, a drift explains it, or launches of a run depend on each other, so
    that nobody knows how much evidence there is.

Runs *differ* when the interval of the ratio excludes "no change", the false-discovery rate over all that was compared
is below 1 % (Benjamini–Hochberg), and it is not inside the margin. Where both runs have a slope in common, it is the
step between them beside that slope that must be there.

An offset between runs leaves no trace within either (a reboot, another cable, another day): no analysis of two runs
tells it from an effect. Launches in turn do: `wulf.stats.estimate.interleaved`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np
import scipy
from numpy.typing import ArrayLike

from wulf.base.records import (
    PASSING_FACTS,
    SCHEMA_VERSION,
    Analysis,
    Cell,
    CellComparison,
    CellEstimate,
    Comparison,
    LaunchPoint,
    NodeRecord,
    Place,
    Plan,
    Verdict,
)
from wulf.base.text import count
from wulf.stats.core.intervals import Interval
from wulf.stats.core.shift import Shift, shift
from wulf.stats.core.step import step
from wulf.stats.core.trend import DEPENDENT_P, dependence, inflation
from wulf.stats.estimate import reference_adjustment
from wulf.stats.estimate.cells import as_estimate

#: Small, because two runs are never at exactly the same level.
SIGNIFICANCE = 0.01
#: Significance of a slope that both runs have, and of a step beside it.
SLOPE_P = STEP_P = 0.05
#: By so much two runs of the same thing may differ: each is off by 2 to 5 % on another day.
OFFSET = 0.10
#: Cells from which it shows how much each is off by itself; of a normal distribution: standard deviation ÷ median
#: absolute deviation.
FEWEST_CELLS, MAD = 4, 1.4826
CAVEAT = "two runs cannot tell a setting's effect from whatever else changed between them"
INTERLEAVE = "measure them interleaved to know (wulf compare --interleaved)"
#: Name of what differs where a node was looked at in one run only.
EVERYTHING = "all facts"
#: Pair of a figure that is pooled over pairs.
ALL_PAIRS: Place = ("all", "pairs")

#: Mean log ratio of each launch to the base's cells, in time order.
Votes = list[float]


class Ground(msgspec.Struct, frozen=True):
    """What two runs of an operation show of themselves: what an effect must stand out from."""

    #: A change up to this, as a difference of logarithms, may be an offset.
    offset: float
    #: How much more the medians vary than those of as many independent launches.
    inflation: float
    #: Whether both runs have a slope in common.
    slope: bool
    #: Whether launches depend on each other beside that.
    dependent: bool


def compare(
    base: Analysis,
    candidate: Analysis,
    base_nodes: Sequence[NodeRecord],
    candidate_nodes: Sequence[NodeRecord],
    margin: float = 0.02,
    plans: tuple[Plan, Plan] | None = None,
    *,
    candidate_is_earlier: bool = False,
    higher: Collection[str] = (),
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
    candidate_is_earlier
        Which run was measured first.
    higher
        Operations of which the larger values are the good ones.
    """
    common = _in_common(base, candidate)
    judge = _Judge(margin, candidate_is_earlier)
    judged, grounds = _pooled(common, judge)
    pooled = {op: directed(found, higher) for op, found in judged.items()}
    verdict, reason = _overall(pooled, grounds, common, margin)
    effects = {op: _smallest(found, grounds[op]) for op, found in pooled.items()}
    differing = (_ways(*plans) if plans else {}) | differing_facts(base_nodes, candidate_nodes)
    return Comparison(
        schema_version=SCHEMA_VERSION,
        base=base.run_id,
        candidate=candidate.run_id,
        offset=_offset(grounds),
        differing_facts=differing,
        cells=[directed(found, higher) for found in _cells(common, grounds, judge)],
        unshared=(_only_in(base, candidate), _only_in(candidate, base)),
        pooled=pooled,
        smallest_effect=max((effect for effect in effects.values() if effect is not None), default=None),
        smallest_effects=effects,
        margin=margin,
        verdict=verdict,
        reason=reason,
        adjusted=reference_adjustment.ratios(base, candidate, differing),
    )


def _in_common(base: Analysis, candidate: Analysis) -> list[tuple[CellEstimate, CellEstimate]]:
    firsts = {cell.cell: cell for cell in base.cells}
    pairs = [(firsts[cell.cell], cell) for cell in candidate.cells if cell.cell in firsts]
    # A time of zero (a clock too coarse for the operation) has no ratio.
    return [pair for pair in pairs if all(point.median_s > 0 for cell in pair for point in cell.launches)]


def _only_in(run: Analysis, other: Analysis) -> dict[str, list[Place]]:
    """Return where one run measured what the other did not at any size."""
    found: dict[str, list[Place]] = {}
    both = {(one.cell.op, one.cell.place) for one in other.cells}
    for op, place in dict.fromkeys((one.cell.op, one.cell.place) for one in run.cells):
        if (op, place) not in both:
            found.setdefault(op, []).append(place)
    return found


def _offset(grounds: Mapping[str, Ground]) -> float:
    return math.expm1(max((ground.offset for ground in grounds.values()), default=math.log1p(OFFSET)))


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
        for fact in sorted(
            name for name in before.keys() | after.keys() if name.partition("@")[0] not in PASSING_FACTS
        ):
            if before.get(fact) != after.get(fact):
                result[f"{node}: {fact}"] = (
                    str(before.get(fact, "unknown")),
                    str(after.get(fact, "unknown")),
                )
    return result


def _looked_at(record: NodeRecord) -> str:
    return (
        count(len(record.facts), "fact") if record.facts else f"unknown: {record.error or 'no fact is known'}"
    )


def _points(cell: CellEstimate) -> list[LaunchPoint]:
    """Choose the launches that the cell's time is made of: clean ones where those were enough."""
    clean = [point for point in cell.launches if not point.contaminated]
    return clean if len(clean) == cell.time.n else cell.launches


def _medians(cell: CellEstimate) -> list[float]:
    return [point.median_s for point in _points(cell)]


def _cells(
    common: Sequence[tuple[CellEstimate, CellEstimate]], grounds: Mapping[str, Ground], judge: _Judge
) -> list[CellComparison]:
    series = [tuple(np.log(_medians(cell)) for cell in pair) for pair in common]
    shifts = [
        widened(shift(np.exp(first), np.exp(second)), grounds[pair[0].cell.op].inflation)
        for pair, (first, second) in zip(common, series, strict=True)
    ]
    adjusted = adjust([found.p_value for found in shifts])
    ops = [pair[0].cell.op for pair in common]
    own = {
        op: _own_offset([one.ratio.value for one, other in zip(shifts, ops, strict=True) if other == op])
        for op in set(ops)
    }
    return [
        comparison(
            pair[0].cell,
            found,
            p,
            judge.verdict(
                found, p, msgspec.structs.replace(ground, offset=max(ground.offset, own[op])), first, second
            ),
        )
        for pair, (first, second), found, p, op in zip(common, series, shifts, adjusted, ops, strict=True)
        for ground in [grounds[op]]
    ]


def _own_offset(ratios: Sequence[float]) -> float:
    """Return up to which change a single cell of so many may be off beside all others, as a difference of logarithms.

    Each pair, and each size, comes back a little different from another day: by how much shows in how the shifts of
    all cells differ (their median absolute deviation, which no single one decides). Of many some are far off by chance.
    """
    if len(ratios) < FEWEST_CELLS:
        return 0.0
    shifts = np.log(ratios)
    spread = MAD * float(np.median(np.abs(shifts - np.median(shifts))))
    return spread * float(scipy.stats.norm.isf(SIGNIFICANCE / 2 / len(ratios)))


def _pooled(
    common: Sequence[tuple[CellEstimate, CellEstimate]], judge: _Judge
) -> tuple[dict[str, CellComparison], dict[str, Ground]]:
    """Compare whole operations, one vote per launch; also what an effect must stand out from in each."""
    groups: dict[str, list[tuple[CellEstimate, CellEstimate]]] = defaultdict(list)
    for first, second in common:
        groups[first.cell.op].append((first, second))
    votes = {op: _launch_votes(group) for op, group in groups.items()}
    grounds = {op: judge.ground(*sides) for op, sides in votes.items()}
    shifts = {
        op: widened(shift(np.exp(first), np.exp(second)), grounds[op].inflation)
        for op, (first, second) in votes.items()
    }
    adjusted = dict(zip(shifts, adjust([found.p_value for found in shifts.values()]), strict=True))
    pooled = {
        op: comparison(
            Cell(op=op, size_bytes=-1, place=ALL_PAIRS),
            found,
            adjusted[op],
            judge.verdict(found, adjusted[op], grounds[op], *votes[op]),
        )
        for op, found in shifts.items()
    }
    return pooled, grounds


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


class _Judge:
    """Says of two series of logarithms of times what may be said of them."""

    def __init__(self, margin: float, candidate_is_earlier: bool) -> None:
        self._margin = margin
        self._candidate_is_earlier = candidate_is_earlier

    def ground(self, first: Votes, second: Votes) -> Ground:
        """Return what the runs show of themselves."""
        found = step(first, second, second_is_earlier=self._candidate_is_earlier)
        if found is None:
            return Ground(math.log1p(OFFSET), 1.0, slope=False, dependent=False)
        p_value = dependence(found.residuals)
        return Ground(
            max(math.log1p(OFFSET), _change(first), _change(second)),
            float(inflation(found.residuals)),
            slope=found.slope_p_value < SLOPE_P,
            dependent=p_value is not None and p_value < DEPENDENT_P,
        )

    def verdict(
        self, found: Shift, p_adjusted: float, ground: Ground, first: ArrayLike, second: ArrayLike
    ) -> Verdict:
        """Return the verdict on one shift; see the module."""
        low, high = found.ratio.low, found.ratio.high
        if low is None or high is None or ground.dependent:
            return "no decision"
        if 1 - self._margin <= low and high <= 1 + self._margin:
            return "no difference"
        if p_adjusted >= SIGNIFICANCE or low <= 1 <= high:
            return "no decision"
        beside = step(first, second, second_is_earlier=self._candidate_is_earlier)
        stands = (
            beside is not None and beside.p_value < STEP_P and (beside.height > 0) == (found.ratio.value > 1)
        )
        if ground.slope and not stands:
            return "no decision"
        if not stands or min(abs(math.log(low)), abs(math.log(high))) <= ground.offset:
            return "different"
        return "worse" if low > 1 else "better"


def _change(votes: Votes) -> float:
    """Change of a run from its first half to its second."""
    middle = len(votes) // 2
    return abs(float(np.median(votes[-middle:]) - np.median(votes[:middle]))) if middle else 0.0


def widened(found: Shift, inflation_: float) -> Shift:
    """Return a shift with the interval of launches whose median varies so many times as much as independent ones'."""
    ratio = found.ratio
    if inflation_ == 1 or ratio.low is None or ratio.high is None:
        return found
    wider = math.sqrt(inflation_)
    return Shift(
        Interval(
            ratio.value,
            ratio.value * (ratio.low / ratio.value) ** wider,
            ratio.value * (ratio.high / ratio.value) ** wider,
            ratio.confidence,
            f"{ratio.method}, {wider:.1f} × wider as launches resemble each other",
            ratio.n,
        ),
        found.p_value,
    )


def adjust(p_values: Sequence[float]) -> list[float]:
    """Control the false-discovery rate after Benjamini and Hochberg."""
    if not p_values:
        return []
    return [float(p) for p in scipy.stats.false_discovery_control(np.asarray(p_values), method="bh")]


def directed(found: CellComparison, higher: Collection[str]) -> CellComparison:
    """Return a comparison whose verdict was made for a time, as it is for an operation of which more is better."""
    other: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}
    if found.op not in higher or found.verdict not in other:
        return found
    return msgspec.structs.replace(found, verdict=other[found.verdict])


def comparison(cell: Cell, found: Shift, p_adjusted: float, verdict: Verdict) -> CellComparison:
    """Return the record of one shift."""
    return CellComparison(
        op=cell.op,
        size_bytes=cell.size_bytes,
        place=cell.place,
        ratio=as_estimate(found.ratio, "ratio"),
        p_value=found.p_value,
        p_adjusted=p_adjusted,
        verdict=verdict,
    )


def _smallest(pooled: CellComparison, ground: Ground) -> float | None:
    """Decrease that would have been seen, as a share: beyond half the interval."""
    ratio = pooled.ratio
    if ratio.low is None or ratio.high is None or ground.dependent:
        return None
    return -math.expm1(-math.log(ratio.high / ratio.low) / 2)


def _overall(
    pooled: Mapping[str, CellComparison],
    grounds: Mapping[str, Ground],
    common: Sequence[object],
    margin: float,
) -> tuple[Verdict, str]:
    if not common:
        return (
            "no decision",
            "the runs have nothing in common: no operation between the same nodes at the same size",
        )
    verdict, named = overall(pooled)
    said = {
        "different": f"the runs differ in {named}, by no more than an offset between two runs may: {INTERLEAVE}",
        "no difference": f"the whole interval lies within ±{margin:.1%} for every operation; an effect may hide behind "
        "an offset between the runs",
        "no decision": _undecided(pooled, grounds),
    }
    return verdict, said.get(verdict) or f"{named}; {CAVEAT}"


def overall(pooled: Mapping[str, CellComparison]) -> tuple[Verdict, str]:
    """Return the verdict over all operations, and those that it is about."""
    ops: dict[Verdict, str] = {}
    for op, found in pooled.items():
        ops[found.verdict] = f"{ops[found.verdict]}, {op}" if found.verdict in ops else op
    if "better" in ops and "worse" in ops:
        return "mixed", f"better: {ops['better']}; worse: {ops['worse']}"
    order: tuple[Verdict, ...] = ("worse", "better", "different", "no decision", "no difference")
    verdict = next(word for word in order if word in ops)
    over = ", pooled over all its cells" if verdict in ("worse", "better") else ""
    return verdict, ops[verdict] + over


def _undecided(pooled: Mapping[str, CellComparison], grounds: Mapping[str, Ground]) -> str:
    open_ = [op for op, found in pooled.items() if found.verdict == "no decision"]
    bound = [op for op in open_ if grounds[op].dependent]
    if bound:
        return (
            f"launches of {', '.join(bound)} in a row resemble each other, so it is unknown what a difference of "
            f"two runs says: {INTERLEAVE}"
        )
    drifting = [op for op in open_ if grounds[op].slope]
    drift = f" (both runs of {', '.join(drifting)} drift, which explains a difference)" if drifting else ""
    return f"not enough evidence for a change or for none: {', '.join(open_)}{drift}"
