"""How far the measured times of one operation may be off, and how much of that all its sizes have in common.  Pure.

Two things make the median over pairs of nodes another one than it would be: launches differ, and pairs do. Either may
move all sizes alike (a launch that is slow as a whole, a pair that is farther apart), or each by itself. What a
prediction of a *change* is worth depends on the latter: what all sizes have in common falls out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records import CellEstimate
from wulf.stats.prediction.draws import WIDTH

#: Of a time that has no interval and was launched once, so much of it is taken for its 95 % interval, either way.
NO_INTERVAL = 0.1
#: Standard deviation of a median ÷ that of a mean, of so many normal values (by the moments of their order statistics),
#: and of very many.
_OF_FEW = {1: 1.0, 2: 1.0, 3: 1.160, 4: 1.092, 5: 1.198, 6: 1.135, 7: 1.214, 8: 1.160}
_OF_MANY = math.sqrt(math.pi / 2)
_Floats = NDArray[np.float64]


def errors(sizes: Mapping[int, Sequence[CellEstimate]]) -> tuple[list[float], list[float]]:
    """Return the standard deviations of the errors of the median over pairs [s], by size, ascending.

    Returns
    -------
    common, own
        Of what all sizes have in common, and of what each has by itself.
    """
    ordered = sorted(sizes)
    launched = np.array([_of_launches(sizes[size]) for size in ordered])
    paired, pairs_share = _of_pairs([sizes[size] for size in ordered])
    share = _common([_launches(sizes, place) for place in _places(sizes)])
    common = np.sqrt(share * launched**2 + pairs_share * paired**2)
    own = np.sqrt((1 - share) * launched**2 + (1 - pairs_share) * paired**2)
    return common.tolist(), own.tolist()


def _of_launches(cells: Sequence[CellEstimate]) -> float:
    return math.sqrt(sum(deviation(one) ** 2 for one in cells)) / len(cells) * of_median(len(cells))


def deviation(cell: CellEstimate) -> float:
    """Return the standard deviation of the error of a cell's time [s]: by its interval, else by its launches."""
    time = cell.time
    if time.low is not None and time.high is not None and math.isfinite(time.high - time.low):
        return (time.high - time.low) / 2 / WIDTH
    logs = logs_of(cell)
    if len(logs) < 2:
        return NO_INTERVAL * time.value / WIDTH
    spread = float(np.std(logs, ddof=1))
    return time.value * spread * of_median(len(logs)) / math.sqrt(len(logs)) * few(len(logs) - 1)


def of_median(count: int) -> float:
    """Return the standard deviation of the median of so many normal values ÷ that of their mean."""
    return _OF_FEW.get(count, _OF_MANY)


def few(freedom: float) -> float:
    """Return how much wider an interval is whose spread is known from so few values (Student's t)."""
    return float(scipy.stats.t.ppf(0.975, freedom)) / WIDTH


def logs_of(cell: CellEstimate) -> list[float]:
    return [math.log(point.median_s) for point in cell.launches if point.median_s > 0]


def _of_pairs(groups: Sequence[Sequence[CellEstimate]]) -> tuple[_Floats, float]:
    """Return by how much pairs beside these would move the medians [s], and the share that sizes have in common.

    Of what pairs differ that is counted which their launches do not explain, pooled over all sizes.
    """
    fewest = min(len(cells) for cells in groups)
    values = np.array([float(np.median([one.time.value for one in cells])) for cells in groups])
    if fewest < 2:
        return np.zeros(len(groups)), 1.0
    spreads = np.array([np.var([one.time.value for one in cells], ddof=1) for cells in groups]) / values**2
    noise = np.array([np.mean([deviation(one) ** 2 for one in cells]) for cells in groups]) / values**2
    beyond = max(float(np.mean(spreads - noise)), 0.0)
    scale = math.sqrt(beyond / fewest) * of_median(fewest) * few(fewest - 1)
    same = {tuple(one.cell.place for one in cells) for cells in groups}
    matrix = np.log([[one.time.value for one in cells] for cells in groups]).T if len(same) == 1 else None
    return scale * values, _common([matrix] if matrix is not None else [])


def _places(sizes: Mapping[int, Sequence[CellEstimate]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(one.cell.place for cells in sizes.values() for one in cells))


def _launches(sizes: Mapping[int, Sequence[CellEstimate]], place: tuple[str, ...]) -> _Floats:
    """Return the logarithms of one pair (launches, sizes), of the launches that have all sizes."""
    columns = [
        {point.index: math.log(point.median_s) for point in one.launches if point.median_s > 0}
        for size in sorted(sizes)
        for one in sizes[size]
        if one.cell.place == place
    ]
    whole = sorted(set.intersection(*map(set, columns))) if columns else []
    return np.array([[column[index] for column in columns] for index in whole])


def _common(matrices: Sequence[_Floats]) -> float:
    """Return the mean correlation of columns over all matrices; all in common where there is nothing to tell it by."""
    together, alone = 0.0, 0.0
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 2:
            continue
        apart = matrix - matrix.mean(axis=0)
        scale = apart.std(axis=0)
        scored = apart[:, scale > 0] / scale[scale > 0]
        count = scored.shape[1]
        if count > 1:
            squares = float(np.sum(scored**2))
            sums = float(np.sum(scored.sum(axis=1) ** 2))
            together += (sums - squares) / (count - 1)
            alone += squares
    return float(np.clip(together / alone, 0.0, 1.0)) if alone else 1.0
