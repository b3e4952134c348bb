"""Runs of studies.

::

    RUN/study.json       factors, metrics, design, how far; replaced atomically
    RUN/trials.jsonl     one JSON line per run of all metrics, appended and flushed to disk
    RUN/study.toml       the study file as it was read
    RUN/jobs/            scripts and output of the jobs of a mix under Slurm
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from wulf.base.store.files import RunWriter, write_atomically
from wulf.base.tool import Listed
from wulf.tools.study.record import StudyManifest, StudyTrial

HEAD = "study.json"
TRIALS = "trials.jsonl"
FILE = "study.toml"
JOBS = "jobs"


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a study as it was read."""

    path: Path
    manifest: StudyManifest
    trials: list[StudyTrial]


class StudyWriter(RunWriter[StudyManifest]):
    """The one writer of a study's run."""

    called = "a run of a study"
    head_name = HEAD
    log_name = TRIALS
    head = "study", StudyManifest
    log = "study trial", StudyTrial


def create_study(path: Path, manifest: StudyManifest, text: str) -> StudyWriter:
    """Make a new run of a study and open it for writing.

    Parameters
    ----------
    text
        Of the study file.

    Raises
    ------
    StoreError
        There is one already, or the disk refuses.
    """
    writer = StudyWriter.create(path, manifest)
    write_atomically(path / FILE, text.encode())
    return writer


def load_study(path: Path) -> StudyRun:
    """Read a run of a study."""
    manifest, trials = StudyWriter.read(path)
    return StudyRun(path=path, manifest=manifest, trials=trials)


def listed(run: StudyRun) -> Listed:
    """Return what a list of runs says of a study."""
    return Listed([run.manifest.plan.study], 0, len(run.trials))
