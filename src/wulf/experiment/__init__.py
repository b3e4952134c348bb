"""The experiment: which setting is measured next, and what the results prove.  Pure."""

from wulf.experiment.asking import TrialRequest
from wulf.experiment.search import Forecast, Search

__all__ = ["Forecast", "Search", "TrialRequest"]
