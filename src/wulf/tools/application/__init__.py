"""Programs of users: what they do with MPI, and what settings bring them."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="program characterise",
    summary="Say of which class programs are: what they do with MPI, and what settings bring them.",
    request="request:CharacteriseRequest",
    work="work:characterise",
    record="work:Characters",
    page="page:build",
    schema="characters",
    is_long=True,
    changes_nodes=True,
)
