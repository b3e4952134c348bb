"""Switches and tiers from measurement: which nodes hang on one switch."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="audit fabric",
    summary="Infer which nodes share a switch, as a topology.conf for Slurm and a hostfile in that order.",
    request="request:FabricRequest",
    work="work:infer",
    record="record:InferredFabric",
    page="page:build",
    exit_code="record:exit_code",
    is_long=True,
)
