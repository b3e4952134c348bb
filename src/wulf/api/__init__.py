"""What Python programs use: the verbs of the command line as functions. See docs/howto/python.md.

Options have the names of the command line, with ``_s`` and ``_bytes`` where they have a unit. A cluster is
a configuration, a cluster file, ``lab``, ``slurm`` or ``local``. What goes wrong is a `wulf.errors.WulfError`. Progress
goes to the logger ``wulf``.
"""

from wulf.api.measured import (
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
from wulf.api.nodes import audit, mend, node_facts, tune
from wulf.api.programs import (
    app,
    app_against,
    characterise,
    compare_blas,
    emulate,
    hpl,
    predict,
    run_hpcc,
    trace,
    tune_collectives,
    worth,
)
from wulf.cluster.inventory import ClusterConfig
from wulf.records import Audit
from wulf.store import Run
from wulf.store.columns import of_records as columns
from wulf.store.hpl import HplRun
from wulf.store.tuning import TuningRun

__all__ = [
    "Audit",
    "ClusterConfig",
    "HplRun",
    "Run",
    "TuningRun",
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
    "trace",
    "tune",
    "tune_collectives",
    "worth",
]
