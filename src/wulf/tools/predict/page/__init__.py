"""Predictions as people read them. Pure."""

from wulf.tools.predict.page.view import build

__all__ = ["build"]
