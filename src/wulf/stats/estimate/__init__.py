"""From samples to figures: estimates of cells, comparisons of runs, and what the reader must be told."""

from wulf.stats.estimate.advise import advise
from wulf.stats.estimate.cells import (
    Median,
    cells,
    launches_needed,
    launches_untested,
    means,
    medians,
    sample_mean,
    sample_quantiles,
)
from wulf.stats.estimate.comparison import compare
from wulf.stats.estimate.host_noise import host_noise
from wulf.stats.estimate.interleaved import compare_interleaved
from wulf.stats.estimate.load_latency import under_load
from wulf.stats.estimate.mpi_overhead import over_tcp
from wulf.stats.estimate.overall import whole
from wulf.stats.estimate.overlaps import overlaps
from wulf.stats.estimate.periods import periods, weekends
from wulf.stats.estimate.reference_adjustment import Measured, adjust, adjust_all
from wulf.stats.estimate.resources import resources

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
