"""The confirmation of a tuning run as charts: before and after, against message size and as box plots."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from wulf.base.records import Metric, Trial
from wulf.base.units import format_bytes, format_change, format_value
from wulf.page import ticks
from wulf.page.parts import Figure, Ticks, Variant, rounded
from wulf.page.words import name
from wulf.tools.tune.page import charts
from wulf.tools.tune.page.input import KEPT, ORIGINAL, TuningReport
from wulf.tools.tune.page.paper_table import quantiles
from wulf.tools.tune.page.words import metric_ratio

#: Box plots that are drawn; the published table has all metrics.
BOXES = 12
#: Vertical places of points that would hide each other, in turn.
_JITTER = (0.0, 0.55, -0.55, 0.3, -0.3)


class _Point(NamedTuple):
    """What one trial says of a metric at a size."""

    setting: str
    size_bytes: int
    value: float
    unit: str
    trial: int


def curves(report: TuningReport) -> tuple[Figure, ...]:
    """Before and after against message size, one chart per operation that was measured at several sizes."""
    sizes: dict[tuple[str, str, str], list[tuple[int, Metric]]] = {}
    for metric in report.plan.metrics:
        figure = metric.figure
        if figure is not None:
            sizes.setdefault((figure.op, figure.statistic, metric.unit), []).append(
                (figure.size_bytes, metric)
            )
    groups = _before_after(report)
    several = [found for found in sizes.values() if len(found) > 1]
    return tuple(_curve(at, sorted(found, key=_size), groups) for at, found in enumerate(several) if groups)


def _size(entry: tuple[int, Metric]) -> int:
    return entry[0]


def _curve(
    at: int, metrics: Sequence[tuple[int, Metric]], groups: Sequence[tuple[str, Sequence[Trial]]]
) -> Figure:
    first = metrics[0][1]
    op = name(first.figure.op if first.figure else first.name)
    medians = [
        (group, size, statistics.median(values), metric)
        for group, trials in groups
        for size, metric in metrics
        if (values := [v for v in TuningReport.values(metric, trials) if v > 0])
    ]
    quantity = "time" if first.unit == "s" else "bandwidth" if first.unit == "B/s" else name(first.unit)
    statistic = first.figure.statistic if first.figure else "value"
    points = _points(metrics, groups)
    return Figure(
        id=f"curve{at}",
        chart=charts.CURVES,
        title=f"{op}: {statistic} {quantity} against message size",
        x_title="message size (logarithmic)",
        y_title=quantity,
        x=_size_ticks([size for size, _ in metrics]),
        y=_value_ticks([point.value for point in points], first.unit),
        logarithmic=first.unit != "B/s",
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "setting": [point.setting for point in points],
                        "size_bytes": [point.size_bytes for point in points],
                        "value": rounded([point.value for point in points]),
                        "trial": [point.trial for point in points],
                        "shown": [format_value(point.value, point.unit) for point in points],
                    },
                    "medians": {
                        "setting": [group for group, *_ in medians],
                        "size_bytes": [size for _, size, *_ in medians],
                        "value": rounded([value for _, _, value, _ in medians]),
                    },
                },
                summary=f"{op} before and after: "
                + "; ".join(
                    f"{group} {format_value(value, metric.unit)} at {format_bytes(size)}"
                    for group, size, value, metric in medians
                )
                + ".",
                caption=f"Points: {statistic} {quantity} in each trial of the confirmation; lines: their medians.",
            ),
        ),
    )


def _points(
    metrics: Sequence[tuple[int, Metric]], groups: Sequence[tuple[str, Sequence[Trial]]]
) -> list[_Point]:
    return [
        _Point(group, size, value, metric.unit, trial.index)
        for group, trials in groups
        for size, metric in metrics
        for trial in trials
        for value in TuningReport.values(metric, [trial])
        if value > 0
    ]


def _size_ticks(sizes: Sequence[int]) -> Ticks:
    """Mark the sizes that were measured, where there are few."""
    if len(sizes) > ticks.SIZE_TICKS:
        return ticks.sizes(sizes)
    return Ticks(tuple(map(float, sizes)), tuple(format_bytes(size) for size in sizes))


def _value_ticks(values: Sequence[float], unit: str) -> Ticks:
    if unit == "B/s":
        return ticks.bandwidths(values)
    # Decades mark nothing on an axis that is shorter than one.
    return (
        ticks.times(values) if unit == "s" and max(values) > 10 * min(values) else ticks.between(values, unit)
    )


def boxes(report: TuningReport) -> tuple[Figure, ...]:
    """Before and after as box plots, one chart per metric, with all trials of the confirmation as points."""
    groups = _before_after(report)
    shown = [m for m in report.plan.metrics if groups and all(report.values(m, t) for _, t in groups)]
    return tuple(_box(at, metric, groups, report) for at, metric in enumerate(shown[:BOXES]))


def _box(
    at: int, metric: Metric, groups: Sequence[tuple[str, Sequence[Trial]]], report: TuningReport
) -> Figure:
    points = [
        (group, value, trial.index, _JITTER[number % len(_JITTER)])
        for group, trials in groups
        for number, trial in enumerate(trials)
        for value in TuningReport.values(metric, [trial])
    ]
    spread = {group: quantiles(TuningReport.values(metric, trials)) for group, trials in groups}
    medians = ", ".join(
        f"{group} {format_value(found['median'], metric.unit)}" for group, found in spread.items()
    )
    confirmation = report.tuning.confirmation
    effect = confirmation.metrics.get(metric.name) if confirmation else None
    ratio = f" Change: {format_change(metric_ratio(metric, effect))}." if effect else ""
    direction = "less" if metric.better == "lower" else "more"
    return Figure(
        id=f"box{at}",
        chart=charts.SPREAD,
        title=name(metric.name),
        x_title=f"{direction} is better",
        y_title="",
        x=ticks.between([value for _, value, *_ in points], metric.unit),
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "setting": [group for group, *_ in points],
                        "value": rounded([value for _, value, *_ in points]),
                        "trial": [trial for _, _, trial, _ in points],
                        "shown": [format_value(value, metric.unit) for _, value, *_ in points],
                        "jitter": [jitter for *_, jitter in points],
                    },
                    "boxes": {
                        "setting": list(spread),
                        **{
                            label: rounded([found[label] for found in spread.values()])
                            for label in next(iter(spread.values()))
                        },
                    },
                },
                summary=f"Box plots of {name(metric.name)} before and after; medians: {medians}.",
                caption=f"Medians: {medians}.{ratio}",
            ),
        ),
    )


def _before_after(report: TuningReport) -> list[tuple[str, list[Trial]]]:
    """Trials of the confirmation under both settings; empty when there are not both."""
    if not report.tuning.kept:
        return []
    groups = [(ORIGINAL, report.confirming({})), (KEPT, report.confirming(report.tuning.kept))]
    return groups if all(trials for _, trials in groups) else []
