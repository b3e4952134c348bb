"""Progress of long work for programs: what a person would see on the terminal, to the logger ``wulf``."""

from __future__ import annotations

import logging
from pathlib import Path

from wulf.base.records import Plan, TuneManifest
from wulf.node.measuring import loop as measuring
from wulf.node.probe import budget
from wulf.node.trials import loop as tuning
from wulf.tools.hpl.record import HplLaunch, HplManifest

_LOG = logging.getLogger("wulf")


class _Stages:
    """What all long work says."""

    def stage(self, text: str) -> None:
        """Log a new part of the work."""
        _LOG.info("%s", text)

    def note(self, text: str) -> None:
        """Log what a person is told."""
        _LOG.warning("%s", text)

    def interrupted(self, path: Path) -> None:
        """Log where the results so far are."""
        _LOG.warning("interrupted; what was measured is kept in %s", path)


class LoggedHpl(_Stages):
    """Watches runs of HPL."""

    def begun(self, path: Path, manifest: HplManifest) -> None:
        """Log a new run."""
        _LOG.info("%s: at most %.0f s", path, manifest.plan.time_s)

    def launched(self, launch: HplLaunch, spent_s: float, left_s: float) -> None:  # noqa: ARG002 - the protocol's
        """Log a finished launch."""
        if launch.status == "failed":
            _LOG.warning("a launch failed: %s", launch.reason)
        _LOG.debug("a launch, %s: about %.0f s left", launch.phase, left_s)


class Logged(_Stages):
    """Watches measured runs and tuning runs; stages and what went wrong are `logging.INFO` and above."""

    def fits(self, plan: Plan, fit: budget.Fit, spent_s: float) -> None:
        """Log what does not fit into the budget."""
        if fit.left_out:
            _LOG.warning(
                "%d of %d operations and pairs do not fit into %.0f s",
                len(fit.left_out),
                len(fit.left_out) + len(fit.streams),
                plan.budget_s - spent_s,
            )

    def paused(self, until_next_s: float, spent_s: float, left_s: float) -> None:
        """Log nothing: that it waits was a stage."""

    def launched(self, state: measuring.State) -> None:
        """Log a finished launch."""
        launch = state.last.launch
        if launch.status == "failed":
            _LOG.warning("launch %d failed: %s", launch.id, launch.error)
        _LOG.debug("launch %d: %s %s", launch.id, launch.op, "–".join(launch.place))

    def begun(self, path: Path, manifest: TuneManifest) -> None:
        """Log a new search."""
        _LOG.info("%s: %d candidates", path, len(manifest.plan.candidates))

    def tried(self, state: tuning.State) -> None:
        """Log a trial."""
        if state.last.status == "failed":
            _LOG.warning("trial %d failed: %s", state.last.index, state.last.error)
        _LOG.debug("trial %d: %s", state.last.index, state.last.setting or "original")
