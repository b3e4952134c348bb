"""The table that papers print: setting, mean, deviation and quantiles of every metric of the objective."""

from __future__ import annotations

import csv as csv_module
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from wulf.base.records import Metric, Trial
from wulf.base.units import format_column
from wulf.page import escaping, markup
from wulf.page.parts import Column, Item, Table
from wulf.page.words import name
from wulf.tools.tune.page.input import KEPT, ORIGINAL, TuningReport, setting_label

QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}
NOTE = (
    "One value is one trial. Original: all trials without a change; one setting: that setting alone; kept: "
    "the trials of the confirmation, which had no part in the choice. Deviation: standard deviation of one "
    "trial (n − 1). Quantiles are interpolated between trials."
)


@dataclass(frozen=True)
class PublishedRow:
    """One setting and one metric."""

    metric: str
    unit: str
    setting: str
    n: int
    mean: float
    #: Of one trial; None for a single trial.
    deviation: float | None
    #: min, p5, p25, median, p75, p95, max.
    quantiles: dict[str, float]


def published_table(report: TuningReport) -> list[PublishedRow]:
    """Return one row per metric of the objective and setting: original, each setting alone, what was kept."""
    settings = _settings(report)
    rows = (_row(metric, label, trials) for metric in report.main for label, trials in settings)
    return [row for row in rows if row is not None]


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return the quantiles of a published table, interpolated linearly."""
    ordered = sorted(values)
    return {label: _quantile(ordered, share) for label, share in QUANTILES.items()}


def tables(report: TuningReport) -> tuple[Table, ...]:
    """Return one table per metric, each in one unit."""
    groups = groupby(published_table(report), key=lambda row: row.metric)
    return tuple(_table(list(rows)) for _, rows in groups)


def csv(rows: Sequence[PublishedRow]) -> str:
    """Return the rows as CSV, in base units and with all digits; unknown is empty."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(["metric", "unit", "setting", "n", "mean", "deviation", *QUANTILES])
    for row in rows:
        figures = [row.n, row.mean, row.deviation, *row.quantiles.values()]
        writer.writerow(escaping.csv([row.metric, row.unit, row.setting, *figures]))
    return out.getvalue()


def markdown(report: TuningReport) -> str:
    """Return the tables as Markdown."""
    return "\n".join(markup.markdown(table) for table in tables(report))


def latex(report: TuningReport) -> str:
    """Return the tables as LaTeX (booktabs)."""
    return "\n".join(markup.latex(table) for table in tables(report))


def _settings(report: TuningReport) -> list[tuple[str, list[Trial]]]:
    kept = report.tuning.kept
    singles = list(
        dict.fromkeys(
            (knob, value)
            for trial in report.trials
            if len(trial.setting) == 1
            for knob, value in trial.setting.items()
        )
    )
    found = [(ORIGINAL, report.under({}))]
    for knob, value in singles:
        trials = [trial for trial in report.under({knob: value}) if trial.phase != "confirmation"]
        found.append((setting_label(knob, value), trials))
    if kept:
        found.append((KEPT, report.confirming(kept)))
    return found


def _row(metric: Metric, setting: str, trials: Sequence[Trial]) -> PublishedRow | None:
    values = TuningReport.values(metric, trials)
    if not values:
        return None
    return PublishedRow(
        metric=name(metric.name),
        unit=name(metric.unit),
        setting=setting,
        n=len(values),
        mean=statistics.fmean(values),
        deviation=statistics.stdev(values) if len(values) > 1 else None,
        quantiles=quantiles(values),
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _table(rows: Sequence[PublishedRow]) -> Table:
    # One trial's deviation says which digits mean anything; the mean deserves a little more.
    spread = statistics.median([row.deviation for row in rows if row.deviation] or [abs(rows[0].mean) / 100])
    figures = [[row.mean, row.deviation, *row.quantiles.values()] for row in rows]
    numbers = [math.nan if figure is None else figure for row in figures for figure in row]
    texts, unit = format_column(numbers, rows[0].unit, spread / 3)
    width = 2 + len(QUANTILES)
    return Table(
        title=f"{rows[0].metric} [{unit}]" if unit else rows[0].metric,
        columns=(
            Column("setting"),
            Column("n", numeric=True),
            Column("mean", numeric=True),
            Column("deviation", numeric=True),
            *(Column(label, numeric=True, narrow=label in ("min", "median", "max")) for label in QUANTILES),
        ),
        rows=tuple(
            (
                Item(row.setting),
                Item(str(row.n), row.n),
                *(
                    Item("–" if raw is None else text, raw)
                    for text, raw in zip(texts[at * width : (at + 1) * width], figures[at], strict=True)
                ),
            )
            for at, row in enumerate(rows)
        ),
    )
