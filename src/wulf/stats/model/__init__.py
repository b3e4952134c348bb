"""Models of time against size."""

from wulf.stats.model.curve import curve
from wulf.stats.model.loggp import loggp

__all__ = ["curve", "loggp"]
