"""A tuning run as people read it: a page, a terminal, and the table that papers print. Pure."""

from __future__ import annotations

from wulf.tools.tune.page.input import ChangeRow, TuningReport
from wulf.tools.tune.page.paper_table import PublishedRow, published_table
from wulf.tools.tune.page.paper_table import csv as published_csv
from wulf.tools.tune.page.paper_table import latex as published_latex
from wulf.tools.tune.page.paper_table import markdown as published_markdown
from wulf.tools.tune.page.view import build

__all__ = [
    "ChangeRow",
    "PublishedRow",
    "TuningReport",
    "build",
    "headline",
    "published_csv",
    "published_latex",
    "published_markdown",
    "published_table",
]


def headline(report: TuningReport) -> str:
    """Return the conclusion in one sentence."""
    return build(report).title
