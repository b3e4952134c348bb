"""The tuning loop: change, measure a complete cycle, keep or undo."""

from wulf.base.tool import RunKind

RUNS = RunKind(
    name="tuning",
    noun="a tuning run",
    head="tuning.json",
    load="wulf.base.store.tuning:load_tuning",
    listed="wulf.base.store.tuning:listed",
    report="wulf.tools.tune.report:REPORT",
)
