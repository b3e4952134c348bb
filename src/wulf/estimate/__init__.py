"""From samples to figures: estimates of cells, comparisons of runs, and what the reader must be told."""

from wulf.estimate.advise import advise
from wulf.estimate.by_reference import Measured, adjust, adjust_all
from wulf.estimate.cells import (
    Median,
    cells,
    launches_needed,
    launches_untested,
    means,
    medians,
    sample_mean,
    sample_quantiles,
)
from wulf.estimate.compare import compare
from wulf.estimate.host_noise import host_noise
from wulf.estimate.interleaved import compare_interleaved
from wulf.estimate.over_tcp import over_tcp
from wulf.estimate.overlaps import overlaps
from wulf.estimate.periods import periods, weekends
from wulf.estimate.resources import resources
from wulf.estimate.under_load import under_load
from wulf.estimate.whole import whole

__all__ = [
    "Measured",
    "Median",
    "adjust",
    "adjust_all",
    "advise",
    "cells",
    "compare",
    "compare_interleaved",
    "host_noise",
    "launches_needed",
    "launches_untested",
    "means",
    "medians",
    "over_tcp",
    "overlaps",
    "periods",
    "resources",
    "sample_mean",
    "sample_quantiles",
    "under_load",
    "weekends",
    "whole",
]
