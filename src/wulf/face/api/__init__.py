"""What Python programs use: the verbs of the command line as functions. See docs/howto/python.md.

Options have the names of the command line, with ``_s`` and ``_bytes`` where they have a unit. A cluster is
a configuration, a cluster file, ``lab``, ``slurm`` or ``local``. What goes wrong is a `wulf.WulfError`.
Progress goes to the logger ``wulf``.
"""

from typing import Any

from wulf.base.errors import WulfError
from wulf.base.records import Audit
from wulf.base.store import Run
from wulf.base.store.columns import of_records as columns
from wulf.base.store.tuning import TuningRun
from wulf.base.tool import tools
from wulf.face.api.declared import function
from wulf.face.api.measured import (
    analyze,
    calibrate,
    compare,
    compare_settings,
    diagnose,
    import_run,
    load,
    measure,
    render,
)
from wulf.face.api.nodes import audit, mend, node_facts, tune, watch
from wulf.face.api.programs import (
    app,
    app_against,
    characterise,
    compare_blas,
    emulate,
    hpl,
    predict,
    run_hpcc,
    scaling,
    trace,
    tune_collectives,
    worth,
)
from wulf.node.cluster.inventory import ClusterConfig
from wulf.tools.hpl.store import HplRun

__all__ = [
    "Audit",
    "ClusterConfig",
    "HplRun",
    "Run",
    "TuningRun",
    "WulfError",
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
    """Return the function of a tool that is not declared here."""
    tool = next((one for verb, one in tools().items() if verb.split()[-1] == name), None)
    if tool is None:
        raise AttributeError(f"module 'wulf' has no attribute {name!r}")
    return function(tool.part(tool.request), tool.part(tool.work))
