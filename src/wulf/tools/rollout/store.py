"""Roll-outs.

::

    RUN/rollout.json     what is rolled out, by which rules, how far; replaced atomically
    RUN/steps.jsonl      one JSON line per state of a step, appended and flushed to disk: the last one of a step counts
    RUN/result.json      what became of every node
    RUN/rollout.html     the same as a page
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from wulf.base.errors import StoreError
from wulf.base.store.files import RESULT, RunWriter, decode_file, has, read_head, read_records
from wulf.base.tool import Listed
from wulf.tools.rollout.record import Rollout, RolloutManifest, RolloutStep

HEAD = "rollout.json"
STEPS = "steps.jsonl"
PAGE = "rollout.html"


class RolloutRun(msgspec.Struct, frozen=True, kw_only=True):
    """A roll-out as it was read."""

    path: Path
    manifest: RolloutManifest
    #: The last state of every step, in order.
    steps: list[RolloutStep]
    #: None before there is one.
    result: Rollout | None


class RolloutWriter(RunWriter[RolloutManifest]):
    """The one writer of a roll-out."""

    head_name = HEAD
    log_name = STEPS


def resume_rollout(path: Path) -> tuple[RolloutRun, RolloutWriter]:
    """Open an existing roll-out for reading and for further steps."""
    run = load_rollout(path)
    return run, RolloutWriter(path, run.manifest)


def load_rollout(path: Path) -> RolloutRun:
    """Read a roll-out.

    Raises
    ------
    StoreError
        It is none, of a newer version, or damaged; names the file.
    """
    if not has(path, HEAD):
        raise StoreError(f"{path} is not a roll-out: it has no {HEAD}")
    manifest, version = read_head(path / HEAD, "rollout", RolloutManifest)
    steps: dict[int, RolloutStep] = {
        step.number: step for step in read_records(path / STEPS, "rollout step", RolloutStep, version)
    }
    result = decode_file(path / RESULT, Rollout) if (path / RESULT).exists() else None
    return RolloutRun(path=path, manifest=manifest, steps=list(steps.values()), result=result)


def listed(run: RolloutRun) -> Listed:
    """Return what a list of runs says of a roll-out."""
    return Listed([f"roll-out of {knob}" for knob in run.manifest.plan.settings], 0, len(run.steps))
