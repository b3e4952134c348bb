"""The experiment: which setting is measured next, and what the results prove.  Pure."""

from wulf.node.trials.experiment.search import Forecast, Search
from wulf.node.trials.experiment.trial_requests import TrialRequest

__all__ = ["Forecast", "Search", "TrialRequest"]
