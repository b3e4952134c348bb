"""Tables of a tuning run: every value that was tried, the path, before and after, what failed.  Pure."""

from __future__ import annotations

import statistics

from wulf.base.records import Candidate, Effect, Verdict
from wulf.base.text import count, printable
from wulf.base.units import format_value
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import FLAGS, change_item, listed, name
from wulf.tools.tune.page import figures as tuning_figures
from wulf.tools.tune.page import words as tuning_words
from wulf.tools.tune.page.figures import change_words, step_change, step_label, verdict_words
from wulf.tools.tune.page.input import ORIGINAL, TuningReport, failed, setting_label

_LIMIT = 400
#: A table of verdicts with more patterns than this is too wide to be read.
_PATTERNS = 6


def effects(report: TuningReport) -> Table:
    """Return one row for each value that was tried, best first."""
    patterns = _pattern_names(report)
    candidates = {candidate.knob: candidate for candidate in report.plan.candidates}
    several = patterns if 1 < len(patterns) <= _PATTERNS else []
    return Table(
        title="Every value that was tried, best first",
        columns=(
            Column("setting"),
            Column("change (interval)", numeric=True),
            Column("verdict"),
            Column("was", narrow=False),
            *(Column(name(pattern), narrow=False) for pattern in several),
            Column("adjusted p", numeric=True, narrow=False),
            Column("on top of", narrow=False),
            Column("trials", numeric=True),
        ),
        rows=tuple(
            (
                Item(_setting(candidates.get(effect.knob), effect)),
                Item(change_words(report, effect), effect.ratio.value),
                Item(verdict_words(report, effect), effect.verdict, _flag(effect)),
                Item(_was(candidates.get(effect.knob))),
                *(_verdict_item(effect.patterns.get(pattern)) for pattern in several),
                Item(_p_value(effect), effect.p_adjusted),
                Item(count(len(effect.base), "kept setting") if effect.base else ORIGINAL),
                Item(str(effect.trials), effect.trials),
            )
            for effect in tuning_figures.ordered(report.judged)
        ),
        note=f"Change: of {tuning_words.objective(report)}, with the setting against without it; "
        f"{tuning_words.better(report)}. Adjusted p: of no change, times the number of values (Bonferroni).",
        empty="no setting was compared",
    )


def risks(report: TuningReport) -> Table:
    """Return what may go wrong with the settings that were tried, where something is known."""
    known = {candidate.knob: candidate.risk for candidate in report.plan.candidates if candidate.risk}
    tried = dict.fromkeys(effect.knob for effect in tuning_figures.ordered(report.judged))
    return Table(
        title="Risks",
        columns=(Column("setting", whole=True), Column("what may go wrong")),
        rows=tuple(
            (Item(name(knob)), Item(printable(known[knob], _LIMIT))) for knob in tried if knob in known
        ),
        note="Of the other settings that were tried no risk is known.",
        empty="none is known of the settings that were tried",
    )


def _setting(candidate: Candidate | None, effect: Effect) -> str:
    meaning = candidate.meanings.get(effect.value) if candidate else None
    return setting_label(effect.knob, effect.value) + (f" ({name(meaning)})" if meaning else "")


def _was(candidate: Candidate | None) -> str:
    """Return what the nodes had, and which of them the value changed where it was not all."""
    if candidate is None:
        return "unknown"
    return name(candidate.original) + (f", changed on {name(candidate.nodes)}" if candidate.nodes else "")


def _p_value(effect: Effect) -> str:
    if failed(effect):
        return "–"
    return "< 0.001" if effect.p_adjusted < 0.001 else f"{effect.p_adjusted:.3f}"


def _flag(effect: Effect) -> Flag:
    if failed(effect) or effect.harmed:
        return "error"
    return FLAGS[effect.verdict]


def _verdict_item(verdict: Verdict | None) -> Item:
    return Item(verdict, verdict, FLAGS[verdict]) if verdict else Item("–")


def _pattern_names(report: TuningReport) -> list[str]:
    return list(dict.fromkeys(metric.pattern for metric in report.plan.metrics))


def path(report: TuningReport) -> Table:
    """Return one row for each step of the search."""
    return Table(
        title="Steps of the search",
        columns=(
            Column("step"),
            Column("phase", narrow=False),
            Column("change from original", numeric=True),
            Column("why"),
        ),
        rows=tuple(
            (
                Item(step_label(step)),
                Item(step.phase),
                Item(step_change(report, step), step.ratio.value if step.ratio else None),
                Item(printable(step.reason, _LIMIT) or "–"),
            )
            for step in report.tuning.path
        ),
        empty="the search took no step",
    )


def patterns(report: TuningReport) -> Table:
    """Return before and after, metric by metric: what is best for one pattern may be bad for another."""
    effect = report.tuning.confirmation
    metrics = [m for m in report.plan.metrics if effect and m.name in effect.metrics] if effect else []
    return Table(
        title="Before and after, by pattern",
        columns=(
            Column("metric"),
            Column("pattern", narrow=False),
            Column("before", numeric=True),
            Column("after", numeric=True),
            Column("change (interval)", numeric=True),
            Column("verdict"),
        ),
        rows=tuple(
            (
                Item(name(metric.name)),
                Item(f"{name(metric.pattern)}{', guarded' if metric.guard else ''}"),
                *(_median(report, metric.name, kept) for kept in (False, True)),
                change_item(tuning_words.metric_ratio(metric, effect.metrics[metric.name])),
                _guarded(effect, metric.name, metric.pattern),
            )
            for metric in metrics
            if effect
        ),
        note="Change: of a time negative is faster, of a rate positive is. The verdict is that of the metric's "
        "pattern.",
        empty="what was kept was not compared with the original settings"
        if report.tuning.kept
        else "nothing was kept, so there is no after",
    )


def _guarded(effect: Effect, metric: str, pattern: str) -> Item:
    if metric in effect.harmed:
        return Item("worse: guarded", "worse", "error")
    return _verdict_item(effect.patterns.get(pattern))


def _median(report: TuningReport, metric: str, kept: bool) -> Item:
    found = next(m for m in report.plan.metrics if m.name == metric)
    tested = report.tuning.confirmation
    values = report.values(found, report.confirming(tested.tried if kept and tested else {}))
    if not values:
        return Item("unknown", None, "unknown")
    middle = statistics.median(values)
    return Item(format_value(middle, found.unit), middle)


def failures(report: TuningReport) -> Table:
    """Fold the trials that failed: the same setting and reason are one line."""
    folded: dict[tuple[str, str], int] = {}
    for trial in report.trials:
        if trial.status == "failed":
            labels = [setting_label(*entry) for entry in trial.setting.items()]
            key = listed(labels, 3) or ORIGINAL, printable(trial.error or "unknown", _LIMIT)
            folded[key] = folded.get(key, 0) + 1
    return Table(
        title="Trials that failed",
        columns=(Column("setting"), Column("trials", numeric=True), Column("why")),
        rows=tuple(
            (Item(setting), Item(str(number), number), Item(why)) for (setting, why), number in folded.items()
        ),
        empty="none",
    )
