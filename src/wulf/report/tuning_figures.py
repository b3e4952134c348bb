"""The data of a tuning run's charts, and the words beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime

from wulf.records import Effect, Estimate, Metric, PathStep, Trial
from wulf.report import ticks
from wulf.report.drawing import HARMS, VERDICTS
from wulf.report.parts import Columns, Figure, Ticks, Variant, rounded
from wulf.report.published import quantiles
from wulf.report.tuning_input import (
    KEPT,
    ORIGINAL,
    TuningReport,
    failed,
    setting_label,
    setting_name,
    sized,
)
from wulf.report.words import count, listed, name, percent
from wulf.text import printable
from wulf.units import format_bytes, format_ratio, format_value

#: Box plots that are drawn; the published table has all metrics.
BOXES = 12
#: Vertical places of points that would hide each other, in turn.
_JITTER = (0.0, 0.55, -0.55, 0.3, -0.3)
_RATIO = "objective as a time, with ÷ without (below 1× is better)"


def verdict_words(report: TuningReport, effect: Effect) -> str:
    """Return the verdict, and what came of it."""
    if failed(effect):
        return "failed"
    if effect.harmed:
        return f"{effect.verdict}, harms {listed([name(metric) for metric in effect.harmed], 2)}"
    if report.tuning.kept.get(effect.knob) == effect.value:
        return f"{effect.verdict}, kept"
    gone = {(step.knob, step.value) for step in report.tuning.path if step.action in ("drop", "revert")}
    return f"{effect.verdict}, dropped later" if (effect.knob, effect.value) in gone else effect.verdict


def ratio_words(effect: Effect) -> str:
    """Return ratio and interval; nothing where nothing could be measured."""
    return "–" if failed(effect) else format_ratio(effect.ratio)


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """Return the best first and what failed last."""
    return sorted(effects, key=lambda effect: (failed(effect), effect.ratio.value))


def effects(report: TuningReport) -> Figure | None:
    """One row per candidate value: its last effect with the interval; None when nothing could be measured."""
    shown = ordered(report.judged)
    known = [effect for effect in shown if not failed(effect)]
    if not known:
        return None
    risks = {candidate.knob: printable(candidate.risk, 120) for candidate in report.plan.candidates}
    ratios = [None if failed(effect) else effect.ratio for effect in shown]
    main: Columns = {
        "label": _distinct([setting_label(effect.knob, effect.value) for effect in shown]),
        **_bounds(ratios),
        "category": [_category(effect) for effect in shown],
        "shown": [ratio_words(effect) for effect in shown],
        "words": [verdict_words(report, effect) for effect in shown],
        "trials": [str(effect.trials) for effect in shown],
        "risk": [risks.get(effect.knob, "") for effect in shown],
        "tip": [printable(effect.note, 200) or verdict_words(report, effect) for effect in shown],
    }
    limits = _limits(report)
    best = known[0]
    return Figure(
        id="effects",
        kind="effects",
        title="What each setting does",
        x_title=_RATIO,
        y_title="",
        x=ticks.ratios([*_known(ratios), *limits[:2]]),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": _limit_columns(limits)},
                summary=f"Effects of {count(len(shown), 'value')} of settings with intervals: {_tally(shown)}. "
                f"Best: {setting_label(best.knob, best.value)}, {format_ratio(best.ratio)}.",
                caption=f"Point: ratio of the times with the setting to those without; line: its "
                f"{percent(best.ratio.confidence)} interval; shaded: {limits[2]}. {_tally(shown)}. "
                "Each row is the last comparison of the setting: on top of what was kept by then if it got "
                "that far, else alone.",
            ),
        ),
    )


def _category(effect: Effect) -> str:
    if effect.harmed and effect.verdict != "worse":
        return HARMS
    return effect.verdict if effect.verdict in VERDICTS and not failed(effect) else "no decision"


def _tally(shown: Sequence[Effect]) -> str:
    words = ["failed" if failed(effect) else _category(effect) for effect in shown]
    return ", ".join(f"{words.count(word)} {word}" for word in (*VERDICTS, HARMS, "failed") if word in words)


def _limits(report: TuningReport) -> tuple[float, float, str]:
    """Ratios between which nothing can be seen, and what they are."""
    control = report.tuning.control
    if control is None:
        margin = report.plan.margin
        return 1 / (1 + margin), 1 + margin, f"within ±{percent(margin)}, which counts as no difference"
    effect = control.smallest_effect
    return (
        1 / (1 + effect),
        1 + effect,
        f"below {percent(effect)}, which this cluster cannot tell from nothing",
    )


def _limit_columns(limits: tuple[float, float, str]) -> Columns:
    return {"low": rounded([limits[0]]), "high": rounded([limits[1]]), "one": [1.0]}


def path(report: TuningReport) -> Figure | None:
    """The search from the original settings to what was kept; None when it took no step."""
    steps = report.tuning.path
    ratios = [_unit() if step.action == "start" else step.ratio for step in steps]
    if len(steps) < 2:
        return None
    main: Columns = {
        "label": _distinct([step_label(step) for step in steps]),
        "step": list(range(len(steps))),
        **_bounds(ratios),
        "action": [step.action for step in steps],
        "shown": [step_ratio(step) for step in steps],
        "reason": [printable(step.reason, 200) for step in steps],
        "tip": [printable(step.reason, 200) or step.action for step in steps],
    }
    limits = _limits(report)
    return Figure(
        id="path",
        kind="path",
        title="From the original settings to what was kept",
        x_title="objective as a time, relative to original (below 1× is better)",
        y_title="",
        x=ticks.ratios(_known(ratios)),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": _limit_columns(limits)},
                summary=f"Path of the search in {count(len(steps) - 1, 'step')}: "
                + "; ".join(f"{step_label(step)} {step_ratio(step)}" for step in steps)
                + ".",
                caption="Each step adds its effect to the ones before; only the confirmation, where there is "
                "one, measures the whole set against the original settings.",
            ),
        ),
    )


def step_label(step: PathStep) -> str:
    """Return 'keep nic.rx_usecs = 0', 'original', 'confirmed'."""
    whole = {"start": ORIGINAL, "confirm": "confirmed", "revert": "back to the original"}
    if not step.knob:
        return whole.get(step.action, step.action)
    sign = {"keep": "+", "drop": "−", "refine": "→"}.get(step.action, step.action)
    return f"{sign} {setting_label(step.knob, step.value)}"


def step_ratio(step: PathStep) -> str:
    """Return the objective after a step."""
    if step.action == "start":
        return "1×"
    return format_ratio(step.ratio) if step.ratio else "not measured"


def curves(report: TuningReport) -> tuple[Figure, ...]:
    """Before and after against message size, one chart per operation that was measured at several sizes."""
    sizes: dict[str, list[tuple[int, Metric]]] = {}
    for metric in report.plan.metrics:
        found = sized(metric.name)
        if found:
            sizes.setdefault(f"{found[0]}|{metric.unit}", []).append((found[1], metric))
    groups = _before_after(report)
    several = [found for found in sizes.values() if len(found) > 1]
    return tuple(_curve(at, sorted(found, key=_size), groups) for at, found in enumerate(several) if groups)


def _size(entry: tuple[int, Metric]) -> int:
    return entry[0]


def _curve(
    at: int, metrics: Sequence[tuple[int, Metric]], groups: Sequence[tuple[str, Sequence[Trial]]]
) -> Figure:
    first = metrics[0][1]
    found = sized(first.name)
    op = name(found[0]) if found else name(first.name)
    points = [
        (group, size, metric, value, trial.index)
        for group, trials in groups
        for size, metric in metrics
        for trial in trials
        for value in TuningReport.values(metric, [trial])
        if value > 0
    ]
    medians = [
        (group, size, statistics.median(values), metric)
        for group, trials in groups
        for size, metric in metrics
        if (values := [v for v in TuningReport.values(metric, trials) if v > 0])
    ]
    quantity = "time" if first.unit == "s" else "bandwidth" if first.unit == "B/s" else name(first.unit)
    return Figure(
        id=f"curve{at}",
        kind="curves",
        title=f"{op}: {quantity} against message size",
        x_title="message size (logarithmic)",
        y_title=quantity,
        x=_size_ticks([size for size, _ in metrics]),
        y=_value_ticks([value for *_, value, _ in points], first.unit),
        logarithmic=first.unit != "B/s",
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "setting": [group for group, *_ in points],
                        "size_bytes": [size for _, size, *_ in points],
                        "value": rounded([value for *_, value, _ in points]),
                        "trial": [trial for *_, trial in points],
                        "shown": [format_value(value, metric.unit) for _, _, metric, value, _ in points],
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
                caption="Points: trials of the confirmation; lines: their medians.",
            ),
        ),
    )


def _size_ticks(sizes: Sequence[int]) -> Ticks:
    """Mark the sizes that were measured, where there are few."""
    if len(sizes) > ticks.SIZE_TICKS:
        return ticks.sizes(sizes)
    return Ticks(tuple(map(float, sizes)), tuple(format_bytes(size) for size in sizes))


def _value_ticks(values: Sequence[float], unit: str) -> Ticks:
    if unit == "B/s":
        return ticks.bandwidths(values)
    # Decades mark nothing on an axis that is shorter than one.
    return ticks.times(values) if unit == "s" and max(values) > 10 * min(values) else ticks.between(values, unit)


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
    medians = ", ".join(f"{group} {format_value(found['median'], metric.unit)}" for group, found in spread.items())
    confirmation = report.tuning.confirmation
    effect = confirmation.metrics.get(metric.name) if confirmation else None
    ratio = f" As a cost: {format_ratio(effect)}." if effect else ""
    direction = "less" if metric.better == "lower" else "more"
    return Figure(
        id=f"box{at}",
        kind="spread",
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


def trials(report: TuningReport) -> Figure | None:
    """All trials in time order, by what was set; None when none succeeded."""
    found = list(report.objectives())
    if not found:
        return None
    kept = report.tuning.kept
    start = _moment(found[0][0])
    minutes = [(_moment(trial) - start) / 60 for trial, _ in found]
    ratios = [ratio for _, ratio in found]
    originals = sum(not trial.setting for trial, _ in found)
    broken = sum(trial.status == "failed" for trial in report.trials)
    return Figure(
        id="trials",
        kind="trials",
        title="All trials in time order",
        x_title="minutes since the first trial",
        y_title="objective ÷ original",
        x=Ticks((), ()),
        y=ticks.ratios(ratios),
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "trial": [trial.index for trial, _ in found],
                        "minutes": rounded(minutes),
                        "ratio": rounded(ratios),
                        "group": [
                            ORIGINAL
                            if not trial.setting
                            else KEPT
                            if kept and trial.setting == kept
                            else "other settings"
                            for trial, _ in found
                        ],
                        "phase": [trial.phase for trial, _ in found],
                        "setting": [setting_name(trial.setting, kept) for trial, _ in found],
                    },
                    "limits": {"one": [1.0]},
                },
                summary=f"The objective of {count(len(found), 'trial')} in time order, {originals} of them under "
                f"the original settings, relative to the median of those.",
                caption="One point is one trial. Under the original settings the points should lie around the "
                "dashed line from beginning to end."
                + (f" {count(broken, 'trial')} failed and cannot be drawn." if broken else ""),
            ),
        ),
    )


def _moment(trial: Trial) -> float:
    return datetime.fromisoformat(trial.started_at).timestamp()


def _unit() -> Estimate:
    return Estimate(value=1.0, low=None, high=None, confidence=0.95, unit="ratio", n=0, method="definition")


def _bounds(ratios: Sequence[Estimate | None]) -> dict[str, list[float | int | str | None]]:
    return {
        "ratio": rounded([r.value if r else None for r in ratios]),
        "low": rounded([_positive(r.low) if r else None for r in ratios]),
        "high": rounded([_positive(r.high) if r else None for r in ratios]),
    }


def _positive(bound: float | None) -> float | None:
    """Cut what a logarithmic axis cannot show."""
    return bound if bound is not None and math.isfinite(bound) and bound > 0 else None


def _known(ratios: Sequence[Estimate | None]) -> list[float]:
    bounds = [bound for r in ratios if r for bound in (r.low, r.value, r.high)]
    return [bound for bound in bounds if _positive(bound) is not None and bound is not None]


def _distinct(labels: Sequence[str]) -> list[str]:
    """Rows are told apart by their labels: a second one of the same name is numbered."""
    seen: dict[str, int] = {}
    named = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        named.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return named
