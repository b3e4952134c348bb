"""Tuning runs.

::

    RUN/tuning.json      what is tried, with what, how far; replaced atomically
    RUN/trials.jsonl     one JSON line per trial, appended and flushed to disk
    RUN/result.json      the conclusion; can be made again from the two above

and, of the whole procedure (`wulf run`)::

    RUN/before/, RUN/after/                        measured runs
    RUN/audit-before.json, RUN/audit-after.json    what the audit found
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from wulf.errors import StoreError
from wulf.records import Audit, Trial, TuneManifest, Tuning
from wulf.store import columns
from wulf.store.files import DAMAGED, RunWriter, check_version, decode_file, has, read_log, write_record

_T = TypeVar("_T")

HEAD = "tuning.json"
TRIALS = "trials.jsonl"
RESULT = "result.json"
BEFORE = "before"
AFTER = "after"
AUDIT_BEFORE = "audit-before.json"
AUDIT_AFTER = "audit-after.json"


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

    head_name = HEAD
    log_name = TRIALS

    def append(self, trial: Trial) -> None:
        """Write one trial; it is on the disk when this returns."""
        self._log.append(trial)

    def conclude(self, result: Tuning) -> None:
        """Store what follows from the trials."""
        write_record(self.path / RESULT, result)


def create_tuning(path: Path, manifest: TuneManifest) -> TuningWriter:
    """Make a new tuning run and open it for writing.

    Raises
    ------
    StoreError
        There is one already, or the disk refuses.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the run directory {path}: {error.strerror}") from error
    if (path / HEAD).exists():
        raise StoreError(f"{path} exists already: choose another name, or go on with --resume")
    write_record(path / HEAD, manifest)
    return TuningWriter(path, manifest)


def resume_tuning(path: Path) -> tuple[TuningRun, TuningWriter]:
    """Open an existing tuning run for reading and for further trials."""
    run = load_tuning(path)
    return run, TuningWriter(path, run.manifest)


def load_tuning(path: Path) -> TuningRun:
    """Read a tuning run.

    Raises
    ------
    StoreError
        It is none, of a newer version, or damaged; names the file.
    """
    if not has(path, HEAD):
        raise StoreError(f"{path} is not a tuning run: it has no {HEAD} ('wulf list' shows the runs)")
    check_version(path / HEAD, decode_file(path / HEAD, dict[str, Any]))
    return TuningRun(
        path=path,
        manifest=decode_file(path / HEAD, TuneManifest),
        trials=_trials(path / TRIALS),
        result=_optional(path / RESULT, Tuning),
        audit_before=_optional(path / AUDIT_BEFORE, Audit),
        audit_after=_optional(path / AUDIT_AFTER, Audit),
    )


def _optional(path: Path, kind: type[_T]) -> _T | None:
    return decode_file(path, kind) if path.exists() else None


def _trials(log: Path) -> list[Trial]:
    """Return the whole lines; a killed writer may have left a part of one."""
    found: list[Trial] = []
    lines = read_log(log).split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            found.append(msgspec.json.decode(line, type=Trial))
        except DAMAGED as error:
            raise StoreError(f"{log}, line {number} is damaged: {error}") from error
    return found
