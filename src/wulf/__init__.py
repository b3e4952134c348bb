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
    from wulf.face.api import (
        Audit,
        ClusterConfig,
        HplRun,
        Run,
        TuningRun,
        WulfError,
        analyze,
        app,
        app_against,
        audit,
        calibrate,
        characterise,
        columns,
        compare,
        compare_blas,
        compare_settings,
        diagnose,
        emulate,
        hpl,
        import_run,
        load,
        measure,
        mend,
        node_facts,
        predict,
        render,
        run_hpcc,
        scaling,
        trace,
        tune,
        tune_collectives,
        watch,
        worth,
    )

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "ClusterConfig",
    "HplRun",
    "Run",
    "TuningRun",
    "WulfError",
    "__version__",
    "analyze",
    "app",
    "app_against",
    "audit",
    "calibrate",
    "characterise",
    "columns",
    "compare",
    "compare_blas",
    "compare_settings",
    "diagnose",
    "emulate",
    "hpl",
    "import_run",
    "load",
    "measure",
    "mend",
    "node_facts",
    "predict",
    "render",
    "run_hpcc",
    "scaling",
    "trace",
    "tune",
    "tune_collectives",
    "watch",
    "worth",
]


def __getattr__(name: str) -> Any:
    # Imported when it is used: the program says "interrupted" from its first moment on, not after half a second. Python
    # asks here for modules of the package, too, before it looks for their files: so the list is here, not read there.
    if name in __all__ or name in _of_tools():
        return getattr(import_module("wulf.face.api"), name)
    raise AttributeError(f"module 'wulf' has no attribute {name!r}")


def _of_tools() -> set[str]:
    """Return the names of functions that tools declare."""
    from wulf.base.tool import tools  # noqa: PLC0415 - as above

    return {verb.split()[-1] for verb in tools()}
