"""The conclusion of a tuning run in one sentence, and what qualifies it."""

from __future__ import annotations

from wulf.base.records import Effect, Estimate, Metric
from wulf.base.text import count, printable
from wulf.base.units import format_change, format_share, format_unseen, undoing
from wulf.page.parts import Flag
from wulf.page.words import duration, listed, name, percent
from wulf.tools.tune.page import procedure as whole_words
from wulf.tools.tune.page.input import TuningReport, failed, setting_label

#: (objective, whether more is better) → what its change is a change of.
_OBJECTIVES = {
    ("latency", False): "small-message time",
    ("latency", True): "small-message rate",
    ("bandwidth", False): "large-message time",
    ("bandwidth", True): "bandwidth",
}
_ENDS = {
    "complete": "",
    "budget": "the time was used up",
    "interrupted": "it was interrupted",
    "failed": "the search failed",
    "search": "the search goes on",
}


def objective(report: TuningReport) -> str:
    """Return what the objective's change is a change of."""
    if len(report.main) == 1:
        return name(report.main[0].name)
    return _OBJECTIVES.get((report.plan.objective, rises(report)), "weighted time of the objective")


def rises(report: TuningReport) -> bool:
    """Whether more is better for every metric of the objective: it is then shown as they are, not as a time."""
    return bool(report.main) and all(metric.better == "higher" for metric in report.main)


def shown(report: TuningReport, ratio: Estimate) -> Estimate:
    """Return the objective's ratio in the direction in which it is talked about: of a rate where more is better."""
    return _inverse(ratio) if rises(report) else ratio


def change(report: TuningReport, ratio: Estimate) -> str:
    """Return the objective's ratio as a change with its interval: '−48 % (−50 to −46)'."""
    return format_change(shown(report, ratio))


def better(report: TuningReport) -> str:
    """Return which changes of the objective are good."""
    return "positive is better" if rises(report) else "negative is better"


def gain(report: TuningReport, ratio: Estimate) -> str:
    """Return 'small-message time −48 % (−50 to −46)'."""
    return f"{objective(report)} {change(report, ratio)}"


def smallest(report: TuningReport, share: float) -> str:
    """Return the smallest change for the better that is shown, of which the time falls by `share`."""
    return format_share(undoing(share) if rises(report) else -share)


def metric_ratio(metric: Metric, ratio: Estimate) -> Estimate:
    """Return the ratio of a metric itself from that of its cost, which is its inverse where more is better."""
    return _inverse(ratio) if metric.better == "higher" else ratio


def headline(report: TuningReport) -> tuple[str, Flag]:
    """Return the conclusion and how good it is: of mending and tuning together, where there was something to mend."""
    title, flag = tuned(report)
    if report.whole is None:
        return title, flag
    both, how_good = whole_words.headline(report.whole)
    return both, flag if flag in ("warning", "error") else how_good


def tuned(report: TuningReport) -> tuple[str, Flag]:
    """Return the conclusion of the search alone, and how good it is."""
    tuning = report.tuning
    if tuning.kept:
        return _kept(report, tuning.confirmation)
    if tuning.confirmation is not None:
        ratio = gain(report, tuning.confirmation.ratio)
        return f"Nothing kept: what looked better was not confirmed ({ratio})", "warning"
    return _nothing(report)


def _nothing(report: TuningReport) -> tuple[str, Flag]:
    tuning = report.tuning
    if tuning.status == "failed":
        return "Nothing kept: the search failed", "error"
    if tuning.status in ("interrupted", "search", "budget"):
        return f"Nothing kept so far: {_ENDS[tuning.status]} before anything was proven to help", "warning"
    if report.judged and all(failed(effect) for effect in report.judged):
        return "Nothing kept: nothing could be measured under any setting that was tried", "error"
    if not report.judged:
        return "Nothing kept: no setting was compared", "warning"
    return f"Nothing kept: no setting is proven to help{_seen(report)}", ""


def _kept(report: TuningReport, confirmation: Effect | None) -> tuple[str, Flag]:
    settings = count(len(report.tuning.kept), "setting")
    if confirmation is None:
        ratio = next((step.ratio for step in reversed(report.tuning.path) if step.ratio), None)
        so_far = f": {gain(report, ratio)}" if ratio else ""
        why = _ENDS[report.tuning.status]
        return f"{settings} chosen, but not confirmed{f' ({why})' if why else ''}{so_far}", "warning"
    said = f"{settings} kept: {gain(report, confirmation.ratio)}"
    worse = _worsened(report, confirmation)
    if confirmation.verdict != "better":
        return f"{said}; the confirmation says: {confirmation.verdict}", "warning"
    if worse:
        return f"{said}; worse: {listed(worse, 3)}", "warning"
    return f"{said}{_unharmed(report, confirmation)}", "good"


def _unharmed(report: TuningReport, confirmation: Effect) -> str:
    if len(report.plan.metrics) == 1:
        return ""
    doubtful = "no decision" in confirmation.patterns.values()
    return "; nothing is proven to be worse" if doubtful else "; nothing got worse"


def _worsened(report: TuningReport, effect: Effect) -> list[str]:
    """Guard metrics that became worse, and patterns of which nothing else is said."""
    said = {metric.pattern for metric in report.plan.metrics if metric.name in effect.harmed}
    patterns = [
        p for p, verdict in effect.patterns.items() if verdict in ("worse", "mixed") and p not in said
    ]
    return [name(worse) for worse in (*effect.harmed, *patterns)]


def _seen(report: TuningReport) -> str:
    control = report.tuning.control
    if control is None:
        return ""
    return f"; a change of {smallest(report, control.smallest_effect)} would have been found in nine cases out of ten"


def points(report: TuningReport) -> tuple[str, ...]:
    """Return what a reader needs to believe the conclusion."""
    tuning = report.tuning
    said = [*_parts(report)]
    if tuning.kept and tuning.confirmation and len(tuning.confirmation.patterns) > 1:
        patterns = [f"{name(pattern)} {verdict}" for pattern, verdict in tuning.confirmation.patterns.items()]
        said.append(f"By pattern: {listed(patterns)}.")
    if tuning.control is None:
        said.append("The same setting was not compared with itself: what this cluster can show is unknown.")
    else:
        said.append(
            f"Changes of {objective(report)} {format_unseen(tuning.control.smallest_effect)} may go unseen in this "
            "time on this cluster; larger ones are found in nine cases out of ten."
        )
        if tuning.control.smallest_within is not None:
            said.append(
                f"Settings that act on connections that there are already are switched while the probe measures: of "
                f"these only changes {format_unseen(tuning.control.smallest_within)} may go unseen."
            )
        if tuning.control.drifting:
            said.append("The cluster drifted: trials of the same setting depended on each other.")
    broken = sum(trial.status == "failed" for trial in report.trials)
    dirty = sum(bool(trial.contamination) for trial in report.trials)
    said.append(f"{count(len(report.trials), 'trial')}, {broken} failed, {dirty} under other load.")
    missing = untested(report)
    if missing and tuning.kept:
        said.append(f"Not tested: {listed(missing, 4)}.")
    if tuning.status != "complete":
        said.append(f"Stopped early: {_ENDS[tuning.status]}.")
        said += [printable(note, 400) for note in tuning.notes]
    unstored = [row.knob for row in report.changed if not row.stored]
    if unstored:
        said.append(f"Gone after a reboot: {listed([name(knob) for knob in unstored])}.")
    return tuple(said)


def _parts(report: TuningReport) -> tuple[str, ...]:
    """Return what each part of the whole procedure brought; nothing where tuning was all of it."""
    if report.whole is not None:
        title, _ = tuned(report)
        return whole_words.points(report.whole, title[:1].lower() + title[1:])
    if report.mended is None:
        return ()
    if report.mended.outcome is not None:
        return (f"Mending brought nothing, it was put back: {printable(report.mended.outcome.reason, 400)}.",)
    return ("Mending changed nothing: the tuning began with the nodes as found.",)


def untested(report: TuningReport) -> list[str]:
    """Return the values that were planned and never compared with anything."""
    tested = {(effect.knob, effect.value) for effect in report.tuning.effects}
    return [
        setting_label(candidate.knob, value)
        for candidate in report.plan.candidates
        for value in candidate.values
        if (candidate.knob, value) not in tested
    ]


def left_as_they_are(report: TuningReport) -> str:
    """Return what follows from a run that kept nothing; of what was not tested nothing does."""
    missing = untested(report)
    planned = sum(len(candidate.values) for candidate in report.plan.candidates)
    undecided = {(one.knob, one.value) for one in report.judged if one.verdict == "no decision"}
    if not missing and undecided:
        return (
            f"Nothing so far: for {len(undecided)} of {count(planned, 'value')} it cannot be told whether they help; a "
            "longer --budget tells smaller effects."
        )
    if not missing:
        return "Nothing: leave the nodes as they are."
    return (
        f"Nothing so far. Not tested: {len(missing)} of {count(planned, 'value')} ({listed(missing, 4)}); "
        "a longer --budget, or --knobs with these only, tests them."
    )


def method(report: TuningReport) -> str:
    """Return how it was done, to be quoted."""
    plan = report.plan
    weights = ", ".join(f"{name(m.name)} (weight {m.weight:g})" for m in report.main)
    guards = [name(m.name) for m in plan.metrics if m.guard]
    early = "" if report.tuning.status == "complete" else "Planned, but not reached in full: "
    guarded = f" Guarded against becoming worse: {listed(guards)}." if guards else ""
    return (
        f"{early}One trial is a complete measuring cycle under one setting. The objective is the weighted geometric "
        f"mean of {weights or 'no metric'}, as a time.{guarded} All candidates were tried together, a random half of "
        "them in each trial, each trial followed by its complement (screening: a Hadamard design, folded over, "
        f"seed {plan.seed}); those that seemed to help again in all combinations (forward). Effects, those of pairs "
        "that do not add up among them, are those of one robust linear model of all trials (Huber), with what a trial "
        "has of the one before taken out, and with a node-local reference as a covariate where there was one and the "
        "setting does not move it. What remained was compared with the original settings in fresh trials "
        f"(confirmation). Intervals are {percent(plan.confidence)} intervals; the chance that anything useless is "
        f"called better or worse is held at {percent(plan.false_discovery)} over all values (Bonferroni); changes "
        f"within ±{percent(plan.margin)} count as none. Budget: {duration(plan.budget_s)}."
    )


def _inverse(ratio: Estimate) -> Estimate:
    return Estimate(
        value=1 / ratio.value if ratio.value else 1.0,
        low=1 / ratio.high if ratio.high else None,
        high=1 / ratio.low if ratio.low else None,
        confidence=ratio.confidence,
        unit=ratio.unit,
        n=ratio.n,
        method=ratio.method,
    )
