"""Models of time against size."""

from wulf.model.curve import curve

__all__ = ["curve"]
