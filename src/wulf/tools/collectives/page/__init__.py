"""What was found of collectives, as people read it. Pure."""

from wulf.tools.collectives.page.view import build

__all__ = ["build"]
