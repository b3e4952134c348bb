"""What a tuning report is made of, and the few things that all its parts ask of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from wulf.base.records import Audit, Effect, Mending, Metric, Trial, TunePlan, Tuning, Values, Whole
from wulf.base.text import count, printable

ORIGINAL = "original"
KEPT = "kept"
OTHER = "other settings"
#: Phases in which a value is judged for being kept.
_JUDGING = ("screening", "refinement", "forward")


@dataclass(frozen=True, kw_only=True)
class ChangeRow:
    """One setting that was kept, and what an administrator must know of it."""

    #: Id of the knob.
    knob: str
    #: What the knob is, in words.
    title: str
    original: str
    value: str
    #: Folded: ``node[01-16]``.
    nodes: str
    #: What may go wrong.
    risk: str = ""
    #: File or mechanism that sets it again at boot; empty when it is gone after a reboot.
    stored: str = ""
    #: Command that puts the original back.
    undo: str = ""


@dataclass(frozen=True, kw_only=True)
class TuningReport:
    """A tuning run, as it is reported."""

    plan: TunePlan
    #: In time order.
    trials: Sequence[Trial]
    tuning: Tuning
    #: All nodes of the run, folded; empty when that is not known.
    nodes: str = ""
    #: Command that puts back everything at once.
    undo: str = ""
    #: One for each setting that was kept.
    changed: Sequence[ChangeRow] = ()
    #: What the audit found before and after, where it was part of the run.
    audit_before: Audit | None = None
    audit_after: Audit | None = None
    #: What was set right before the search, where that was part of the run.
    mended: Mending | None = None
    #: What mending and tuning brought together; None where nothing was mended.
    whole: Whole | None = None
    #: (title, relative address) of pages that belong to this one.
    pages: Sequence[tuple[str, str]] = ()

    @cached_property
    def main(self) -> list[Metric]:
        """Metrics that the objective is made of; all of them where none has a weight."""
        return [metric for metric in self.plan.metrics if metric.weight > 0] or self.plan.metrics

    @cached_property
    def judged(self) -> list[Effect]:
        """The last comparison that decided on each value, in the order in which values were first tried."""
        last = {(e.knob, e.value): e for e in self.tuning.effects if e.phase in _JUDGING and e.knob}
        return list(last.values())

    @cached_property
    def reference(self) -> dict[str, float]:
        """Metric → median under the original settings, of those that were measured."""
        values = {metric.name: self.values(metric, self.under({})) for metric in self.plan.metrics}
        return {name: statistics.median(found) for name, found in values.items() if found}

    def under(self, setting: Values) -> list[Trial]:
        """Return the trials of a setting that succeeded."""
        return [trial for trial in self.trials if trial.status == "ok" and trial.setting == setting]

    def confirming(self, setting: Values) -> list[Trial]:
        """Return the fresh trials of a setting: those of the confirmation."""
        return [trial for trial in self.under(setting) if trial.phase == "confirmation"]

    @staticmethod
    def values(metric: Metric, trials: Sequence[Trial]) -> list[float]:
        """Return what the trials say of a metric; a trial may lack it."""
        found = (trial.values.get(metric.name) for trial in trials)
        return [value for value in found if value is not None and math.isfinite(value)]

    def objectives(self) -> Iterator[tuple[Trial, float]]:
        """Yield each successful trial's objective as a time, relative to the median of the original settings."""
        for trial in self.trials:
            cost = self._objective(trial)
            if trial.status == "ok" and cost is not None:
                yield trial, cost

    def _objective(self, trial: Trial) -> float | None:
        total = weights = 0.0
        for metric in self.main:
            value, reference = trial.values.get(metric.name), self.reference.get(metric.name)
            if not value or not reference or value < 0 or reference < 0:
                return None
            sign = 1 if metric.better == "lower" else -1
            weight = metric.weight or 1.0
            total += sign * weight * math.log(value / reference)
            weights += weight
        return math.exp(total / weights) if weights else None


def failed(effect: Effect) -> bool:
    """Whether nothing could be measured under the setting."""
    return effect.trials == 0 or not math.isfinite(effect.ratio.value) or effect.ratio.value <= 0


def setting_label(knob: str, value: str) -> str:
    """Return 'nic.rx_usecs = 0'; that a name is a sysctl can be seen."""
    return f"{printable(knob, 60).removeprefix('sysctl.')} = {printable(value, 24)}".replace("\n", " ")


def short_label(knob: str, value: str) -> str:
    """Return the same for a chart, where there is less room: 'tcp_sack = 0' for a sysctl."""
    name = knob.rpartition(".")[2] if knob.startswith("sysctl.") else knob
    return setting_label(_middle_cut(name, 28), _middle_cut(value, 14))


def _middle_cut(text: str, limit: int) -> str:
    """Names that begin alike are told apart by their ends."""
    if len(text) <= limit:
        return text
    head = limit // 2 - 1
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def setting_name(setting: Mapping[str, str], kept: Mapping[str, str]) -> str:
    """Return what a whole setting is called."""
    if not setting:
        return ORIGINAL
    if setting == kept and len(kept) > 1:
        return KEPT
    if len(setting) == 1:
        return setting_label(*next(iter(setting.items())))
    return count(len(setting), "setting")
