"""Paths as people read them: the answer, the fabric with what is bad in it, and how to see that again."""

from wulf.tools.paths.page.view import build

__all__ = ["build"]
