"""The experiment: which setting is measured next, and what the results prove.  Pure."""

from wulf.node.trials.experiment.asking import TrialRequest
from wulf.node.trials.experiment.search import Forecast, Search

__all__ = ["Forecast", "Search", "TrialRequest"]
