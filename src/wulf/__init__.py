"""Measure what the interconnect of a cluster really does, judge the nodes, and find the settings that help.

>>> run = wulf.measure("cluster.toml", ops=["mpi_pingpong"], budget_s=120)
>>> pandas.DataFrame(run.columns("cells"))
>>> [finding.title for finding in wulf.audit("cluster.toml").findings]
>>> wulf.tune("cluster.toml", objective="latency").result.kept
>>> comparison = wulf.compare("runs/BEFORE", "runs/AFTER")
>>> wulf.predict("app.wtrace", on=wulf.calibrate("cluster.toml"))
>>> run = wulf.load("runs/NAME")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wulf.api import *  # noqa: F403  # its `__all__` is what there is

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when it is used: the program says "interrupted" from its first moment on, not after half a second.
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        api = import_module("wulf.api")
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'wulf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["__version__", *import_module("wulf.api").__all__]
