"""A measured run as people read it: a page, data, tables for a paper.  Pure."""

from wulf.tools.measure.page.view import build

__all__ = ["build"]
