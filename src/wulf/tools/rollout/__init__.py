"""A change that helps on some nodes, brought to all of them in steps."""

from wulf.base.tool import RunKind, Tool

TOOL = Tool(
    verb="settings rollout",
    summary="Set what was found to help on a few nodes first, then in steps on all; put it back where it does harm.",
    request="request:RolloutRequest",
    work="work:rollout",
    record="record:Rollout",
    page="page:build",
    exit_code="work:exit_code",
    is_long=True,
    changes_nodes=True,
)
RUNS = RunKind(
    name="rollout",
    noun="a roll-out",
    head="rollout.json",
    load="wulf.tools.rollout.store:load_rollout",
    listed="wulf.tools.rollout.store:listed",
    report="wulf.tools.rollout.report:REPORT",
)
