"""From a tuning run to what is shown of it.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from wulf.base.records import Control, Effect
from wulf.base.text import printable
from wulf.base.units import format_change, format_value
from wulf.page.parts import Figure, Flag, Table
from wulf.page.words import count, duration, moment, name, percent
from wulf.tools.tune.page import audit as tuning_audit
from wulf.tools.tune.page import before_after, paper_table
from wulf.tools.tune.page import figures as tuning_figures
from wulf.tools.tune.page import mended as tuning_mended
from wulf.tools.tune.page import places as tuning_places
from wulf.tools.tune.page import tables as tuning_tables
from wulf.tools.tune.page import whole as tuning_whole
from wulf.tools.tune.page import words as tuning_words
from wulf.tools.tune.page.input import ChangeRow, TuningReport, failed

_LIMIT = 400
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
    #: What follows from it that nothing was kept; empty when something was.
    nothing_kept: str
    effects_figure: Figure | None
    effects: Table
    path_figure: Figure | None
    path: Table
    patterns: Table
    #: Pair by pair; None where one pair is all.
    places: Table | None
    curves: tuple[Figure, ...]
    boxes: tuple[Figure, ...]
    control: tuple[str, ...]
    control_flag: Flag
    trials: Figure | None
    failures: Table
    #: What the audit found before and after; None where it was not part of the run.
    audit: Table | None
    #: What was set right before the search; None where nothing was.
    mended: Table | None
    #: What mending and tuning brought together; None where nothing was mended.
    whole: Table | None
    #: (title, relative address) of pages that belong to this one.
    pages: tuple[tuple[str, str], ...]
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
        nothing_kept="" if report.changed or tuning.kept else tuning_words.left_as_they_are(report),
        effects_figure=tuning_figures.effects(report),
        effects=tuning_tables.effects(report),
        path_figure=tuning_figures.path(report),
        path=tuning_tables.path(report),
        patterns=tuning_tables.patterns(report),
        places=tuning_places.table(report),
        curves=before_after.curves(report),
        boxes=before_after.boxes(report),
        control=_control(report),
        control_flag=_control_flag(tuning.control),
        trials=tuning_figures.trials(report),
        failures=tuning_tables.failures(report),
        audit=(
            tuning_audit.findings(report.audit_before, report.audit_after) if report.audit_before else None
        ),
        mended=tuning_mended.table(report.mended)
        if report.mended and (report.mended.findings or report.mended.refused)
        else None,
        whole=tuning_whole.table(report.whole) if report.whole else None,
        pages=tuple(report.pages),
        published=paper_table.tables(report),
        published_note=paper_table.NOTE,
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
    keys = [*_whole(report)]
    if confirmation is not None and tuning.kept:
        change, _, interval = tuning_words.change(report, confirmation.ratio).partition(" (")
        share = percent(confirmation.ratio.confidence)
        keys.append(
            KeyView(
                f"change of {tuning_words.objective(report)}",
                change,
                f"{share} interval {interval.rstrip(')')} %",
            )
        )
        keys += _before_after(report)
    control = tuning.control
    keys.append(
        KeyView(
            "smallest change that is found",
            tuning_words.smallest(report, control.smallest_effect) if control else "unknown",
            f"in nine cases of ten, by {count(control.effect_blocks, 'trial')} with it and as many without"
            if control
            else "no A/A control was made",
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


def _whole(report: TuningReport) -> Iterator[KeyView]:
    """Yield what became of the figures that the headline names."""
    for figure in tuning_whole.telling(report.whole) if report.whole else ():
        ratio = figure.whole.ratio
        if ratio is None:
            continue
        change, _, interval = format_change(ratio).partition(" (")
        yield KeyView(
            f"{name(figure.metric)}, {tuning_whole.AS_FOUND}",
            change,
            f"{percent(ratio.confidence)} interval {interval.rstrip(')')} %; {figure.whole.verdict}",
        )


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
        return tuning_words.change(
            report, left_out.ratio
        ), f"{tuning_words.objective(report)} when it is left out"
    added = _last(report, knob, "forward") or _last(report, knob, "screening")
    if added is not None:
        return tuning_words.change(
            report, added.ratio
        ), f"{tuning_words.objective(report)} when it was added; leaving it out was not tried"
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


def _control(report: TuningReport) -> tuple[str, ...]:
    control = report.tuning.control
    if control is None:
        return ("No A/A control was made: what this cluster can show is unknown.",)
    return (
        f"The same setting against itself: {tuning_words.change(report, control.ratio)}, which should hold 0 "
        f"({count(control.trials, 'trial')} in {count(control.blocks, 'block')}).",
        f"One trial scatters by {percent(control.spread)}; {count(control.effect_blocks, 'trial')} with a setting and "
        f"as many without it find a change of {tuning_words.smallest(report, control.smallest_effect)} or more in nine "
        "cases of ten.",
        "The cluster drifted: trials of the same setting depended on each other."
        if control.drifting
        else f"No drift was detected in {count(control.trials, 'trial')}; so few show only a strong one.",
    )


def _control_flag(control: Control | None) -> Flag:
    if control is None or control.drifting:
        return "warning"
    low, high = control.ratio.low, control.ratio.high
    return "warning" if low is None or high is None or not low <= 1 <= high else "good"
