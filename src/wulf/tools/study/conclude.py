"""What follows from the runs of a study: values, effects, interactions, lines, what a rate costs.  Pure."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf.base.records import SCHEMA_VERSION, Estimate, Verdict
from wulf.base.text import count
from wulf.stats.core import intervals, linear, regression
from wulf.stats.core.paired import paired_shift
from wulf.stats.core.shift import Shift
from wulf.stats.estimate.cells import as_estimate
from wulf.stats.estimate.comparison import SIGNIFICANCE, adjust
from wulf.tools.study import design
from wulf.tools.study.metrics import FEWEST_POINTS
from wulf.tools.study.record import (
    StudyCell,
    StudyCost,
    StudyEffect,
    StudyFigure,
    StudyLine,
    StudyManifest,
    StudyMetric,
    StudyPlan,
    StudyResult,
    StudyTrial,
)

CONFIDENCE = 0.95

Floats = NDArray[np.float64]


class _Pair(NamedTuple):
    """What one turn of a combination gave, beside the base."""

    cell: int
    #: Logarithm of its value ÷ the base's.
    ratio: float


def conclude(manifest: StudyManifest, trials: Sequence[StudyTrial]) -> StudyResult:
    """Return what follows from the runs that were made."""
    plan = manifest.plan
    pairs = {name: list(_pairs(name, trials)) for name, _ in plan.figures}
    effects, none = _effects(plan, pairs)
    values = _values(plan, trials)
    return StudyResult(
        schema_version=SCHEMA_VERSION,
        run_id=manifest.id,
        status=manifest.status,
        cells=_cells(plan, trials, values, pairs),
        effects=effects,
        no_interactions=none,
        lines=list(_lines(plan, trials)),
        costs=list(_costs(plan, values)),
        runs=len(trials),
        wanted=design.runs_of(len(plan.cells), plan.replications),
        contaminated=sum(bool(trial.contamination) for trial in trials),
    )


def _pairs(figure: str, trials: Sequence[StudyTrial]) -> Iterator[_Pair]:
    """Yield what is known of a figure in turns whose two runs both gave it."""
    by_turn: dict[tuple[int, int], dict[bool, float]] = defaultdict(dict)
    for trial in trials:
        if trial.cell and figure in trial.values:
            by_turn[trial.replication, trial.cell][trial.is_base] = trial.values[figure]
    for (_, cell), both in by_turn.items():
        if len(both) == 2:
            yield _Pair(cell, math.log(both[False] / both[True]))


def _values(plan: StudyPlan, trials: Sequence[StudyTrial]) -> dict[tuple[int, str], list[float]]:
    """Return the values of every combination and figure; the base's are those of all its runs."""
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for trial in trials:
        for name, _ in plan.figures:
            if name in trial.values:
                found[0 if trial.is_base else trial.cell, name].append(trial.values[name])
    return found


def _cells(
    plan: StudyPlan,
    trials: Sequence[StudyTrial],
    values: Mapping[tuple[int, str], Sequence[float]],
    pairs: Mapping[str, Sequence[_Pair]],
) -> list[StudyCell]:
    shifts = {
        (cell, name): paired_shift(ratios, CONFIDENCE)
        for name, found in pairs.items()
        for cell in range(1, len(plan.cells))
        if (ratios := [pair.ratio for pair in found if pair.cell == cell])
    }
    adjusted = dict(zip(shifts, adjust([shift.p_value for shift in shifts.values()]), strict=True))
    failures: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for trial in trials:
        for metric, reason in trial.failures.items():
            failures[0 if trial.is_base else trial.cell, metric][reason] += 1
    return [
        StudyCell(
            levels=plan.levels_of(cell),
            figures=[
                _figure(plan, cell, name, metric, values.get((cell, name), []), shifts, adjusted, failures)
                for name, metric in plan.figures
            ],
        )
        for cell in range(len(plan.cells))
    ]


def _figure(
    plan: StudyPlan,
    cell: int,
    name: str,
    metric: StudyMetric,
    values: Sequence[float],
    shifts: Mapping[tuple[int, str], Shift],
    adjusted: Mapping[tuple[int, str], float],
    failures: Mapping[tuple[int, str], Counter[str]],
) -> StudyFigure:
    shift = shifts.get((cell, name))
    published = [
        one.value
        for one in plan.published
        if one.figure == name and not one.of and same(plan, one.levels, plan.levels_of(cell))
    ]
    return StudyFigure(
        figure=name,
        value=as_estimate(intervals.median(values, CONFIDENCE), metric.unit) if values else None,
        ratio=None if shift is None else as_estimate(shift.ratio, "ratio"),
        verdict=None
        if not cell
        else "no decision"
        if shift is None
        else _verdict(shift, adjusted[cell, name], plan.margin, metric.better),
        published=published[0] if published else None,
        failures=dict(failures.get((cell, metric.name), {})),
    )


def same(plan: StudyPlan, published: Mapping[str, str], levels: Mapping[str, str]) -> bool:
    """Whether a published value is of a combination: factors that it does not name are at their base."""
    return {**plan.levels_of(0), **published} == levels


def _verdict(shift: Shift, p_adjusted: float, margin: float, better: str) -> Verdict:
    low, high = shift.ratio.low, shift.ratio.high
    if low is None or high is None:
        return "no decision"
    if 1 - margin <= low and high <= 1 + margin:
        return "no difference"
    if p_adjusted >= SIGNIFICANCE or low <= 1 <= high:
        return "no decision"
    return "better" if (high < 1) == (better == "lower") else "worse"


class _Terms(NamedTuple):
    """The columns of the model: levels beyond the base, and their products."""

    #: (number of the factor, level) → column.
    single: dict[tuple[int, str], int]
    #: Two of these → column.
    double: dict[tuple[tuple[int, str], tuple[int, str]], int]

    @property
    def columns(self) -> int:
        return len(self.single) + len(self.double)


def _terms(plan: StudyPlan, *, interactions: bool) -> _Terms:
    levels = [
        (number, level.name) for number, factor in enumerate(plan.factors) for level in factor.levels[1:]
    ]
    single = {level: place for place, level in enumerate(levels)}
    pairs = [(a, b) for a, b in itertools.combinations(levels, 2) if a[0] != b[0]] if interactions else []
    return _Terms(single, {pair: len(single) + place for place, pair in enumerate(pairs)})


def _row(terms: _Terms, cell: Sequence[str]) -> Floats:
    row = np.zeros(terms.columns)
    here = {(number, level) for number, level in enumerate(cell)}
    for level, column in terms.single.items():
        row[column] = level in here
    for (a, b), column in terms.double.items():
        row[column] = a in here and b in here
    return row


def _effects(plan: StudyPlan, pairs: Mapping[str, Sequence[_Pair]]) -> tuple[list[StudyEffect], str]:
    """Return the effects of all levels and the interactions, and why there are none of these.

    The logarithm of a combination ÷ its base is a sum of what its levels bring and of what two bring beyond both; the
    base of every turn falls out. Robust, as `wulf.stats.core.linear.fit`.
    """
    if len(plan.cells) < 2:
        return [], "nothing is varied"
    rows = {
        name: np.array([_row(_terms(plan, interactions=True), plan.cells[p.cell]) for p in found])
        for name, found in pairs.items()
    }
    terms, none = _terms(plan, interactions=True), ""
    if plan.design == "one at a time":
        none = "one factor at a time: nothing is known of two together"
    elif len(plan.factors) < 2:
        none = "there is one factor"
    elif plan.aliases:
        none = "a fraction of all combinations: " + "; ".join(plan.aliases[:4])
    elif any(len(found) and np.linalg.matrix_rank(found) < terms.columns for found in rows.values()):
        none = "too few combinations were run to tell them from the effects"
    if none:
        terms = _terms(plan, interactions=False)
    effects = [one for name, metric in plan.figures for one in _of_figure(plan, name, pairs[name], terms)]
    known = [one for one in effects if one.p_value is not None]
    adjusted = dict(zip(map(id, known), adjust([one.p_value or 0.0 for one in known]), strict=True))
    better = {name: metric.better for name, metric in plan.figures}
    return [_judged(one, adjusted.get(id(one)), plan.margin, better[one.figure]) for one in effects], none


def _judged(effect: StudyEffect, p_adjusted: float | None, margin: float, better: str) -> StudyEffect:
    if effect.ratio is None or p_adjusted is None or effect.p_value is None:
        return effect
    ratio = effect.ratio
    interval = intervals.Interval(ratio.value, ratio.low, ratio.high, ratio.confidence, ratio.method, ratio.n)
    verdict = _verdict(Shift(interval, effect.p_value), p_adjusted, margin, better)
    return msgspec.structs.replace(effect, verdict=verdict)


def _of_figure(plan: StudyPlan, name: str, pairs: Sequence[_Pair], terms: _Terms) -> Iterator[StudyEffect]:
    """Yield the effects on a figure; of what no pair of runs has had nothing is known."""
    rows = np.array([_row(terms, plan.cells[pair.cell]) for pair in pairs]).reshape(len(pairs), terms.columns)
    had = np.flatnonzero(rows.any(axis=0)) if len(pairs) else np.array([], dtype=np.intp)
    try:
        fitted = linear.fit(rows[:, had], np.array([pair.ratio for pair in pairs])) if had.size else None
        reason = ""
    except linear.SingularError:
        fitted, reason = (
            None,
            f"{count(len(pairs), 'pair')} of runs cannot tell {count(had.size, 'effect')} apart",
        )
    wanted: list[tuple[Sequence[tuple[int, str]], Floats, int]] = [
        ((level,), _weights(plan, terms, level), column) for level, column in terms.single.items()
    ]
    wanted += [(both, np.eye(terms.columns)[column], column) for both, column in terms.double.items()]
    for levels, weights, column in wanted:
        missing = "" if column in had else "no pair of runs with it succeeded"
        usable = None if missing else fitted
        yield _effect(plan, name, levels, weights[had], usable, len(pairs), missing or reason)


def _weights(plan: StudyPlan, terms: _Terms, level: tuple[int, str]) -> Floats:
    """Return how much of each column is in a level's effect, averaged over the levels of the other factors."""
    weights = np.zeros(terms.columns)
    weights[terms.single[level]] = 1.0
    for (a, b), column in terms.double.items():
        if level in (a, b):
            other = b if level == a else a
            weights[column] = 1.0 / len(plan.factors[other[0]].levels)
    return weights


def _effect(
    plan: StudyPlan,
    name: str,
    levels: Sequence[tuple[int, str]],
    weights: Floats,
    fitted: linear.Fit | None,
    n: int,
    reason: str,
) -> StudyEffect:
    named = {plan.factors[number].name: level for number, level in levels}
    if fitted is None:
        return StudyEffect(figure=name, levels=named, ratio=None, reason=reason)
    shift = fitted.contrast(weights).shift(CONFIDENCE, n)
    return StudyEffect(
        figure=name, levels=named, ratio=as_estimate(shift.ratio, "ratio"), p_value=shift.p_value
    )


def _lines(plan: StudyPlan, trials: Sequence[StudyTrial]) -> Iterator[StudyLine]:
    """Yield the lines of metrics that have one: fitted to every run, the median of these with its interval."""
    for metric in plan.metrics:
        if not metric.line:
            continue
        for cell in range(len(plan.cells)):
            own = [trial for trial in trials if (0 if trial.is_base else trial.cell) == cell]
            line = _line(metric, own)
            if line is not None:
                yield StudyLine(
                    metric=metric.name,
                    levels=plan.levels_of(cell),
                    intercept=line[0],
                    slope=line[1],
                    r_squared=line[2],
                )
        yield from _published_lines(plan, metric)


def _line(metric: StudyMetric, trials: Sequence[StudyTrial]) -> tuple[Estimate, Estimate, float] | None:
    names, sizes = zip(*metric.figures, strict=True)
    whole = [[trial.values[name] for name in names] for trial in trials if set(names) <= trial.values.keys()]
    if not whole:
        return None
    fits = [regression.least_squares(sizes, values) for values in whole]
    through = regression.least_squares(sizes, np.median(np.array(whole), axis=0))
    a = intervals.median([one.intercept.value for one in fits], CONFIDENCE)
    b = intervals.median([one.slope.value for one in fits], CONFIDENCE)
    return as_estimate(a, "s"), as_estimate(b, "s/B"), through.r_squared


def _published_lines(plan: StudyPlan, metric: StudyMetric) -> Iterator[StudyLine]:
    sizes = dict(metric.figures)
    curves: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[int, float]]] = defaultdict(list)
    for one in plan.published:
        size = one.figure.removeprefix(f"{metric.name} ").removesuffix(" B")
        if one.figure in sizes or (one.figure.startswith(f"{metric.name} ") and size.isdigit()):
            at = sizes.get(one.figure, int(size) if size.isdigit() else 0)
            curves[one.of, tuple(one.levels.items())].append((at, one.value))
    for (of, levels), points in curves.items():
        if len(points) < FEWEST_POINTS:
            continue
        sizes_of, values = zip(*points, strict=True)
        found = regression.least_squares(sizes_of, values)
        yield StudyLine(
            metric=metric.name,
            levels=dict(levels),
            of=of or "published",
            intercept=as_estimate(found.intercept, "s"),
            slope=as_estimate(found.slope, "s/B"),
            r_squared=found.r_squared,
        )


def _costs(plan: StudyPlan, values: Mapping[tuple[int, str], Sequence[float]]) -> Iterator[StudyCost]:
    """Yield what every rate in GFLOPS costs, and takes of power."""
    for name, metric in plan.figures:
        if metric.unit != "GFLOPS":
            continue
        for cell in range(len(plan.cells)):
            own = values.get((cell, name))
            if not own:
                continue
            rate = intervals.median(own, CONFIDENCE)
            levels = plan.levels_of(cell)
            for price in plan.prices:
                yield StudyCost(levels=levels, figure=name, price=price.name, value=_per(price.price, rate))
            if plan.watts is not None:
                power = intervals.median([1e3 * one / plan.watts for one in own], CONFIDENCE)
                yield StudyCost(levels=levels, figure=name, price="", value=as_estimate(power, "MFLOPS/W"))


def _per(price: float, rate: intervals.Interval) -> Estimate:
    return Estimate(
        value=price / rate.value,
        low=None if rate.high is None else price / rate.high,
        high=None if rate.low is None else price / rate.low,
        confidence=rate.confidence,
        unit="per GFLOPS",
        n=rate.n,
        method=rate.method,
    )
