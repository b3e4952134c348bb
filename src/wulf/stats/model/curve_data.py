"""The launches of a curve as rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wulf.base.records import CellEstimate

Floats = NDArray[np.float64]

#: A launch that knows fewer of the sizes than this says too little about the whole curve.
MIN_SIZES_KNOWN = 0.5


@dataclass(frozen=True)
class Curve:
    """Time against size: the cells' figures, and the same of every launch that covers the sizes."""

    #: Shape (sizes,), ascending [B].
    sizes: Floats
    #: Shape (sizes,): medians over launches [s].
    times: Floats
    #: Shape (launches, sizes): launch medians [s]; sizes that a launch did not visit are filled in.
    launches: Floats


def of_cells(cells: Sequence[CellEstimate]) -> Curve:
    """Make the matrix of one operation, pair and setting.

    An adaptive ladder adds sizes while it goes, so early launches lack some.  A gap is filled with the cell's
    median times the launch's own median deviation from the cells; launches that lack half of the sizes are left out.
    """
    known = sorted((cell for cell in cells if cell.time.value > 0), key=lambda cell: cell.cell.size_bytes)
    sizes = np.array([cell.cell.size_bytes for cell in known], dtype=float)
    times = np.array([cell.time.value for cell in known], dtype=float)
    # One point per launch and cell; contaminated launches are left out where the cell has left them out.
    names = sorted({(point.index, point.launch) for cell in known for point in cell.launches})
    row = {name: number for number, (_, name) in enumerate(names)}
    matrix = np.full((len(names), len(known)), np.nan)
    for column, cell in enumerate(known):
        usable = [point for point in cell.launches if point.median_s > 0]
        clean = [point for point in usable if not point.contaminated]
        for point in clean if len(clean) == cell.time.n else usable:
            matrix[row[point.launch], column] = point.median_s
    return Curve(sizes, times, _filled(matrix, times))


def _filled(matrix: Floats, times: Floats) -> Floats:
    present = np.isfinite(matrix)
    rows = present.mean(axis=1) > MIN_SIZES_KNOWN if matrix.size else np.zeros(len(matrix), dtype=bool)
    matrix, present = matrix[rows], present[rows]
    if not len(matrix):
        return matrix
    deviation = np.nanmedian(matrix / times, axis=1, keepdims=True)
    return np.where(present, matrix, times * deviation)
