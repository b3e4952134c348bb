"""Tuning runs.

::

    RUN/tuning.json      what is tried, with what, how far; replaced atomically
    RUN/trials.jsonl     one JSON line per trial, appended and flushed to disk
    RUN/result.json      the conclusion; can be made again from the two above

and, of the whole procedure (`wulf tune all`)::

    RUN/before/, RUN/after/                        measured runs: as found, and as left
    RUN/compared.html                              the page that compares the two
    RUN/audit-before.json, RUN/audit-after.json    what the audit found
    RUN/mended.json                                what was set right first
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from wulf.base.records import Audit, Mending, Trial, TuneManifest, Tuning
from wulf.base.store import columns
from wulf.base.store.files import RESULT, RunWriter, decode_optional
from wulf.base.text import count
from wulf.base.tool import Listed

HEAD = "tuning.json"
TRIALS = "trials.jsonl"
BEFORE = "before"
AFTER = "after"
COMPARED = "compared.html"
AUDIT_BEFORE = "audit-before.json"
AUDIT_AFTER = "audit-after.json"
MENDED = "mended.json"


class TuningRun(msgspec.Struct, frozen=True, kw_only=True):
    """A tuning run as it was read."""

    path: Path
    manifest: TuneManifest
    trials: list[Trial]
    #: None before there is a conclusion.
    result: Tuning | None
    #: What the audit found before and after; None where it was not part of the run.
    audit_before: Audit | None = None
    audit_after: Audit | None = None
    #: What was set right before the search; None where that was not part of the run.
    mended: Mending | None = None

    def __repr__(self) -> str:
        """Return what it is, in a line: all its trials would be megabytes."""
        return f"<TuningRun {str(self.path)!r}: {self.manifest.status}, {count(len(self.trials), 'trial')}>"

    def columns(self, table: str = "trials") -> dict[str, list[Any]]:
        """Return a table as plain columns of equal length, for any data-frame library.

        Parameters
        ----------
        table
            ``"trials"`` (one row per trial and metric) or ``"effects"`` (one row per comparison of the conclusion).

        Raises
        ------
        StoreError
            The table does not exist.
        """
        makers = {
            "trials": lambda: columns.trial_rows(self.trials),
            "effects": lambda: columns.effect_rows(self.result),
        }
        return columns.table(table, makers)


class TuningWriter(RunWriter[TuneManifest]):
    """The one writer of a tuning run."""

    called = "a tuning run"
    head_name = HEAD
    log_name = TRIALS
    head = "tuning", TuneManifest
    log = "trial", Trial


def load_tuning(path: Path) -> TuningRun:
    """Read a tuning run."""
    manifest, trials = TuningWriter.read(path)
    return TuningRun(
        path=path,
        manifest=manifest,
        trials=trials,
        result=decode_optional(path / RESULT, Tuning),
        audit_before=decode_optional(path / AUDIT_BEFORE, Audit),
        audit_after=decode_optional(path / AUDIT_AFTER, Audit),
        mended=decode_optional(path / MENDED, Mending),
    )


def listed(run: TuningRun) -> Listed:
    """Return what a list of runs says of a tuning run."""
    return Listed([run.manifest.plan.objective], len(run.manifest.workload.places), len(run.trials))
