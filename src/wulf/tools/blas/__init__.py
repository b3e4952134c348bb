"""BLAS libraries held against each other."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="bench blas",
    summary="Find the fastest BLAS library by products of matrices (DGEMM), with intervals.",
    request="request:BlasRequest",
    work="work:compare",
    record="work:BlasComparison",
    page="page:build",
    exit_code="work:exit_code",
    is_long=True,
)
