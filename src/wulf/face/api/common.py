"""What the functions share: how clusters and runs are named, and where new runs go."""

from __future__ import annotations

import logging
from pathlib import Path

from wulf.base.store import Run
from wulf.node.cluster.inventory import ClusterConfig

Cluster = ClusterConfig | Path | str | None
AnyRun = Run | Path | str

_LOG = logging.getLogger("wulf")


def stage(text: str) -> None:
    """Log a new part of the work."""
    _LOG.info("%s", text)


def note(text: str) -> None:
    """Log what a person should know."""
    _LOG.warning("%s", text)


class _Logged:
    """Logs what work without a run directory says (`wulf.base.tool.Progress`)."""

    def __call__(self, text: str) -> None:
        stage(text)

    def note(self, text: str) -> None:
        note(text)


LOGGED = _Logged()
