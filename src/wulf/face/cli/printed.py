"""Options that name numbers which a command prints."""

from __future__ import annotations

from typing import Annotated

import typer

MatchOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REGEX",
        help="Also a number in its output: a regular expression with one group around it; the last match counts. "
        "May be repeated.",
    ),
]
AsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="NAME",
        help="What the number of a --match is, in their order: 'performance [GFLOPS] higher' is its name, unit, "
        "and that more is better. Default: 'result', lower is better.",
    ),
]
