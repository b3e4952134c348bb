"""Paths below pairs of nodes: which spine or member of a bond is slow or lossy, and a port that shows it."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="diagnose paths",
    summary="Find the path between nodes (spine, member of a bond) that is slow or lossy, and a port that shows it.",
    request="request:PathsRequest",
    work="work:find",
    record="record:Paths",
    page="page:build",
    exit_code="record:exit_code",
    is_long=True,
)
