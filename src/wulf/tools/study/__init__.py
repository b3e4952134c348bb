"""Studies: what a file says is varied and measured, as one table with intervals."""

from wulf.base.tool import RunKind, Tool

TOOL = Tool(
    verb="bench study",
    summary="Run a study: factors, metrics and a design from a file, as one table with intervals.",
    request="request:StudyRequest",
    work="wulf.compose.study_with_hpl:study",
    record="record:Study",
    page="page:build",
    schema="study",
    exit_code="page:exit_code",
    is_long=True,
    changes_nodes=True,
)
RUNS = RunKind(
    name="study",
    noun="a study",
    head="study.json",
    load="wulf.tools.study.store:load_study",
    listed="wulf.tools.study.store:listed",
    report="wulf.tools.study.report:REPORT",
)
