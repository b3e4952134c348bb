"""Run HPL: find it, search its settings, run the largest problem that fits."""

from wulf.base.tool import RunKind

RUNS = RunKind(
    name="hpl",
    noun="a run of HPL",
    head="hpl.json",
    load="wulf.tools.hpl.store:load_hpl",
    listed="wulf.tools.hpl.store:listed",
    report="wulf.tools.hpl.report:REPORT",
)
