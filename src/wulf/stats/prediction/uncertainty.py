"""How sure a prediction is.  Pure.

Three things are not known exactly: what the program computes between its calls, the parameters of the networks, and
how well the model fits. The first is seen in the trace: blocks of it differ. The second have intervals. The third is
seen on the network as it is, where the model's time and the program's own differ by a gap: as much of it is taken to
another network as what is sampled has in common there, and the gap counts as much as the networks differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wulf.base.records import Estimate

#: Into so many blocks of calls a rank's compute times are divided.
BLOCKS = 20
CONFIDENCE = 0.95
#: How far the gap of the model may be another one on another network: standard deviation, as a part of it.
MISFIT = 0.5
#: Samples whose times differ by a smaller part tell nothing.
_SAME = 1e-9
_TAIL = 100 * (1 - CONFIDENCE) / 2


def compute_spread(ranks: Sequence[NDArray[np.void]]) -> float:
    """Return the relative standard deviation of what a rank computes in all.

    Parameters
    ----------
    ranks
        Of each rank its records, in order.

    What is computed before calls of one kind, partner and size is alike. What differs among these is summed up over
    blocks, so that slow changes count; blocks that follow each other differ by chance, while a trend is the program's.
    """
    spreads = [_spread(records) for records in ranks if len(records) >= 2 * BLOCKS]
    return float(np.sqrt(np.mean(np.square(spreads)))) if spreads else 0.0


def _spread(records: NDArray[np.void]) -> float:
    times = records["compute_ns"].astype(float)
    if not times.any():
        return 0.0
    alike = _alike(records["kind"], records["peer"], records["bytes"])
    means = np.bincount(alike, weights=times) / np.bincount(alike)
    edges = np.linspace(0, len(times), BLOCKS, endpoint=False, dtype=int)
    sums = np.add.reduceat(times - means[alike], edges)
    return float(np.sqrt(BLOCKS * np.mean(np.diff(sums) ** 2) / 2) / times.sum())


def _alike(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return of each record the number of its group: equal in all columns. Whole records sort much slower."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, numbers = np.unique(column, return_inverse=True)
        _, found = np.unique(found * (numbers.max() + 1) + numbers, return_inverse=True)
    return found


def estimate(value: float, samples: NDArray[np.float64], unit: str, method: str) -> Estimate:
    """Return a figure with the interval of its samples, which the figure is in.

    One more sample lies within it with this confidence, where there are 39 at least; fewer have no wider one than all.
    """
    low, high = (float(bound) for bound in np.percentile(samples, [_TAIL, 100 - _TAIL], method="weibull"))
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        confidence=CONFIDENCE,
        unit=unit,
        n=len(samples),
        method=method,
    )


def in_common(change: float, here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
    """Return how much of the model's misfit on one network is one on another, as parts of either time.

    Samples whose time is another one here have another one there, too, and by how much is told by a regression of their
    logarithms: parameters that explain the gap are those of the other network as well. It lies between a gap of as much
    time (of calls, which another bandwidth leaves alone) and one of as large a part, which is 1 (of bytes).

    Parameters
    ----------
    change
        The likely time there ÷ the likely time here.
    here, there
        Times of each sample on either network [s].
    """
    if not (change > 0 and len(here) > 1 and np.all(here > 0) and np.all(there > 0)):
        return 1.0
    logs = np.log(here) - np.log(here).mean()
    if np.max(np.abs(logs)) < _SAME:
        return 1.0
    slope = float(np.sum(logs * np.log(there)) / np.sum(logs**2))
    return float(np.clip(slope, min(1.0, 1 / change), max(1.0, 1 / change)))


def carried_over(fit: NDArray[np.float64], common: float) -> NDArray[np.float64]:
    """Return factors of the model's times on another network.

    Parameters
    ----------
    fit
        The program's own time ÷ the model's, on the network as it is.
    common
        As of `in_common`.
    """
    straight = 1 + common * (fit - 1)
    # A straight line would come to no time, and less; this one begins like it.
    return np.where((fit < 1) & (common > 1), np.power(fit, common), straight)


def misfit(ratio: float, changes: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors for sampled changes, by how well the model fits.

    Parameters
    ----------
    ratio
        The program's own time ÷ the model's, on the network as it is.
    changes
        Sampled times on another network ÷ those on the network as it is.
    numbers
        Standard normal ones, one for each sample.
    """
    # Where nothing is left of a time, it has changed wholly.
    positive = np.where(changes > 0, changes, 1.0)
    differs = np.where(changes > 0, 1 - np.minimum(positive, 1 / positive), 1.0)
    factors: NDArray[np.float64] = np.power(ratio, MISFIT * numbers * differs)
    return factors
