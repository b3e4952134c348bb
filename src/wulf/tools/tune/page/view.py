"""From a tuning run to what is shown of it.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from wulf.base.records import Control, Effect
from wulf.base.text import count, printable
from wulf.base.units import format_change, format_value
from wulf.page.blocks import (
    Block,
    Change,
    Changes,
    Command,
    Key,
    Keys,
    Links,
    Matrices,
    Notes,
    Page,
    PageOnly,
    Paragraph,
    Section,
    Verdict,
    known,
)
from wulf.page.parts import Flag
from wulf.page.words import duration, moment, name, percent
from wulf.tools.tune.page import audit as tuning_audit
from wulf.tools.tune.page import before_after, paper_table
from wulf.tools.tune.page import effects_by_pair as tuning_places
from wulf.tools.tune.page import figures as tuning_figures
from wulf.tools.tune.page import mended as tuning_mended
from wulf.tools.tune.page import procedure as tuning_whole
from wulf.tools.tune.page import tables as tuning_tables
from wulf.tools.tune.page import words as tuning_words
from wulf.tools.tune.page.input import ChangeRow, TuningReport, failed

_LIMIT = 400
_NOT_REPORTED = "The search chose these; whether they are set on the nodes, and where, was not reported."
KEPT = "kept settings, what each is worth, and the way back"
AFTER = "the kept set against the original settings, in fresh trials"
PUBLISHED = "setting, mean, deviation, quantiles"
BOXES = (
    "Box: 25th to 75th percentile with the median; thick line: 5th to 95th; thin line: minimum to maximum; points: all "
    "trials of the confirmation, none dropped."
)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def build(report: TuningReport) -> Page:
    """Return all that is shown of a tuning run."""
    title, flag = tuning_words.headline(report)
    tuning = report.tuning
    failures = tuning_tables.failures(report)
    notes = Notes(tuple(printable(note, _LIMIT) for note in tuning.notes))
    return Page(
        title=title,
        lede=_lede(report),
        kind=f"Tuning · {name(tuning.run_id)}",
        verb="tune",
        head=(Keys(tuple(_keys(report))), Verdict(flag, tuning_words.points(report))),
        sections=(
            *_before_the_search(report),
            Section("kept", "What to change", tuple(_changes(report, flag)), KEPT),
            *_audit(report),
            Section(
                "effects",
                "Every setting that was tried",
                known(
                    tuning_figures.effects(report),
                    tuning_tables.effects(report),
                    tuning_tables.risks(report),
                    failures if failures.rows else None,
                ),
                "best first",
            ),
            Section(
                "path",
                "How the search got there",
                known(tuning_figures.path(report), tuning_tables.path(report)),
            ),
            Section("after", "Before and after", tuple(_after(report)), AFTER),
            Section(
                "control",
                "A/A control",
                known(
                    Verdict(_control_flag(tuning.control), _control(report)), tuning_figures.trials(report)
                ),
                "what this cluster can show",
            ),
            Section("published", "For a paper", (PageOnly(_published(report)),), PUBLISHED),
            Section("method", "Method", (PageOnly((Paragraph(tuning_words.method(report), quoted=True),)),)),
            *([Section("notes", "Notes", (notes,))] if notes.lines else []),
        ),
        run=name(tuning.run_id),
    )


def _before_the_search(report: TuningReport) -> Iterator[Section]:
    """Yield what all of it brought, and what was set right first."""
    if report.whole:
        table = tuning_whole.table(report.whole)
        yield Section("whole", table.title, (table,), "the effect of mending and tuning together")
    if report.mended and (report.mended.findings or report.mended.refused):
        table = tuning_mended.table(report.mended)
        yield Section("mended", table.title, (table,), "certainly wrong, whatever the objective")


def _changes(report: TuningReport, flag: Flag) -> Iterator[Block]:
    """Yield what was kept, and what follows from it where nothing was."""
    kept = tuple(_kept(report, row) for row in report.changed or _chosen(report))
    if kept:
        yield Changes(flag, kept)
        if not report.changed:
            yield Paragraph(_NOT_REPORTED)
    elif not report.tuning.kept:
        yield Paragraph(tuning_words.left_as_they_are(report))
    if report.undo:
        yield Command("Undo all", printable(report.undo, _LIMIT))


def _audit(report: TuningReport) -> Iterator[Section]:
    if report.audit_before:
        table = tuning_audit.findings(report.audit_before, report.audit_after)
        yield Section("audit", "What the audit found", (PageOnly((table,)),), "before and after")


def _after(report: TuningReport) -> Iterator[Block]:
    yield tuning_tables.patterns(report)
    places = tuning_places.table(report)
    if places is not None:
        yield places
    if report.pages:
        yield Links("Whole curves", tuple(report.pages))
    curves, boxes = before_after.curves(report), before_after.boxes(report)
    yield from curves
    if boxes:
        yield Matrices(boxes, "boxes")
    if curves or boxes:
        yield PageOnly((Paragraph(BOXES),))


def _published(report: TuningReport) -> tuple[Block, ...]:
    tables = paper_table.tables(report)
    return (*tables, Paragraph(paper_table.NOTE)) if tables else (Paragraph("No trial succeeded."),)


def _lede(report: TuningReport) -> str:
    tried = sum(len(candidate.values) for candidate in report.plan.candidates)
    knobs = count(len(report.plan.candidates), "setting")
    where = f" on {printable(report.nodes, 200)}" if report.nodes else ""
    when = f", {moment(report.trials[0].started_at)}" if report.trials else ""
    return f"Objective '{name(report.plan.objective)}'{where}{when}. {knobs}, {count(tried, 'value')} to try."


def _keys(report: TuningReport) -> list[Key]:
    tuning, confirmation = report.tuning, report.tuning.confirmation
    keys = [*_whole(report)]
    if confirmation is not None and tuning.kept:
        change, _, interval = tuning_words.change(report, confirmation.ratio).partition(" (")
        share = percent(confirmation.ratio.confidence)
        keys.append(
            Key(
                f"change of {tuning_words.objective(report)}",
                change,
                f"{share} interval {interval.rstrip(')')} %",
            )
        )
        keys += _before_after(report)
    control = tuning.control
    keys.append(
        Key(
            "smallest change that is found",
            tuning_words.smallest(report, control.smallest_effect) if control else "unknown",
            f"in nine cases out of ten, by {count(control.effect_blocks, 'trial')} with it and as many without"
            if control
            else "no A/A control was made",
        )
    )
    spent = sum(trial.duration_s for trial in report.trials)
    keys.append(
        Key(
            "trials used",
            f"{tuning.trials_used:,}",
            f"the values make {_many(tuning.trials_factorial)} combinations; {duration(round(spent))} of measuring",
        )
    )
    return keys


def _whole(report: TuningReport) -> Iterator[Key]:
    """Yield what became of the figures that the headline names."""
    for figure in tuning_whole.telling(report.whole) if report.whole else ():
        ratio = figure.whole.ratio
        if ratio is None:
            continue
        change, _, interval = format_change(ratio).partition(" (")
        yield Key(
            f"{name(figure.metric)}, {tuning_whole.AS_FOUND}",
            change,
            f"{percent(ratio.confidence)} interval {interval.rstrip(')')} %; {figure.whole.verdict}",
        )


def _many(number: int) -> str:
    """Return a number that people can read: beyond ten million only its power of ten matters."""
    if number < 10**7:
        return f"{number:,}"
    return f"10{str(len(str(number)) - 1).translate(_RAISED)}"


def _before_after(report: TuningReport) -> list[Key]:
    """Medians of the metric that weighs most, as the nodes were and as they are now."""
    metric = max(report.main, key=lambda metric: metric.weight, default=None)
    if metric is None:
        return []
    before = report.values(metric, report.confirming({}))
    after = report.values(metric, report.confirming(report.tuning.kept))
    if not before or not after:
        return []
    values = [format_value(statistics.median(found), metric.unit) for found in (before, after)]
    return [Key(name(metric.name), " → ".join(values), "median before → after")]


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


def _kept(report: TuningReport, row: ChangeRow) -> Change:
    worth, note = _worth(report, row.knob)
    lines = (
        ("nodes", row.nodes, False),
        ("stored", row.stored or "live only: gone after a reboot", False),
        ("undo", row.undo, True),
        ("risk", row.risk, False),
    )
    return Change(
        title=name(row.title),
        knob=name(row.knob),
        before=name(row.original),
        after=name(row.value),
        worth=worth,
        note=note,
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
        "cases out of ten.",
        "The cluster drifted: trials of the same setting depended on each other."
        if control.drifting
        else f"No drift was detected in {count(control.trials, 'trial')}; so few show only a strong one.",
    )


def _control_flag(control: Control | None) -> Flag:
    if control is None or control.drifting:
        return "warning"
    low, high = control.ratio.low, control.ratio.high
    return "warning" if low is None or high is None or not low <= 1 <= high else "good"
