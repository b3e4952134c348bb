"""Runs of studies.

::

    RUN/study.json       factors, metrics, design, how far; replaced atomically
    RUN/trials.jsonl     one JSON line per run of all metrics, appended and flushed to disk
    RUN/study.toml       the study file as it was read
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from wulf.base.errors import StoreError
from wulf.base.store.files import (
    RunWriter,
    has,
    read_head,
    read_records,
    write_atomically,
)
from wulf.base.tool import Listed
from wulf.tools.study.record import StudyManifest, StudyTrial

HEAD = "study.json"
TRIALS = "trials.jsonl"
FILE = "study.toml"


class StudyRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a study as it was read."""

    path: Path
    manifest: StudyManifest
    trials: list[StudyTrial]


class StudyWriter(RunWriter[StudyManifest]):
    """The one writer of a study's run."""

    head_name = HEAD
    log_name = TRIALS


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


def resume_study(path: Path) -> tuple[StudyRun, StudyWriter]:
    """Open an existing run of a study for reading and for further runs."""
    run = load_study(path)
    return run, StudyWriter(path, run.manifest)


def load_study(path: Path) -> StudyRun:
    """Read a run of a study.

    Raises
    ------
    StoreError
        It is none, of a newer version, or damaged; names the file.
    """
    if not has(path, HEAD):
        raise StoreError(
            f"{path} is not a run of a study: it has no {HEAD} ('wulf runs list' shows the runs)"
        )
    manifest, version = read_head(path / HEAD, "study", StudyManifest)
    return StudyRun(
        path=path,
        manifest=manifest,
        trials=list(read_records(path / TRIALS, "study trial", StudyTrial, version)),
    )


def listed(run: StudyRun) -> Listed:
    """Return what a list of runs says of a study."""
    return Listed([run.manifest.plan.study], 0, len(run.trials))
