"""Measure what the interconnect of a cluster really does.

>>> run = wulf.load("runs/NAME")
>>> pandas.DataFrame(run.columns("cells"))
"""

__version__ = "0.1.0"

from wulf.store import Run, load

__all__ = ["Run", "__version__", "load"]
