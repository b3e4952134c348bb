"""A comparison of two runs as people read it. Pure."""

from wulf.tools.compare.page.view import build

__all__ = ["build"]
