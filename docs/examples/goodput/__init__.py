"""What headers leave of a link's line rate: the example of a tool in CONTRIBUTING.md."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="bench goodput",
    summary="Say what the headers of Ethernet, IP and TCP leave of a link's line rate.",
    request="request:GoodputRequest",
    work="work:goodput",
    record="record:Goodput",
    page="page:build",
)
