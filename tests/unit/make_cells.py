"""Cell estimates from plain numbers, for tests of models and comparisons."""

from __future__ import annotations

import numpy as np

from wulf.base.records import SCHEMA_VERSION, Analysis, Cell, CellEstimate, Estimate, LaunchPoint
from wulf.stats.core import intervals

PAIR = ("node01", "node02")


def estimate(found, unit):
    return Estimate(
        value=found.value,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        unit=unit,
        n=found.n,
        method=found.method,
    )


def cell(size, medians, op="mpi_pingpong", pair=PAIR, contaminated=()):
    found = intervals.median(medians)
    time = estimate(found, "s")
    bandwidth = None
    if size:
        bandwidth = Estimate(
            value=size / time.value,
            low=None,
            high=None,
            confidence=0.95,
            unit="B/s",
            n=found.n,
            method="test",
        )
    points = [
        LaunchPoint(
            launch=f"{index:05d}",
            index=index,
            median_s=float(median),
            quantiles_s={},
            modes=1,
            contaminated=index in contaminated,
        )
        for index, median in enumerate(medians)
    ]
    return CellEstimate(
        cell=Cell(op=op, size_bytes=size, place=pair),
        time=time,
        bandwidth=bandwidth,
        quantiles_s={},
        launches=points,
        iterations=100,
        lost=0,
        corrupt=0,
        modes_between=1,
        target=0.02,
        reached=True,
    )


def curve(sizes, times, launches=8, spread=0.005, seed=1, op="mpi_pingpong"):
    """Cells of a curve whose launches scatter by `spread`, together (half) and apart (half)."""
    rng = np.random.default_rng(seed)
    common = np.exp(spread * rng.standard_normal(launches))
    return [
        cell(size, time * common * np.exp(spread / 2 * rng.standard_normal(launches)), op)
        for size, time in zip(sizes, times, strict=True)
    ]


def analysis(cells, name="run"):
    return Analysis(
        schema_version=SCHEMA_VERSION,
        run_id=name,
        cells=cells,
        models=[],
        warnings=[],
        launches_ok=8,
        launches_failed=0,
        launches_contaminated=0,
    )
