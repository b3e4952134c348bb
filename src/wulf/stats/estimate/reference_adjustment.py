"""Figures at one speed of the nodes: what the reference beside every figure takes out of them.  Pure.

A launch on a node that is slow just then (a neighbour on the core, a hypervisor, another frequency) has a slow
reference, too. Where that is proven for an operation, its times are moved along the slope of the logarithms to one time
of the reference, which is stated; other load is a second covariate, so no launch is left out. The raw figure always
stands beside.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records import (
    Adjusted,
    AdjustedRatio,
    Advice,
    Analysis,
    CellEstimate,
    Estimate,
    LaunchPoint,
    LaunchResult,
    Place,
    Plan,
)
from wulf.base.units import format_time
from wulf.stats.core import adjusted, covariates, intervals
from wulf.stats.core.sequential import interim_confidence
from wulf.stats.core.shift import shift
from wulf.stats.core.trend import dependence

Floats = NDArray[np.float64]

#: Significance at which the times of an operation are said to follow the reference, or launches one another.
SIGNIFICANCE = 0.01
#: With so many launches a cell has a slope of its own; with fewer that of its operation.
OWN_SLOPE = 12
#: Launches of either kind, clean and contaminated, from which on contamination is a covariate.
MIN_OF_A_KIND = 3
#: Significance at which the reference of two runs differs: larger than usual, since no difference is what is wanted.
MOVED = 0.05
#: Beginnings of the facts whose change may change what the reference takes.
OF_THE_NODE = ("cpu.", "kernel.", "sysctl.kernel.", "memory.", "vm.", "svc.tuned", "service.tuned")

#: What has a level of its own: a place, in a run.
Level = tuple[int, Place]


class _Votes(msgspec.Struct, frozen=True):
    """One value per launch and place of an operation, in time order."""

    levels: list[Level]
    #: Mean over sizes of the logarithm of the launch's time to the cell's middle.
    values: Floats
    #: Logarithm of the reference [s].
    references: Floats
    contaminated: Floats


class Measured(NamedTuple):
    """What a run gave."""

    cells: Sequence[CellEstimate]
    #: Launches with their references.
    results: Sequence[LaunchResult]
    plan: Plan


def adjust(
    cells: Sequence[CellEstimate], results: Sequence[LaunchResult], plan: Plan, at_s: float | None = None
) -> list[CellEstimate]:
    """Return the cells of a run with their references, and an adjusted time where that is of use; as `adjust_all`."""
    return adjust_all([Measured(cells, results, plan)], at_s)[0]


def adjust_all(runs: Sequence[Measured], at_s: float | None = None) -> list[list[CellEstimate]]:
    """Return the cells of several runs at one time of the reference.

    How the times follow the reference is learnt from the launches of all runs, each run with a level of its own.

    Parameters
    ----------
    at_s
        Time of the reference at which figures are given [s]; by default the median over an operation's launches.
    """
    told = [_with_references(run) for run in runs]
    votes: dict[str, list[_Votes]] = defaultdict(list)
    for number, cells in enumerate(told):
        for op, group in _by_operation(cells).items():
            votes[op].append(_votes(group, run=number))
    models = {op: _model(_joined(of_runs), at_s) for op, of_runs in votes.items()}
    return [
        [cell if (found := models[cell.cell.op]) is None else _cell(cell, found, run.plan) for cell in cells]
        for run, cells in zip(runs, told, strict=True)
    ]


def _by_operation(cells: Iterable[CellEstimate]) -> dict[str, list[CellEstimate]]:
    groups: dict[str, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        groups[cell.cell.op].append(cell)
    return groups


def _with_references(run: Measured) -> list[CellEstimate]:
    known = {(result.launch.id, one.place): one.time_s for result in run.results for one in result.references}
    return [
        msgspec.structs.replace(
            cell,
            launches=[
                msgspec.structs.replace(point, reference_s=known.get((point.launch, cell.cell.place)))
                for point in cell.launches
            ],
        )
        for cell in run.cells
    ]


def _usable(cell: CellEstimate) -> list[LaunchPoint]:
    return [point for point in cell.launches if point.reference_s is not None and point.median_s > 0]


def _votes(cells: Sequence[CellEstimate], centres: Mapping[int, float] | None = None, run: int = 0) -> _Votes:
    """Return the votes of an operation's launches; `centres` are logarithms of the cells' middles, if not their own."""
    logs: dict[tuple[Place, int], list[float]] = defaultdict(list)
    points: dict[tuple[Place, int], LaunchPoint] = {}
    for number, cell in enumerate(cells):
        usable = _usable(cell)
        if not usable:
            continue
        centre = statistics.median(math.log(point.median_s) for point in usable)
        for point in usable:
            turn = (cell.cell.place, point.index)
            logs[turn].append(math.log(point.median_s) - (centres[number] if centres else centre))
            points[turn] = point
    turns = sorted(logs, key=lambda turn: turn[1])
    return _Votes(
        [(run, place) for place, _ in turns],
        np.array([statistics.fmean(logs[turn]) for turn in turns]),
        np.array([math.log(points[turn].reference_s or math.nan) for turn in turns]),
        np.array([float(points[turn].contaminated) for turn in turns]),
    )


def _joined(votes: Sequence[_Votes]) -> _Votes:
    """Return the votes of several runs as one."""
    return _Votes(
        [level for one in votes for level in one.levels],
        np.concatenate([one.values for one in votes]),
        np.concatenate([one.references for one in votes]),
        np.concatenate([one.contaminated for one in votes]),
    )


def _distances(references: Floats, contaminated: Floats, at_s: float, *, kinds: bool) -> Floats:
    """Return the covariates less their wanted values: the stated reference, and no other load."""
    away = references - math.log(at_s)
    return np.column_stack([away, contaminated]) if kinds else away[:, None]


def _two_kinds(contaminated: Floats) -> bool:
    count = int(contaminated.sum())
    return MIN_OF_A_KIND <= count <= contaminated.size - MIN_OF_A_KIND


class _Model(msgspec.Struct, frozen=True):
    """How the times of an operation follow the covariates."""

    fit: covariates.Fit
    #: Whether other load is a covariate.
    kinds: bool
    #: Time of the reference at which figures are given [s].
    at_s: float
    #: Variance of the launches without ÷ with the adjustment.
    gain: float


def _model(votes: _Votes, at_s: float | None) -> _Model | None:
    """Return how an operation follows its reference; None where that is not proven, or of no use."""
    if not votes.levels:
        return None
    at_s = at_s or float(np.exp(np.median(votes.references)))
    kinds = _two_kinds(votes.contaminated)
    places = _columns(votes.levels)
    design = np.column_stack([places, _distances(votes.references, votes.contaminated, at_s, kinds=kinds)])
    fit = covariates.huber(design, votes.values)
    if fit is None or not _follows(fit, places.shape[1]):
        return None
    residuals = votes.values - design @ fit.coefficients
    raw = votes.values - places @ [np.median(votes.values[column > 0]) for column in places.T]
    gain = (_spread(raw) / (_spread(residuals) or math.inf)) ** 2
    dependent = dependence(residuals)
    if gain <= 1 or (dependent is not None and dependent < SIGNIFICANCE):
        return None
    return _Model(fit, kinds, at_s, gain)


def _columns(labels: Sequence[object]) -> Floats:
    """Return one column per label, in which those who have it are 1."""
    return np.array([[float(label == one) for one in dict.fromkeys(labels)] for label in labels])


def _follows(fit: covariates.Fit, index: int) -> bool:
    """Whether times are proven to grow with the reference."""
    return bool(fit.coefficients[index] > 0) and fit.p_value(index) < SIGNIFICANCE


def _spread(values: Floats) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _cell(cell: CellEstimate, model: _Model, plan: Plan) -> CellEstimate:
    points = _usable(cell)
    if not points:
        return cell
    logs, references = (
        np.log([getattr(point, name) for point in points]) for name in ("median_s", "reference_s")
    )
    contaminated = np.array([float(point.contaminated) for point in points])
    away = _distances(references, contaminated, model.at_s, kinds=model.kinds)
    own = (
        covariates.huber(np.column_stack([np.ones(len(points)), away]), logs)
        if len(points) >= OWN_SLOPE
        else None
    )
    fit = own if own is not None and _follows(own, 1) else model.fit
    nominal = interim_confidence(len(points), max(plan.min_launches, plan.tested_launches), plan.confidence)
    tested = plan.tested_launches > 0
    return msgspec.structs.replace(
        cell,
        adjusted=Adjusted(
            time=_time(adjusted.median(logs, away, fit, nominal, tested=tested), plan.confidence),
            reference_s=model.at_s,
            slope=_slope(fit, away.shape[1], plan.confidence),
            gain=model.gain,
        ),
    )


def _time(found: intervals.Interval, confidence: float) -> Estimate:
    """Return a time [s] from the interval of its logarithm."""
    return Estimate(
        value=math.exp(found.value),
        low=None if found.low is None else math.exp(found.low),
        high=None if found.high is None else math.exp(found.high),
        confidence=confidence,
        unit="s",
        n=found.n,
        method=found.method,
    )


def _slope(fit: covariates.Fit, count: int, confidence: float) -> Estimate:
    """Return the slope of the first of the last `count` coefficients."""
    return _coefficient(fit, fit.coefficients.size - count, confidence)


def _coefficient(fit: covariates.Fit, index: int, confidence: float) -> Estimate:
    value = float(fit.coefficients[index])
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, fit.freedom)) * math.sqrt(
        float(fit.covariance[index, index])
    )
    return Estimate(
        value=value,
        low=value - half,
        high=value + half,
        confidence=confidence,
        unit="ratio",
        n=fit.freedom + fit.coefficients.size,
        method=covariates.METHOD,
    )


def advise(cells: Sequence[CellEstimate]) -> Iterator[Advice]:
    """Say of which operations there are adjusted figures, and what they are good for."""
    groups: dict[str, Adjusted] = {}
    for cell in cells:
        if cell.adjusted is not None:
            groups.setdefault(cell.cell.op, cell.adjusted)
    for op, one in groups.items():
        yield Advice(
            kind="adjusted",
            severity="note",
            subject=op,
            text=f"launches were slow where their nodes were slow: at one time of the reference "
            f"({format_time(one.reference_s)}) they scatter {math.sqrt(one.gain):.1f} times less",
            advice="The adjusted figures beside the raw ones are the times at that reference, without other load "
            "where there were launches without. Compare them only with figures at the same reference.",
        )


def ratios(
    base: Analysis, candidate: Analysis, differing: Iterable[str], confidence: float = 0.95
) -> dict[str, AdjustedRatio]:
    """Return operation → the change from run to run at the same reference, or why there is none.

    Parameters
    ----------
    differing
        Names of what differs between the runs, as ``node: fact``.
    """
    moving = [what for what in differing if _of_the_node(what)]
    common = {cell.cell for cell in base.cells} & {cell.cell for cell in candidate.cells}
    found = {}
    for op in dict.fromkeys(cell.cell.op for cell in base.cells if cell.cell in common):
        first, second = (
            sorted(
                (cell for cell in run.cells if cell.cell in common and cell.cell.op == op),
                key=lambda c: c.cell,
            )
            for run in (base, candidate)
        )
        if all(_usable(cell) for cell in (*first, *second)):
            found[op] = _ratio(first, second, moving, confidence)
    return found


def _of_the_node(what: str) -> bool:
    """Whether what differs may change the reference; nodes of which nothing is known may."""
    fact = what.rpartition(": ")[2]
    return fact in ("nodes", "all facts") or fact.startswith(OF_THE_NODE)


def _ratio(
    first: Sequence[CellEstimate], second: Sequence[CellEstimate], moving: Sequence[str], confidence: float
) -> AdjustedRatio:
    centres = {number: math.log(cell.time.value) for number, cell in enumerate(first)}
    sides = [_votes(cells, centres) for cells in (first, second)]
    before, now = (np.exp(side.references) for side in sides)
    moved = shift(before, now, confidence)
    reference = Estimate(
        value=moved.ratio.value,
        low=moved.ratio.low,
        high=moved.ratio.high,
        confidence=confidence,
        unit="ratio",
        n=moved.ratio.n,
        method=moved.ratio.method,
    )
    if moving:
        return AdjustedRatio(
            reference=reference, reason=f"{moving[0]} differs, which may change the reference itself"
        )
    if moved.p_value < MOVED:
        return AdjustedRatio(
            reference=reference,
            reason="the reference differs between the runs: the setting may be what moved it",
        )
    both = _joined(sides)
    after = np.repeat([0.0, 1.0], [side.values.size for side in sides])
    places = _columns(both.levels)
    middle = float(np.exp(np.median(both.references)))
    away = _distances(both.references, both.contaminated, middle, kinds=_two_kinds(both.contaminated))
    fit = covariates.huber(np.column_stack([after, places, away]), both.values)
    if fit is None or not _follows(fit, 1 + places.shape[1]):
        return AdjustedRatio(reference=reference, reason="the times do not follow the reference")
    step = _coefficient(fit, 0, confidence)
    low, high = (None if bound is None else math.exp(bound) for bound in (step.low, step.high))
    ratio = msgspec.structs.replace(step, value=math.exp(step.value), low=low, high=high)
    return AdjustedRatio(reference=reference, ratio=ratio)
