"""A series by period: weekdays and the weekend, hours of the day.  Pure.

Times are the controller's local time, as each launch has it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone

import msgspec
import numpy as np

from wulf.base.records import Cell, Launch, PeriodEstimate, Plan, Sample, WeekendRatio
from wulf.stats.core import intervals
from wulf.stats.core.shift import shift
from wulf.stats.core.trend import inflation
from wulf.stats.estimate.cells import as_estimate, chosen, pooled_quantiles, sample_quantiles

WEEKDAY, WEEKEND = "weekday", "weekend"
#: Saturday, as `date.weekday` counts.
_SATURDAY = 5
#: Days of either side that an interval takes.
FEWEST_DAYS = 6

#: Median [s] of one launch, whether the launch is contaminated, and its day.
_Point = tuple[float, bool, date]


def periods(samples: Iterable[Sample], launches: Iterable[Launch], plan: Plan) -> list[PeriodEstimate]:
    """Estimate every cell of a series on weekdays, at the weekend and at each hour of the day; nothing of other runs.

    Parameters
    ----------
    samples, launches
        Of the run, in time order; samples of failed launches are left out.
    plan
        Confidence, minimum of launches.

    Returns
    -------
    list of PeriodEstimate
        Ordered by cell and period.
    """
    good = _good(launches, plan)
    grouped: dict[tuple[Cell, str], list[Sample]] = defaultdict(list)
    for sample in _measured(samples, good):
        began = local(good[sample.launch])
        for period in (week_part(began), f"{began:%H}"):
            grouped[sample.cell, period].append(sample)
    return [_period(cell, period, grouped[cell, period], good, plan) for cell, period in sorted(grouped)]


def weekends(samples: Iterable[Sample], launches: Iterable[Launch], plan: Plan) -> list[WeekendRatio]:
    """Hold the weekend of a series against its weekdays, where both have the least number of launches.

    Launches of a day have the day in common, so days are what is compared; there is no interval where either side has
    fewer than `FEWEST_DAYS`.

    Parameters
    ----------
    samples, launches, plan
        As of `periods`.
    """
    good = _good(launches, plan)
    cells: dict[Cell, list[Sample]] = defaultdict(list)
    for sample in _measured(samples, good):
        cells[sample.cell].append(sample)
    return list(_weekends(cells, good, plan))


def local(launch: Launch) -> datetime:
    """Return when a launch began, in the local time of the controller."""
    zone = timezone(timedelta(seconds=launch.utc_offset_s or 0))
    return datetime.fromisoformat(launch.started_at).astimezone(zone)


def week_part(time: datetime) -> str:
    """Return whether it is a weekday or the weekend."""
    return WEEKEND if time.weekday() >= _SATURDAY else WEEKDAY


def _good(launches: Iterable[Launch], plan: Plan) -> dict[str, Launch]:
    if plan.series is None:
        return {}
    return {launch.id: launch for launch in launches if launch.status == "ok"}


def _measured(samples: Iterable[Sample], good: Mapping[str, Launch]) -> Iterator[Sample]:
    return (sample for sample in samples if sample.launch in good and sample.histogram)


def _points(samples: Iterable[Sample], good: Mapping[str, Launch]) -> list[_Point]:
    return [
        (sample_quantiles(sample, [0.5])[0], bool(launch.contamination), local(launch).date())
        for sample in samples
        for launch in [good[sample.launch]]
    ]


def _medians(points: Sequence[_Point], plan: Plan) -> list[float]:
    return chosen([(median, suspect) for median, suspect, _ in points], plan)


def _days(points: Iterable[_Point]) -> int:
    return len({day for _, _, day in points})


def _period(
    cell: Cell, period: str, samples: Sequence[Sample], good: Mapping[str, Launch], plan: Plan
) -> PeriodEstimate:
    points = _points(samples, good)
    values = _medians(points, plan)
    found = intervals.median(values, plan.confidence, float(inflation(np.asarray(values))))
    return PeriodEstimate(
        cell=cell,
        period=period,
        days=_days(points),
        time=as_estimate(found, "s"),
        quantiles_s=pooled_quantiles(samples),
        iterations=sum(sample.iterations for sample in samples),
    )


def _weekends(
    cells: Mapping[Cell, Sequence[Sample]], good: Mapping[str, Launch], plan: Plan
) -> Iterator[WeekendRatio]:
    for cell in sorted(cells):
        points = _points(cells[cell], good)
        sides: dict[str, list[_Point]] = {WEEKDAY: [], WEEKEND: []}
        for point in points:
            sides[WEEKEND if point[2].weekday() >= _SATURDAY else WEEKDAY].append(point)
        launches = {part: _medians(side, plan) for part, side in sides.items()}
        days = {part: _of_days(side, plan) for part, side in sides.items()}
        if min(map(len, launches.values())) < plan.min_launches or min(map(min, days.values())) <= 0:
            continue
        found = as_estimate(shift(days[WEEKDAY], days[WEEKEND], plan.confidence).ratio, "ratio")
        if min(map(len, days.values())) < FEWEST_DAYS:
            found = msgspec.structs.replace(found, low=None, high=None)
        yield WeekendRatio(
            cell=cell,
            weekday_s=statistics.median(launches[WEEKDAY]),
            ratio=found,
            weekdays=len(days[WEEKDAY]),
            weekend_days=len(days[WEEKEND]),
        )


def _of_days(points: Sequence[_Point], plan: Plan) -> list[float]:
    """Return the median of each day."""
    by_day: dict[date, list[_Point]] = defaultdict(list)
    for point in points:
        by_day[point[2]].append(point)
    return [statistics.median(_medians(of_day, plan)) for of_day in by_day.values()]
