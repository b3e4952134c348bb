"""How long a setting takes to have its effect after it was made, from the visits that followed.  Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Standard errors beyond which visits of a position are not like the later ones: there are many positions.
UNLIKE = 4.0
#: Rows (dwells × sizes) from which it can be told.
ENOUGH = 12


def deviations(medians: Sequence[float], dwell_sweeps: int) -> Floats:
    """Return by how much each visit differs from the later half of its dwell, in logarithms.

    Parameters
    ----------
    medians
        Of all visits of one size under one setting, in time order: whole dwells.

    Returns
    -------
    ndarray
        Shape (dwells, dwell_sweeps).
    """
    rows = np.log(np.asarray(medians, dtype=np.float64)).reshape(-1, dwell_sweeps)
    later = np.median(rows[:, dwell_sweeps // 2 :], axis=1)
    return np.asarray(rows - later[:, None])


def unsettled(rows: Floats, margin: float) -> int:
    """Return how many first visits of a dwell are not yet like the later ones, at most half of them.

    Parameters
    ----------
    rows
        As of `deviations`, of one setting. Shape (n, dwell_sweeps).
    margin
        A difference by this share does not matter.
    """
    count, sweeps = rows.shape
    if count < ENOUGH:
        return 0
    middle = np.mean(rows, axis=0)
    error = np.maximum(np.std(rows, axis=0, ddof=1) / math.sqrt(count), 1e-9)
    unlike = (np.abs(middle) > UNLIKE * error) & (np.abs(middle) > math.log1p(margin))
    first = np.flatnonzero(unlike[: sweeps // 2])
    return int(first[-1]) + 1 if first.size else 0
