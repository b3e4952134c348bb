"""A command as an experiment, repeated until its figures are precise."""

from wulf.base.tool import RunKind

RUNS = RunKind(
    name="scaling",
    noun="a run of several numbers of ranks",
    head="scaling.json",
    load="wulf.tools.run.store:load_scaling",
    listed="wulf.tools.run.store:listed",
    report="wulf.tools.run.report:REPORT",
)
