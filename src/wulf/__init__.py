"""Measure what the interconnect of a cluster really does.

>>> run = wulf.load("runs/NAME")
>>> pandas.DataFrame(run.columns("cells"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wulf.api import Run, TuningRun, load

__version__ = "0.1.0"

__all__ = ["Run", "TuningRun", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # Imported when it is used: the program says "interrupted" from its first moment on, not after half a second.
    if name in ("Run", "TuningRun", "load"):
        return getattr(import_module("wulf.api"), name)
    raise AttributeError(f"module 'wulf' has no attribute {name!r}")
