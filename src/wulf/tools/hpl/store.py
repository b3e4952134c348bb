"""Runs of HPL.

::

    RUN/hpl.json         what is tried, with what, how far; replaced atomically
    RUN/launches.jsonl   one JSON line per launch, appended and flushed to disk
    RUN/result.json      the conclusion; can be made again from the two above
    RUN/HPL.dat          the input of the result
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from wulf.base.errors import StoreError
from wulf.base.store.files import (
    RESULT,
    RunWriter,
    decode_file,
    has,
    read_head,
    read_records,
    write_atomically,
)
from wulf.base.tool import Listed
from wulf.tools.hpl.record import HplLaunch, HplManifest, HplResult

HEAD = "hpl.json"
LAUNCHES = "launches.jsonl"


class HplRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of HPL as it was read."""

    path: Path
    manifest: HplManifest
    launches: list[HplLaunch]
    #: None before there is a conclusion.
    result: HplResult | None


class HplWriter(RunWriter[HplManifest]):
    """The one writer of a run of HPL."""

    head_name = HEAD
    log_name = LAUNCHES

    def keep(self, name: str, text: str) -> None:
        """Store the input of the result, for who wants to run it without wulf."""
        write_atomically(self.path / name, text.encode())


def resume_hpl(path: Path) -> tuple[HplRun, HplWriter]:
    """Open an existing run of HPL for reading and for further launches."""
    run = load_hpl(path)
    return run, HplWriter(path, run.manifest)


def load_hpl(path: Path) -> HplRun:
    """Read a run of HPL.

    Raises
    ------
    StoreError
        It is none, of a newer version, or damaged; names the file.
    """
    if not has(path, HEAD):
        raise StoreError(f"{path} is not a run of HPL: it has no {HEAD} ('wulf runs list' shows the runs)")
    manifest, version = read_head(path / HEAD, "hpl", HplManifest)
    return HplRun(
        path=path,
        manifest=manifest,
        launches=list(read_records(path / LAUNCHES, "hpl launch", HplLaunch, version)),
        result=decode_file(path / RESULT, HplResult) if (path / RESULT).exists() else None,
    )


def listed(run: HplRun) -> Listed:
    """Return what a list of runs says of one of HPL."""
    return Listed(["HPL"], 0, len(run.launches))
