"""What takes several tools: the whole procedure, any run in any form, a prediction held against the truth."""

from wulf.base.tool import RunKind

RUNS = RunKind(
    name="measurement",
    noun="a measured run",
    head="manifest.json",
    load="wulf.base.store:load",
    listed="wulf.compose.rendering:listed",
    report="wulf.compose.rendering:MEASURED",
)
