"""A trial as costs: logarithms of its metrics, turned so that lower is always better."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import UsageError
from wulf.base.records import Metric, Trial

Floats = NDArray[np.float64]


class Costs:
    """Turns trials into log costs: the objective first, then every metric in the plan's order.

    Raises
    ------
    UsageError
        When no metric has a weight: there is nothing to optimise.
    """

    def __init__(self, metrics: list[Metric]) -> None:
        self.metrics = metrics
        weights = np.array([metric.weight for metric in metrics], dtype=np.float64)
        if not weights.size or np.min(weights) < 0 or weights.sum() <= 0:
            raise UsageError("the objective needs a metric with a weight above 0, and none below")
        self._weights = weights / weights.sum()
        self._weighted = weights > 0

    def of(self, trial: Trial) -> Floats:
        """Log costs of a trial; see `of_values`."""
        return self.of_values(trial.values)

    def of_values(self, values: Mapping[str, float]) -> Floats:
        """Log costs of the metrics' values, shape (1 + metrics,); NaN where one is missing or not above zero.

        The objective is the weighted mean of the metrics' log costs, so that a ratio of objectives is the weighted
        geometric mean of the metrics' ratios. It is NaN when a metric with a weight is.
        """
        logs = np.array([_log_cost(metric, values.get(metric.name)) for metric in self.metrics])
        objective = float(self._weights[self._weighted] @ logs[self._weighted])
        return np.concatenate([[objective], logs])

    def patterns(self) -> dict[str, list[int]]:
        """Pattern → columns of its metrics in what `of` returns."""
        found: dict[str, list[int]] = {}
        for column, metric in enumerate(self.metrics, start=1):
            found.setdefault(metric.pattern, []).append(column)
        return found


def _log_cost(metric: Metric, value: float | None) -> float:
    if value is None or not math.isfinite(value) or value <= 0:
        return math.nan
    return math.log(value) if metric.better == "lower" else -math.log(value)
