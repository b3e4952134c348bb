"""Programs of users: what they do with MPI, and what settings bring them."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="program characterise",
    summary="Classify programs: what they do with MPI, and what they gain from settings.",
    request="request:CharacteriseRequest",
    work="work:characterise",
    record="work:Characters",
    page="page:build",
    schema="characters",
    exit_code="work:exit_code",
    is_long=True,
    changes_nodes=True,
)
