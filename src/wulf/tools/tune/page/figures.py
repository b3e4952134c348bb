"""The data of a tuning run's charts, and the words beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from wulf.base.records import Effect, Estimate, PathStep, Trial, Values
from wulf.base.text import count, printable
from wulf.base.units import format_share, format_unseen, undoing
from wulf.page import ticks
from wulf.page.drawing import HARMS, VERDICTS
from wulf.page.parts import Columns, Figure, Ticks, Variant, rounded
from wulf.page.words import listed, name, percent
from wulf.tools.tune.page import charts
from wulf.tools.tune.page import words as tuning_words
from wulf.tools.tune.page.input import (
    KEPT,
    ORIGINAL,
    OTHER,
    TuningReport,
    failed,
    setting_label,
    setting_name,
    short_label,
)

#: The band of what cannot be seen is drawn up to this ratio: a wider one would squeeze all that it is compared with.
_BAND = 10.0


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


def change_words(report: TuningReport, effect: Effect) -> str:
    """Return change and interval; nothing where nothing could be measured."""
    return "–" if failed(effect) else tuning_words.change(report, effect.ratio)


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """Return the best first and what failed last."""
    return sorted(effects, key=lambda effect: (failed(effect), effect.ratio.value))


def effects(report: TuningReport) -> Figure | None:
    """One row per candidate value: its last effect with the interval; None when nothing could be measured."""
    shown = ordered(report.judged)
    known = [effect for effect in shown if not failed(effect)]
    if not known:
        return None
    ratios = [None if failed(effect) else tuning_words.shown(report, effect.ratio) for effect in shown]
    main: Columns = {
        "label": _distinct([short_label(effect.knob, effect.value) for effect in shown]),
        **_bounds(ratios),
        "category": [_category(effect) for effect in shown],
        "shown": [change_words(report, effect) for effect in shown],
        "words": [verdict_words(report, effect) for effect in shown],
        "trials": [str(effect.trials) for effect in shown],
        "tip": [printable(effect.note, 200) or verdict_words(report, effect) for effect in shown],
    }
    limits = _limits(report, _known(ratios))
    best = known[0]
    return Figure(
        id="effects",
        chart=charts.EFFECTS,
        title="What each setting does",
        x_title=f"change of {tuning_words.objective(report)} ({tuning_words.better(report)})",
        y_title="",
        x=ticks.changes([*_known(ratios), *limits[:2]], logarithmic=True),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": _limit_columns(limits)},
                summary=f"Effects of {count(len(shown), 'value')} of settings with intervals: {_tally(shown)}. "
                f"Best: {setting_label(best.knob, best.value)}, {tuning_words.change(report, best.ratio)}.",
                caption=f"Point: change of {tuning_words.objective(report)} with the setting against without it; line: "
                f"its {percent(best.ratio.confidence)} interval; shaded: {limits[2]}. {_tally(shown)}. "
                "Each row is on top of what was kept where the setting got that far, else alone.",
            ),
        ),
    )


def _category(effect: Effect) -> str:
    if failed(effect):
        return "failed"
    if effect.harmed and effect.verdict != "worse":
        return HARMS
    return effect.verdict if effect.verdict in VERDICTS else "no decision"


def _tally(shown: Sequence[Effect]) -> str:
    words = [_category(effect) for effect in shown]
    return ", ".join(f"{words.count(word)} {word}" for word in (*VERDICTS, HARMS, "failed") if word in words)


def _limits(report: TuningReport, known: Sequence[float]) -> tuple[float, float, str]:
    """Return the ratios between which nothing can be seen, as far as `known` leaves room for, and what they are."""
    control = report.tuning.control
    if control is None:
        margin = report.plan.margin
        return 1 - margin, 1 + margin, f"within ±{percent(margin)}, which counts as no difference"
    effect = control.smallest_effect
    low, high = max(1 - effect, min([1 / _BAND, *known])), min(1 + undoing(effect), max([_BAND, *known]))
    return low, high, f"{format_unseen(effect)}, which may go unseen on this cluster"


def _limit_columns(limits: tuple[float, float, str]) -> Columns:
    return {"low": rounded([limits[0]]), "high": rounded([limits[1]]), "one": [1.0]}


def path(report: TuningReport) -> Figure | None:
    """Draw the search from the original settings to what was kept; None when it took no step."""
    steps = report.tuning.path
    ratios = [
        _unit() if step.action == "start" else step.ratio and tuning_words.shown(report, step.ratio)
        for step in steps
    ]
    if len(steps) < 2:
        return None
    main: Columns = {
        "label": _distinct([_step_label(step, short_label) for step in steps]),
        "step": list(range(len(steps))),
        **_bounds(ratios),
        "action": [step.action for step in steps],
        "shown": [step_change(report, step) for step in steps],
        "reason": [printable(step.reason, 200) for step in steps],
        "tip": [printable(step.reason, 200) or step.action for step in steps],
    }
    limits = _limits(report, _known(ratios))
    return Figure(
        id="path",
        chart=charts.PATH,
        title="From the original settings to what was kept",
        x_title=f"change of {tuning_words.objective(report)} from the original ({tuning_words.better(report)})",
        y_title="",
        x=ticks.changes(_known(ratios), logarithmic=True),
        variants=(
            Variant(
                label="",
                datasets={"main": main, "limits": _limit_columns(limits)},
                summary=f"Path of the search in {count(len(steps) - 1, 'step')}: "
                + "; ".join(f"{step_label(step)} {step_change(report, step)}" for step in steps)
                + ".",
                caption="Each step is the effect of all settings up to it, by the model of all trials; the "
                "confirmation measures the whole set against the original settings in fresh trials.",
            ),
        ),
    )


def step_label(step: PathStep) -> str:
    """Return '+ nic.rx_usecs = 0', 'original', 'confirmed'."""
    return _step_label(step, setting_label)


def _step_label(step: PathStep, label: Callable[[str, str], str]) -> str:
    whole = {"start": ORIGINAL, "confirm": "confirmed", "revert": "back to the original"}
    if not step.knob:
        return whole.get(step.action, step.action)
    sign = {"keep": "+", "drop": "−", "refine": "→"}.get(step.action, step.action)
    return f"{sign} {label(step.knob, step.value)}"


def step_change(report: TuningReport, step: PathStep) -> str:
    """Return how far the objective is from the original settings after a step."""
    if step.action == "start":
        return "0 %"
    return tuning_words.change(report, step.ratio) if step.ratio else "not measured"


def trials(report: TuningReport) -> Figure | None:
    """All trials in time order, by what was set; None when none succeeded."""
    found = list(report.objectives())
    if not found:
        return None
    rises = tuning_words.rises(report)
    kept = report.tuning.kept
    start = _moment(found[0][0])
    minutes = [(_moment(trial) - start) / 60 for trial, _ in found]
    ratios = [1 / ratio if rises else ratio for _, ratio in found]
    originals = sum(not trial.setting for trial, _ in found)
    broken = sum(trial.status == "failed" for trial in report.trials)
    return Figure(
        id="trials",
        chart=charts.TRIALS,
        title="All trials in time order",
        x_title="minutes since the first trial",
        y_title=f"change of {tuning_words.objective(report)}",
        x=Ticks((), ()),
        y=ticks.changes(ratios, logarithmic=True),
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "trial": [trial.index for trial, _ in found],
                        "minutes": rounded(minutes),
                        "ratio": rounded(ratios),
                        "shown": [format_share(ratio - 1) for ratio in ratios],
                        "group": [_group(trial, kept) for trial, _ in found],
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


def _group(trial: Trial, kept: Values) -> str:
    if not trial.setting:
        return ORIGINAL
    return KEPT if trial.setting == kept else OTHER


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
