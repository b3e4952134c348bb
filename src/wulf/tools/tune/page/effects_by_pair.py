"""Who gains from what was kept: the objective of each pair, as it was and as it is.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from wulf.base.nodeset import fold, unfold
from wulf.base.records import Estimate, Trial, Values
from wulf.page.parts import Column, Item, Table
from wulf.page.words import FLAGS, name, percent
from wulf.stats.core.linear import fit
from wulf.stats.core.paired import paired_verdict, pseudo_median
from wulf.tools.tune.page import words as tuning_words
from wulf.tools.tune.page.input import TuningReport


def table(report: TuningReport) -> Table | None:
    """Return one row for each pair that the confirmation measured, best first; None where there are no two."""
    effect = report.tuning.confirmation
    if effect is None or not report.tuning.kept:
        return None
    logs = {place: _differences(report, place, effect.base, effect.tried) for place in _places(report)}
    logs = {place: found for place, found in logs.items() if len(found) > 1}
    if len(logs) < 2:
        return None
    rows = {place: _row(report, place, found, len(logs)) for place, found in logs.items()}
    return Table(
        title="Who gains",
        columns=(
            Column("between"),
            Column("change (interval)", numeric=True),
            Column("verdict"),
            Column("changed there"),
            Column("blocks", numeric=True, narrow=False),
        ),
        rows=tuple(rows[place] for place in sorted(logs, key=lambda place: pseudo_median(logs[place]))),
        note=f"Change: of {tuning_words.objective(report)} between these nodes, with all that was kept against the "
        f"original settings, in the trials of the confirmation; {tuning_words.better(report)}. Each interval holds "
        f"{percent(report.plan.confidence)} by itself; a verdict counts that there are {len(rows)} (Bonferroni).",
    )


def _row(report: TuningReport, place: str, logs: Sequence[float], comparisons: int) -> tuple[Item, ...]:
    # Few blocks are enough for the confirmation; a rank test would not be sure of so few.
    found = fit(np.ones((len(logs), 1)), logs).contrast([1.0]).shift(report.plan.confidence, len(logs))
    verdict = paired_verdict(found, comparisons, report.plan.margin)
    ratio = Estimate(
        value=found.ratio.value,
        low=found.ratio.low,
        high=found.ratio.high,
        confidence=found.ratio.confidence,
        unit="ratio",
        n=found.ratio.n,
        method=found.ratio.method,
    )
    return (
        Item(name(place)),
        Item(tuning_words.change(report, ratio), ratio.value),
        Item(verdict, verdict, FLAGS[verdict]),
        Item(_changed(report, place) or "nothing"),
        Item(str(len(logs)), len(logs)),
    )


def _places(report: TuningReport) -> list[str]:
    return list(dict.fromkeys(place for trial in report.trials for place in trial.by_place))


def _differences(report: TuningReport, place: str, base: Values, tried: Values) -> list[float]:
    """Return block for block by how much the logarithm of the objective's cost differs there, tried − base."""
    before, after = (_by_block(report, place, setting) for setting in (base, tried))
    return [
        float(np.mean(after[block])) - float(np.mean(before[block])) for block in before if block in after
    ]


def _by_block(report: TuningReport, place: str, setting: Values) -> dict[tuple[int, int], list[float]]:
    found: dict[tuple[int, int], list[float]] = {}
    for trial in report.confirming(setting):
        for cost in _cost(report, trial, place):
            found.setdefault((trial.round, trial.block), []).append(cost)
    return found


def _cost(report: TuningReport, trial: Trial, place: str) -> Iterator[float]:
    """Yield the logarithm of the objective's cost at one place, where the trial has all that it is made of there."""
    values: Mapping[str, float] = trial.by_place.get(place, {})
    # What is no figure of a pair, such as a command's run time, is the same at all places.
    metrics = [metric for metric in report.main if metric.figure is not None]
    total = weights = 0.0
    for metric in metrics:
        value = values.get(metric.name, 0.0)
        if not (math.isfinite(value) and value > 0):
            return
        weight = metric.weight or 1.0
        total += (1 if metric.better == "lower" else -1) * weight * math.log(value)
        weights += weight
    if weights:
        yield total / weights


def _changed(report: TuningReport, place: str) -> str:
    """Return which kept settings are a change on nodes of a place: ``nic.mtu on node03``, or without names on all."""
    here = set(unfold(place))
    words = []
    for row in report.changed:
        nodes = here & set(unfold(row.nodes))
        if nodes:
            words.append(row.knob if nodes == here else f"{row.knob} on {fold(nodes)}")
    return name(", ".join(words)) if words else ""
