"""The experiment: which setting is measured next, and what the results prove.  Pure."""

from wulf.experiment.search import Forecast, Search
from wulf.experiment.strategy import TrialRequest

__all__ = ["Forecast", "Search", "TrialRequest"]
