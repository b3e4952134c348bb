"""Measured runs."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from wulf.base.errors import StoreError, UsageError
from wulf.base.records import Analysis, Launch, LaunchResult, LogRecord, Manifest, NodeRecord, Output, Sample
from wulf.base.store import columns
from wulf.base.store.files import (
    LOCK,
    RunWriter,
    check_moment,
    decode_optional,
    has,
    unfinished_bytes,
    write_atomically,
)
from wulf.base.text import count, printable

MANIFEST = "manifest.json"
RECORDS = "records.jsonl"
ANALYSIS = "analysis.json"
#: Directory of what commands have printed: LAUNCH.stdout and LAUNCH.stderr.
OUTPUT = "output"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was read: the records, whole launches only."""

    path: Path
    manifest: Manifest
    nodes: list[NodeRecord]
    results: list[LaunchResult]
    #: Bytes of an unfinished last line, left by a killed writer; it is not part of the records.
    truncated_bytes: int

    def __repr__(self) -> str:
        """Return what it is, in a line: all its records would be megabytes."""
        return f"<Run {str(self.path)!r}: {self.manifest.status}, {count(len(self.results), 'launch')}>"

    @property
    def launches(self) -> list[Launch]:
        """All launches in time order, failed ones and scouts included."""
        return [result.launch for result in self.results]

    @property
    def samples(self) -> list[Sample]:
        """All samples of all launches, scouts included."""
        return [sample for result in self.results for sample in result.samples]

    def analysis(self) -> Analysis | None:
        """Return the stored analysis; None when there is none of these very launches.

        It is derived and can be made again, so one that is damaged or of other records is as good as none.
        """
        path = self.path / ANALYSIS
        try:
            stored = decode_optional(path, Analysis)
        except StoreError:
            return None
        return stored if stored is not None and stored.launches_seen == len(self.results) else None

    def require_analysis(self) -> Analysis:
        """Return the stored analysis; raise StoreError when there is none."""
        analysis = self.analysis()
        if analysis is None:
            raise StoreError(f"{self.path} has not been analysed yet: 'wulf report {self.path}' does it")
        return analysis

    def columns(self, table: str = "cells") -> dict[str, list[Any]]:
        """Return a table as plain columns of equal length, for any data-frame library.

        Parameters
        ----------
        table
            ``"cells"`` (one row per cell estimate), ``"medians"`` (one row per cell and launch), ``"launches"`` (one
            row per launch), or ``"samples"`` (one row per cell and launch, whose histogram and medians are lists).

        Raises
        ------
        StoreError
            The table does not exist, or the run has not been analysed.
        """
        makers: dict[str, Callable[[], columns.Rows]] = {
            "cells": lambda: columns.cell_rows(self.require_analysis()),
            "medians": lambda: columns.median_rows(self.require_analysis()),
            "launches": lambda: columns.launch_rows(self.results),
            "samples": lambda: [columns.flat(sample) for sample in self.samples],
        }
        return columns.table(table, makers)


class Writer(RunWriter[Manifest]):
    """The one writer of a measured run."""

    called = "a run directory"
    head_name = MANIFEST
    log_name = RECORDS
    head = "manifest", Manifest
    log = "record", LogRecord

    def append(self, record: msgspec.Struct) -> None:
        """Write a node's record or a launch; it is on the disk when this returns."""
        if isinstance(record, LaunchResult) and record.output is not None:
            self._keep(record.launch.id, record.output)
            record = msgspec.structs.replace(record, output=None)
        super().append(record)

    def _keep(self, launch: str, output: Output) -> None:
        try:
            (self.path / OUTPUT).mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {self.path / OUTPUT}: {error.strerror}") from error
        for name, text in (("stdout", output.stdout), ("stderr", output.stderr)):
            content = text.encode(errors="surrogateescape")
            write_atomically(self.path / OUTPUT / f"{launch}.{name}", content)


def create(path: Path, manifest: Manifest) -> Writer:
    """Make a new run directory and open it for writing."""
    return Writer.create(path, manifest)


def resume(path: Path) -> tuple[Run, Writer]:
    """Open an existing run for reading and for further records."""
    run = load(path)
    return run, Writer(path, run.manifest)


def load(path: Path | str) -> Run:
    """Read a run directory of this or an older schema version.

    Raises
    ------
    StoreError
        The directory is not a run, is of a newer version, or a record other than the last is damaged.
    """
    path = Path(path)
    manifest, records = Writer.read(path)
    unknown = set(manifest.plan.workload.ops) - {operation.name for operation in manifest.operations}
    if unknown:
        raise StoreError(f"{path / MANIFEST} is damaged: it does not describe {', '.join(sorted(unknown))}")
    nodes: dict[str, NodeRecord] = {}
    results: list[LaunchResult] = []
    for record in records:
        if isinstance(record, NodeRecord):
            nodes[record.node] = record
        else:
            check_moment(record.launch.started_at, f"{path / RECORDS}: launch {record.launch.id!r}")
            results.append(record)
    return Run(
        path=path,
        manifest=manifest,
        nodes=list(nodes.values()),
        results=results,
        truncated_bytes=unfinished_bytes(path / RECORDS),
    )


def save_analysis(path: Path, analysis: Analysis) -> None:
    """Store what was derived from a run beside it."""
    write_atomically(path / ANALYSIS, msgspec.json.format(msgspec.json.encode(analysis), indent=1))


def is_name(name: str) -> bool:
    """Whether a run can be called so."""
    return _NAME.fullmatch(name) is not None and name != "latest"


def checked_name(name: str) -> str:
    """Return the name of a run.

    Raises
    ------
    UsageError
        It cannot be one.
    """
    if not is_name(name):
        raise UsageError(
            f"{printable(name, 80)!r} cannot be the name of a run: letters, digits, '.', '_' and '-', "
            "beginning with a letter or a digit, and not 'latest' (--runs chooses the directory)"
        )
    return name


def list_runs(root: Path, head: str = MANIFEST) -> list[Path]:
    """Return the run directories under `root`, the newest last.

    Parameters
    ----------
    head
        The file that makes a directory a run of one kind.
    """
    found = {child / head: child for child in _children(root) if has(child, head)}
    return [found[path] for path in sorted(found, key=written)]


def unreadable_runs(root: Path) -> dict[Path, str]:
    """Return the directories under `root` that may be runs and cannot be looked into, and why."""
    found = {}
    for child in _children(root):
        try:
            (child / MANIFEST).is_file()
        except OSError as error:
            found[child] = error.strerror or str(error)
    return found


def _children(root: Path) -> list[Path]:
    try:
        # What begins with a dot is not there yet, or not any more.
        return [child for child in root.iterdir() if not child.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"cannot read {root}: {error.strerror}") from error


def written(path: Path) -> float:
    """Return when a file was written; the beginning of time when that cannot be told (any more)."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def is_being_written(path: Path) -> bool:
    """Whether a process holds the run directory; one that was killed does not."""
    try:
        with (path / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
