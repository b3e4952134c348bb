"""What networks are worth, as people read it. Pure."""

from wulf.tools.worth.page.view import build

__all__ = ["build"]
