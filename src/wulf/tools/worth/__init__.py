"""What other networks are worth to a mix of jobs: predictions, prices, and what follows from both."""

from types import MappingProxyType

from wulf.base.tool import Tool

TOOL = Tool(
    verb="program worth",
    summary="Work out what other networks are worth: node-hours saved a year, against ports and power.",
    request="request:WorthRequest",
    work="work:value",
    record="record:Worth",
    page="page:build",
    templates=MappingProxyType({"jobs": "money:JOBS", "prices": "money:PRICES"}),
)
