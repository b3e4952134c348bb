"""BLAS libraries held against each other."""

from wulf.base.tool import Tool

TOOL = Tool(
    verb="bench blas",
    summary="Say which BLAS library is fastest, by products of matrices (DGEMM), with its interval.",
    request="request:BlasRequest",
    work="work:compare",
    record="work:BlasComparison",
    page="page:build",
    exit_code="work:exit_code",
    is_long=True,
)
