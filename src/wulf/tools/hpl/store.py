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

from wulf.base.store.files import RESULT, RunWriter, decode_optional, write_atomically
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

    called = "a run of HPL"
    head_name = HEAD
    log_name = LAUNCHES
    head = "hpl", HplManifest
    log = "hpl launch", HplLaunch

    def keep(self, name: str, text: str) -> None:
        """Store the input of the result, for who wants to run it without wulf."""
        write_atomically(self.path / name, text.encode())


def load_hpl(path: Path) -> HplRun:
    """Read a run of HPL."""
    manifest, launches = HplWriter.read(path)
    result = decode_optional(path / RESULT, HplResult)
    return HplRun(path=path, manifest=manifest, launches=launches, result=result)


def listed(run: HplRun) -> Listed:
    """Return what a list of runs says of one of HPL."""
    return Listed(["HPL"], 0, len(run.launches))
