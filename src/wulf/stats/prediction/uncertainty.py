"""How sure a prediction is.  Pure.

Three things are not known exactly: what the program computes between its calls, the parameters of the networks, and
how well the model fits. The first is seen in the trace: blocks of it differ. The second have intervals. The third is
seen on the network as it is, where the model's time and the program's own differ by a gap: changes are applied to the
program's own time, and the gap counts as much as the networks differ.
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
