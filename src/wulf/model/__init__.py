"""Models of time against size."""

from wulf.model.curve import curve
from wulf.model.loggp import loggp

__all__ = ["curve", "loggp"]
