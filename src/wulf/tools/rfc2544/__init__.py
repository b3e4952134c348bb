"""RFC 2544 between two nodes: throughput without loss, loss by rate, bursts back to back, latency."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="bench rfc2544",
    summary="RFC 2544: the highest rate without loss, loss by rate, the longest burst, latency at that rate.",
    request="request:Rfc2544Request",
    work="work:measure",
    record="record:Rfc2544",
    page="page:build",
    is_long=True,
    exit_code="page:exit_code",
)
