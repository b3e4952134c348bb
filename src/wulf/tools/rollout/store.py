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

from wulf.base.store.files import RESULT, RunWriter, decode_optional
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

    called = "a roll-out"
    head_name = HEAD
    log_name = STEPS
    head = "rollout", RolloutManifest
    log = "rollout step", RolloutStep


def load_rollout(path: Path) -> RolloutRun:
    """Read a roll-out."""
    manifest, states = RolloutWriter.read(path)
    steps: dict[int, RolloutStep] = {step.number: step for step in states}
    result = decode_optional(path / RESULT, Rollout)
    return RolloutRun(path=path, manifest=manifest, steps=list(steps.values()), result=result)


def listed(run: RolloutRun) -> Listed:
    """Return what a list of runs says of a roll-out."""
    return Listed([f"roll-out of {knob}" for knob in run.manifest.plan.settings], 0, len(run.steps))
