"""Many senders to one receiver: from how many on it breaks, how deep the buffer before the receiver is, what helps."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="diagnose incast",
    summary="Say from how many senders to one on transfers break down, and how deep the switch's buffer is.",
    request="request:IncastRequest",
    work="work:find",
    record="record:Incast",
    page="page:build",
    exit_code="record:exit_code",
    is_long=True,
)
