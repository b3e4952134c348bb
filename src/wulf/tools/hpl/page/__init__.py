"""A run of HPL as people read it. Pure."""

from wulf.tools.hpl.page.view import build

__all__ = ["build"]
