"""From a tuning run to what is shown of it.  Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from wulf.records import Control, Effect, Estimate, Verdict
from wulf.report import before_after, published, tuning_figures, tuning_words
from wulf.report.compare import FLAGS
from wulf.report.parts import Column, Figure, Flag, Item, Table
from wulf.report.tuning_figures import ratio_words, step_label, step_ratio, verdict_words
from wulf.report.tuning_input import ORIGINAL, ChangeRow, TuningReport, failed, setting_label
from wulf.report.words import count, duration, listed, moment, name, percent
from wulf.text import printable
from wulf.units import format_ratio, format_value

_LIMIT = 400
#: A table of verdicts with more patterns than this is too wide to be read.
_PATTERNS = 6
_NOT_REPORTED = "The search chose these; whether they are set on the nodes, and where, was not reported."
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class KeyView:
    """One number that is seen at a glance."""

    name: str
    value: str
    where: str = ""


@dataclass(frozen=True)
class KeptView:
    """One setting that was kept."""

    title: str
    knob: str
    original: str
    value: str
    worth: str
    #: What the worth means, or why it is not known.
    worth_note: str
    #: (label, text, whether it is a command)
    lines: tuple[tuple[str, str, bool], ...]
    #: Whether it survives a reboot.
    stored: bool


@dataclass(frozen=True)
class TuningView:
    """A tuning run, ready to be printed."""

    run_id: str
    title: str
    flag: Flag
    lede: str
    points: tuple[str, ...]
    keys: tuple[KeyView, ...]
    kept: tuple[KeptView, ...]
    #: What is not known of them; empty when all is.
    kept_note: str
    effects_figure: Figure | None
    effects: Table
    path_figure: Figure | None
    path: Table
    patterns: Table
    curves: tuple[Figure, ...]
    boxes: tuple[Figure, ...]
    control: tuple[str, ...]
    control_flag: Flag
    trials: Figure | None
    failures: Table
    published: tuple[Table, ...]
    published_note: str
    #: Command that puts back all that was changed; empty when there is none.
    undo: str
    method: str
    notes: tuple[str, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts of the page."""
        single = (self.effects_figure, self.path_figure, self.trials)
        return (*(figure for figure in single if figure), *self.curves, *self.boxes)


def build(report: TuningReport) -> TuningView:
    """Return all that is shown of a tuning run."""
    title, flag = tuning_words.headline(report)
    tuning = report.tuning
    return TuningView(
        run_id=name(tuning.run_id),
        title=title,
        flag=flag,
        lede=_lede(report),
        points=tuning_words.points(report),
        keys=tuple(_keys(report)),
        kept=tuple(_kept(report, row) for row in report.changed or _chosen(report)),
        kept_note=_NOT_REPORTED if tuning.kept and not report.changed else "",
        effects_figure=tuning_figures.effects(report),
        effects=_effects(report),
        path_figure=tuning_figures.path(report),
        path=_path(report),
        patterns=_patterns(report),
        curves=before_after.curves(report),
        boxes=before_after.boxes(report),
        control=_control(report),
        control_flag=_control_flag(tuning.control),
        trials=tuning_figures.trials(report),
        failures=_failures(report),
        published=published.tables(report),
        published_note=published.NOTE,
        undo=printable(report.undo, _LIMIT),
        method=tuning_words.method(report),
        notes=tuple(printable(note, _LIMIT) for note in tuning.notes),
    )


def _lede(report: TuningReport) -> str:
    tried = sum(len(candidate.values) for candidate in report.plan.candidates)
    knobs = count(len(report.plan.candidates), "setting")
    where = f" on {printable(report.nodes, 200)}" if report.nodes else ""
    when = f", {moment(report.trials[0].started_at)}" if report.trials else ""
    return f"Objective '{name(report.plan.objective)}'{where}{when}. {knobs}, {count(tried, 'value')} to try."


def _keys(report: TuningReport) -> list[KeyView]:
    tuning, confirmation = report.tuning, report.tuning.confirmation
    keys = []
    if confirmation is not None and tuning.kept:
        ratio, _, interval = format_ratio(tuning_words.shown(report, confirmation.ratio)).partition(" ")
        share = percent(confirmation.ratio.confidence)
        keys.append(
            KeyView(tuning_words.objective(report), ratio, f"{share} interval {interval.strip('()')}")
        )
        keys += _before_after(report)
    control = tuning.control
    keys.append(
        KeyView(
            "smallest effect that can be seen",
            percent(control.smallest_effect) if control else "unknown",
            f"in {count(control.effect_blocks, 'block')} of trials" if control else "no A/A control was made",
        )
    )
    spent = sum(trial.duration_s for trial in report.trials)
    keys.append(
        KeyView(
            "trials used",
            f"{tuning.trials_used:,}",
            f"of {_many(tuning.trials_factorial)} for every combination; {duration(round(spent))} of measuring",
        )
    )
    return keys


def _many(number: int) -> str:
    """Return a number that people can read: beyond ten million only its power of ten matters."""
    if number < 10**7:
        return f"{number:,}"
    return f"10{str(len(str(number)) - 1).translate(_RAISED)}"


def _before_after(report: TuningReport) -> list[KeyView]:
    """Medians of the metric that weighs most, as the nodes were and as they are now."""
    metric = max(report.main, key=lambda metric: metric.weight, default=None)
    if metric is None:
        return []
    before = report.values(metric, report.confirming({}))
    after = report.values(metric, report.confirming(report.tuning.kept))
    if not before or not after:
        return []
    values = [format_value(statistics.median(found), metric.unit) for found in (before, after)]
    return [KeyView(name(metric.name), " → ".join(values), "median before → after")]


def _chosen(report: TuningReport) -> list[ChangeRow]:
    """Return what the search chose, where nobody said what was done with it."""
    candidates = {candidate.knob: candidate for candidate in report.plan.candidates}
    return [
        ChangeRow(
            knob=knob,
            title=knob,
            original=candidates[knob].original if knob in candidates else "unknown",
            value=value,
            nodes=report.nodes,
            risk=candidates[knob].risk if knob in candidates else "",
            stored="not reported",
        )
        for knob, value in report.tuning.kept.items()
    ]


def _kept(report: TuningReport, row: ChangeRow) -> KeptView:
    worth, note = _worth(report, row.knob)
    lines = (
        ("nodes", row.nodes, False),
        ("stored", row.stored or "live only: gone after a reboot", False),
        ("undo", row.undo, True),
        ("risk", row.risk, False),
    )
    return KeptView(
        title=name(row.title),
        knob=name(row.knob),
        original=name(row.original),
        value=name(row.value),
        worth=worth,
        worth_note=note,
        lines=tuple((label, printable(text, _LIMIT), code) for label, text, code in lines if text),
        stored=bool(row.stored),
    )


def _worth(report: TuningReport, knob: str) -> tuple[str, str]:
    """Return what leaving a kept setting out costs, or else what it gave when it was added."""
    left_out = _last(report, knob, "backward")
    if left_out is not None:
        change = _change(tuning_words.shown(report, left_out.ratio))
        return change, f"{tuning_words.objective(report)} when it is left out"
    added = _last(report, knob, "forward") or _last(report, knob, "screening")
    if added is not None:
        change = _change(tuning_words.shown(report, added.ratio))
        return change, f"{tuning_words.objective(report)} when it was added; leaving it out was not tried"
    return "unknown", "it was not compared on its own"


def _last(report: TuningReport, knob: str, phase: str) -> Effect | None:
    kept = report.tuning.kept.get(knob)
    found = [
        effect
        for effect in report.tuning.effects
        if effect.knob == knob
        and effect.phase == phase
        and not failed(effect)
        # In the backward phase what was left out has the value that is kept, or none.
        and (phase == "backward" or effect.value == kept)
    ]
    return found[-1] if found else None


def _change(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{100 * (ratio.value - 1):+.0f} %".replace("-", "−")
    digits = 0 if ratio.high - ratio.low > 0.01 else 1
    value, low, high = (
        f"{100 * (number - 1):+.{digits}f}".replace("-", "−")
        for number in (ratio.value, ratio.low, ratio.high)
    )
    return f"{value} % ({low} to {high})"


def _effects(report: TuningReport) -> Table:
    patterns = _pattern_names(report)
    risks = {candidate.knob: candidate.risk for candidate in report.plan.candidates}
    originals = {candidate.knob: candidate.original for candidate in report.plan.candidates}
    several = patterns if 1 < len(patterns) <= _PATTERNS else []
    return Table(
        title="Every value that was tried, best first",
        columns=(
            Column("setting"),
            Column("ratio (interval)", numeric=True),
            Column("verdict"),
            Column("was", narrow=False),
            *(Column(name(pattern), narrow=False) for pattern in several),
            Column("adjusted p", numeric=True, narrow=False),
            Column("on top of", narrow=False),
            Column("trials", numeric=True),
            Column("risk", narrow=False),
        ),
        rows=tuple(
            (
                Item(setting_label(effect.knob, effect.value)),
                Item(ratio_words(effect), effect.ratio.value),
                Item(verdict_words(report, effect), effect.verdict, _flag(effect)),
                Item(name(originals.get(effect.knob, "unknown"))),
                *(_verdict_item(effect.patterns.get(pattern)) for pattern in several),
                Item(_p_value(effect), effect.p_adjusted),
                Item(count(len(effect.base), "kept setting") if effect.base else ORIGINAL),
                Item(str(effect.trials), effect.trials),
                Item(printable(risks.get(effect.knob, ""), _LIMIT) or "none known"),
            )
            for effect in tuning_figures.ordered(report.judged)
        ),
        note="Ratio: of the objective as a time, with the setting ÷ without it. Adjusted p: of no change, after "
        "Benjamini and Hochberg over all comparisons.",
        empty="no setting was compared",
    )


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


def _path(report: TuningReport) -> Table:
    return Table(
        title="Steps of the search",
        columns=(
            Column("step"),
            Column("phase", narrow=False),
            Column("objective ÷ original", numeric=True),
            Column("why"),
        ),
        rows=tuple(
            (
                Item(step_label(step)),
                Item(step.phase),
                Item(step_ratio(step), step.ratio.value if step.ratio else None),
                Item(printable(step.reason, _LIMIT) or "–"),
            )
            for step in report.tuning.path
        ),
        empty="the search took no step",
    )


def _patterns(report: TuningReport) -> Table:
    """Before and after, metric by metric: what is best for one pattern may be bad for another."""
    effect = report.tuning.confirmation
    metrics = [m for m in report.plan.metrics if effect and m.name in effect.metrics] if effect else []
    return Table(
        title="Before and after, by pattern",
        columns=(
            Column("metric"),
            Column("pattern", narrow=False),
            Column("before", numeric=True),
            Column("after", numeric=True),
            Column("ratio (interval)", numeric=True),
            Column("verdict"),
        ),
        rows=tuple(
            (
                Item(name(metric.name)),
                Item(f"{name(metric.pattern)}{', guarded' if metric.guard else ''}"),
                *(_median(report, metric.name, kept) for kept in (False, True)),
                Item(format_ratio(effect.metrics[metric.name]), effect.metrics[metric.name].value),
                _guarded(effect, metric.name, metric.pattern),
            )
            for metric in metrics
            if effect
        ),
        note="Ratio: of the time, or of the inverse of what should be high: below 1× is better for every metric. "
        "The verdict is that of the metric's pattern.",
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
    values = report.values(found, report.confirming(report.tuning.kept if kept else {}))
    if not values:
        return Item("unknown", None, "unknown")
    middle = statistics.median(values)
    return Item(format_value(middle, found.unit), middle)


def _control(report: TuningReport) -> tuple[str, ...]:
    control = report.tuning.control
    if control is None:
        return ("No A/A control was made: what this cluster can show is unknown.",)
    return (
        f"The same setting against itself: {format_ratio(control.ratio)}, which should hold 1 "
        f"({count(control.trials, 'trial')} in {count(control.blocks, 'block')}).",
        f"One trial scatters by {percent(control.spread)}; {count(control.effect_blocks, 'block')} show an effect "
        f"of {percent(control.smallest_effect)} or more.",
        "The cluster drifted: trials depend on each other beyond what blocks take out; intervals are too narrow."
        if control.drifting
        else "No drift beyond what blocks take out.",
    )


def _control_flag(control: Control | None) -> Flag:
    if control is None or control.drifting:
        return "warning"
    low, high = control.ratio.low, control.ratio.high
    return "warning" if low is None or high is None or not low <= 1 <= high else "good"


def _failures(report: TuningReport) -> Table:
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
