"""Runs of several numbers of ranks.

::

    RUN/scaling.json     command, numbers of ranks, how far; replaced atomically
    RUN/launches.jsonl   one JSON line per launch, appended and flushed to disk
    RUN/ranks-8.wtrace   the trace of one launch more, where traces are asked for
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from wulf.base.errors import StoreError
from wulf.base.store.files import RunWriter, has, read_head, read_records
from wulf.base.tool import Listed
from wulf.tools.run.record import ScalingLaunch, ScalingManifest

HEAD = "scaling.json"
LAUNCHES = "launches.jsonl"


class ScalingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of several numbers of ranks as it was read."""

    path: Path
    manifest: ScalingManifest
    launches: list[ScalingLaunch]


class ScalingWriter(RunWriter[ScalingManifest]):
    """The one writer of such a run."""

    head_name = HEAD
    log_name = LAUNCHES


def load_scaling(path: Path) -> ScalingRun:
    """Read a run of several numbers of ranks.

    Raises
    ------
    StoreError
        It is none, of a newer version, or damaged; names the file.
    """
    if not has(path, HEAD):
        raise StoreError(
            f"{path} is not a run of several numbers of ranks: it has no {HEAD} ('wulf runs list' shows the runs)"
        )
    manifest, version = read_head(path / HEAD, "scaling", ScalingManifest)
    launches = list(read_records(path / LAUNCHES, "scaling launch", ScalingLaunch, version))
    return ScalingRun(path=path, manifest=manifest, launches=launches)


def listed(run: ScalingRun) -> Listed:
    """Return what a list of runs says of one."""
    return Listed([run.manifest.plan.command], 0, len(run.launches))
