"""The experiment: which setting is measured next, and what the results prove.  Pure."""

from wulf.tune.search import Forecast, Search
from wulf.tune.strategy import Request

__all__ = ["Forecast", "Request", "Search"]
