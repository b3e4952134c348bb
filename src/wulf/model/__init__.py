"""Models of a curve of time against size: Hockney's line, segments, and what follows from them."""

from wulf.model.curve import curve

__all__ = ["curve"]
