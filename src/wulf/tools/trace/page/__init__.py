"""A trace as people read it. Pure."""

from wulf.tools.trace.page.view import build

__all__ = ["build"]
