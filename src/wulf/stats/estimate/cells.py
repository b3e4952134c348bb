"""Estimates of cells: the distribution of launch medians.  Pure.

The launch is the unit of replication: a cell's time is the median of its launch medians, with an interval
made of their order statistics. Contaminated launches are kept and shown; the time is made of the clean ones
as soon as there are enough of those (the run's minimum of launches), and of all before that.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from wulf.base.records import (
    Cell,
    CellEstimate,
    CellMode,
    Estimate,
    ExitEstimate,
    Launch,
    LaunchPoint,
    LaunchResult,
    Operation,
    Plan,
    Sample,
)
from wulf.base.text import count
from wulf.stats.core import intervals, modality, quantiles
from wulf.stats.core.sequential import interim_confidence
from wulf.stats.core.trend import DOUBTFUL_P, dependence, inflation

QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
LOOKS = "corrected for repeated looks"

#: Wider than independent launches would make it by less than this is not worth a word.
WORTH_SAYING = 1.05

#: No value counts in the mean of a sample as more than so many medians. Between neighbouring launches on two busy
#: cores the mean scattered 1.2 × as much as the median then; 2.1 × with a bound at the 99th percentile.
REACH = 4.0

#: Several modes within so many of a cell's launches are worth a word …
FEWEST_WITH_MODES = 2
SHARE_WITH_MODES = 0.2
#: … when the slowest takes so many times as long as the fastest.
APART = 1.1

#: Launch medians further from the middle than so many times the wanted precision have no single figure …
FAR = 5
#: … where there are enough to see that it is not one that stands out.
FEWEST_WITH_RANGE = 6

#: Share of a value that is finer than any grid but the histogram's own, which has three digits.
FINE = 0.004
#: Median [s] of one launch of a cell, and whether the launch is contaminated.
Median = tuple[float, bool]


def cells(
    samples: Iterable[Sample], launches: Iterable[Launch], plan: Plan, operations: Iterable[Operation]
) -> list[CellEstimate]:
    """Estimate every cell that at least one good launch has measured.

    Parameters
    ----------
    samples, launches
        Of the run; samples of failed launches are left out.
    plan
        Precision, confidence, minimum of launches.
    operations
        What the values of each operation are.

    Returns
    -------
    list of CellEstimate
        Ordered by cell.
    """
    good = {launch.id: launch for launch in launches if launch.status == "ok"}
    of = {operation.name: operation for operation in operations}
    grouped: dict[Cell, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.launch in good and sample.histogram:
            grouped[sample.cell].append(sample)
    return [_estimate(cell, grouped[cell], good, plan, of.get(cell.op)) for cell in sorted(grouped)]


def medians(result: LaunchResult) -> dict[Cell, Median]:
    """Median of every cell of one launch; empty for a failed one."""
    suspect = bool(result.launch.contamination)
    return {
        sample.cell: (sample_quantiles(sample, [0.5])[0], suspect)
        for sample in result.samples
        if sample.histogram
    }


def launches_needed(launches: Sequence[Mapping[Cell, Median]], plan: Plan) -> int:
    """How many more launches the least precise cell will need; 0 when all have reached the plan's precision.

    Intervals narrow with the root of the number of launches; the answer is a forecast, not a promise.

    Parameters
    ----------
    launches
        Medians of each launch of one operation and pair, as `medians` returns them.
    """
    grouped: dict[Cell, list[Median]] = defaultdict(list)
    for launch in launches:
        for cell, point in launch.items():
            grouped[cell].append(point)
    return max((_needed(points, plan) for points in grouped.values()), default=plan.min_launches)


def _needed(points: Sequence[Median], plan: Plan) -> int:
    # Between all of so few values the median lies too rarely: there is no interval, and it need not be looked for.
    if 2.0 ** (1 - len(points)) > 1 - plan.confidence and len(points) < plan.min_launches:
        return plan.min_launches - len(points)
    return _missing(interval(points, plan), plan)


def launches_untested(launches: Sequence[Mapping[Cell, Median]], plan: Plan) -> int:
    """How many more launches it takes to say that the launches of one operation and pair do not depend on each other.

    Parameters
    ----------
    launches
        As of `launches_needed`, in time order.

    Returns
    -------
    int
        0 when there are enough and they seem not to; else until there are enough, or one more.
    """
    wanted = min(plan.tested_launches, plan.max_launches)
    if len(launches) < wanted or not wanted:
        return max(wanted - len(launches), 0)
    found = dependence([common(launch.values()) for launch in launches])
    return int(found is not None and found <= DOUBTFUL_P)


def common(points: Iterable[Median]) -> float:
    """Mean logarithm of the medians of one launch: what a state of the machine does moves all sizes together."""
    logs = [math.log(median) for median, _ in points if median > 0]
    return sum(logs) / len(logs) if logs else 0.0


def _estimate(
    cell: Cell,
    samples: Sequence[Sample],
    launches: Mapping[str, Launch],
    plan: Plan,
    operation: Operation | None,
) -> CellEstimate:
    ordered = sorted(samples, key=lambda sample: launches[sample.launch].index)
    points = [_point(sample, launches[sample.launch]) for sample in ordered]
    medians_ = [(point.median_s, point.contaminated) for point in points]
    found = interval(medians_, plan, _grid_s(ordered))
    between = modality.count_modes([point.median_s for point in points])
    return CellEstimate(
        cell=cell,
        time=as_estimate(found, operation.unit if operation else "s"),
        bandwidth=_bandwidth(cell.size_bytes, found) if operation and operation.moves_bytes else None,
        quantiles_s=pooled_quantiles(ordered),
        launches=points,
        iterations=sum(sample.iterations for sample in ordered),
        outlying=sum(_outlying(sample) for sample in ordered),
        lost=sum(sample.lost for sample in ordered),
        corrupt=sum(sample.corrupt for sample in ordered),
        widened=math.sqrt(_inflation(chosen(medians_, plan), plan)),
        launches_with_modes=sum(point.modes > 1 for point in points),
        modes_within=_modes_within(points),
        range_s=_range(points, between, plan.precision),
        modes_between=between,
        target=plan.precision,
        reached=_reached(found, plan),
        exits=_exits(ordered),
        in_memory=_in_memory(ordered),
        notes=_notes(points, found),
    )


def _exits(samples: Sequence[Sample]) -> ExitEstimate | None:
    known = [(sample.exits, sample.iterations) for sample in samples if sample.exits is not None]
    if not known:
        return None
    late = sum(exits.late for exits, _ in known)
    errors = [error for exits, _ in known for error in exits.clock_errors_ns]
    of_launches = [[statistics.median(visits) for visits in exits.medians_ns] for exits, _ in known]
    return ExitEstimate(
        ranks_s=[statistics.median(times) * 1e-9 for times in zip(*of_launches, strict=True)],
        late=late / (late + sum(iterations for _, iterations in known)),
        tolerance_s=statistics.median(ns for exits, _ in known for ns in exits.tolerances_ns) * 1e-9,
        clock_error_s=statistics.median(errors) * 1e-9,
        clock_error_max_s=max(errors) * 1e-9,
    )


def _in_memory(samples: Sequence[Sample]) -> float | None:
    """Return which share of a file's bytes was in memory; None where some node does not say it."""
    known = [
        statistics.fmean(share for share in sample.in_memory if share is not None)
        for sample in samples
        if sample.in_memory and None not in sample.in_memory
    ]
    return statistics.median(known) if known and len(known) == len(samples) else None


def chosen(points: Sequence[Median], plan: Plan) -> list[float]:
    """Medians that the time is made of: of the clean launches when there are enough, else of all."""
    clean = [median for median, contaminated in points if not contaminated]
    return clean if len(clean) >= plan.min_launches else [median for median, _ in points]


def interval(points: Sequence[Median], plan: Plan, grid_s: float = 0.0) -> intervals.Interval:
    """Return the interval of a cell, made of the medians of its launches.

    Parameters
    ----------
    points
        In time order.
    grid_s
        Step of the clock as iterations show it, if that is known [s].
    """
    values = chosen(points, plan)
    inflation_ = _inflation(values, plan)
    nominal = interim_confidence(len(values), max(plan.min_launches, plan.tested_launches), plan.confidence)
    found = intervals.median(values, nominal, inflation_)
    # Wider by as much as looking again and again takes away: what is printed has the plan's confidence.
    looks = [LOOKS] if nominal != plan.confidence else []
    wider = math.sqrt(inflation_)
    dependent = [f"{wider:.1f} × wider as launches resemble each other"] if wider >= WORTH_SAYING else []
    found = replace(found, confidence=plan.confidence, method=", ".join([found.method, *looks, *dependent]))
    return intervals.on_grid(found, max(grid_s, intervals.grid_step(values)))


def _grid_s(samples: Sequence[Sample]) -> float:
    """Return the step of the clock that the values of a cell lie on [s]; 0 where it is as fine as a histogram is."""
    steps = [step for sample in samples if (step := _step_ns(sample)) is not None]
    return min(steps) * 1e-9 if len(steps) == len(samples) else 0.0


def _step_ns(sample: Sample) -> float | None:
    values = np.array([value for value, _ in sample.histogram], dtype=np.float64)
    if len(values) < 2:
        return None
    step = float(np.min(np.diff(np.sort(values))))
    # Of values of three digits each the histogram itself is a grid.
    return step / sample.divisor if step > FINE * float(np.median(values)) else None


def _inflation(values: Sequence[float], plan: Plan) -> float:
    """How much more the median of these launches varies than that of independent ones; 1 in runs of before."""
    return float(inflation(np.asarray(values))) if plan.tested_launches else 1.0


def _reached(interval: intervals.Interval, plan: Plan) -> bool:
    if plan.series is not None:
        return True  # it lasts as long as was asked, and is as precise as that makes it
    half = interval.half_width_ratio
    return interval.n >= plan.min_launches and half is not None and half <= plan.precision


def _missing(interval: intervals.Interval, plan: Plan) -> int:
    if _reached(interval, plan):
        return 0
    half = interval.half_width_ratio
    if half is None:
        return max(plan.min_launches - interval.n, 1)
    return max(math.ceil(interval.n * ((half / plan.precision) ** 2 - 1)), 1)


def as_estimate(interval: intervals.Interval, unit: str) -> Estimate:
    """Return the record of an interval."""
    return Estimate(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        confidence=interval.confidence,
        unit=unit,
        n=interval.n,
        method=interval.method,
    )


def _bandwidth(size_bytes: int, interval: intervals.Interval) -> Estimate | None:
    """Size ÷ time; the bounds change places."""
    if size_bytes == 0 or interval.value <= 0:
        return None
    low = None if interval.high is None else size_bytes / interval.high
    high = None if interval.low is None or interval.low <= 0 else size_bytes / interval.low
    return Estimate(
        value=size_bytes / interval.value,
        low=low,
        high=high,
        confidence=interval.confidence,
        unit="B/s",
        n=interval.n,
        method=interval.method,
    )


def sample_quantiles(sample: Sample, probabilities: Sequence[float]) -> list[float]:
    """Quantiles of the operation's quantity in one sample [s]."""
    values, counts = zip(*sample.histogram, strict=True)
    found = quantiles.weighted_quantiles(values, counts, probabilities)
    return [float(value) * 1e-9 / sample.divisor for value in found]


def sample_mean(sample: Sample) -> float:
    """Mean of the operation's quantity in one sample [s], no value counted as more than `REACH` medians.

    It moves as the time of many messages does, where the median stays in the larger of two modes.
    """
    values, counts = zip(*sample.histogram, strict=True)
    return quantiles.bounded_mean(values, counts, REACH) * 1e-9 / sample.divisor


def means(
    samples: Iterable[Sample], launches: Iterable[Launch], plan: Plan, operations: Iterable[Operation]
) -> dict[Cell, Estimate]:
    """Return of every cell the median over launches of their means, with its interval as of `cells` [s].

    Many messages one after the other take this, where a cell's median is what one of them takes.
    """
    good = {launch.id: launch for launch in launches if launch.status == "ok"}
    units = {operation.name: operation.unit for operation in operations}
    grouped: dict[Cell, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.launch in good and sample.histogram:
            grouped[sample.cell].append(sample)
    found = {}
    for cell, several in grouped.items():
        ordered = sorted(several, key=lambda sample: good[sample.launch].index)
        points = [(sample_mean(sample), bool(good[sample.launch].contamination)) for sample in ordered]
        found[cell] = as_estimate(interval(points, plan), units.get(cell.op, "s"))
    return found


def _point(sample: Sample, launch: Launch) -> LaunchPoint:
    found = dict(zip(QUANTILES, sample_quantiles(sample, list(QUANTILES.values())), strict=True))
    values, counts = zip(*sample.histogram, strict=True)
    scale = 1e-9 / sample.divisor
    modes = modality.modes(values, counts)
    return LaunchPoint(
        launch=sample.launch,
        index=launch.index,
        median_s=found["p50"],
        quantiles_s={}
        if sample.timing == "statistic"
        else {"min": sample.min_ns * scale, **found, "max": sample.max_ns * scale},
        values=sum(counts),
        modes=max(len(modes), 1),
        modes_at=[(mode.middle * scale, mode.share) for mode in modes] if len(modes) > 1 else [],
        contaminated=bool(launch.contamination),
        busiest_cpu_ratio=max(
            (one.busiest_cpu_ratio for one in launch.context if one.busiest_cpu_ratio is not None),
            default=None,
        ),
    )


def _modes_within(points: Sequence[LaunchPoint]) -> list[CellMode]:
    """Fastest and slowest mode within the launches that have several; empty where they are few, or close together."""
    several = [point.modes_at for point in points if point.modes_at]
    if len(several) < max(FEWEST_WITH_MODES, SHARE_WITH_MODES * len(points)):
        return []
    fastest, slowest = (_mode([modes[end] for modes in several]) for end in (0, -1))
    return [fastest, slowest] if slowest.time_s >= APART * fastest.time_s else []


def _mode(found: Sequence[tuple[float, float]]) -> CellMode:
    times, shares = zip(*found, strict=True)
    return CellMode(
        time_s=statistics.median(times),
        low_s=min(times),
        high_s=max(times),
        share=statistics.median(shares),
    )


def _range(points: Sequence[LaunchPoint], groups: int, precision: float) -> tuple[float, float] | None:
    """Return the times between which nine of ten launch medians lie, where these are too far apart for one figure."""
    times = sorted(point.median_s for point in points)
    if len(times) < FEWEST_WITH_RANGE:
        return None
    low, high = quantiles.weighted_quantiles(times, [1] * len(times), [0.05, 0.95])
    wide = high - low > 2 * FAR * precision * statistics.median(times)
    return (float(low), float(high)) if wide or groups > 1 else None


def pooled_quantiles(samples: Sequence[Sample]) -> dict[str, float]:
    """Quantiles over all iterations of all launches; empty where these are not known."""
    if any(sample.timing == "statistic" for sample in samples):
        return {}
    scaled = [
        (np.array(sample.histogram, dtype=np.float64) * [1e-9 / sample.divisor, 1.0]) for sample in samples
    ]
    pooled = np.concatenate(scaled)
    pooled = pooled[np.argsort(pooled[:, 0], kind="stable")]
    found = quantiles.weighted_quantiles(pooled[:, 0], pooled[:, 1], list(QUANTILES.values()))
    return {
        "min": min(sample.min_ns * 1e-9 / sample.divisor for sample in samples),
        **{name: float(value) for name, value in zip(QUANTILES, found, strict=True)},
        "max": max(sample.max_ns * 1e-9 / sample.divisor for sample in samples),
    }


def _outlying(sample: Sample) -> int:
    values, counts = zip(*sample.histogram, strict=True)
    return quantiles.count_outside(values, counts)


def _notes(points: Sequence[LaunchPoint], interval: intervals.Interval) -> list[str]:
    suspect = sum(point.contaminated for point in points)
    notes = []
    if suspect and interval.n < len(points):
        notes.append(
            f"made of {count(interval.n, 'clean launch')}; {suspect} contaminated ones are only shown"
        )
    elif suspect:
        notes.append(
            f"contaminated: {suspect} of {count(len(points), 'launch')}, too few clean ones to do without"
        )
    if interval.low is None:
        notes.append(f"too few for an interval: {count(interval.n, 'launch')}")
    return notes
