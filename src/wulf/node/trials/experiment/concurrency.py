"""Whether pairs may be measured at the same time: only where that is proven not to move the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from wulf.base import disjoint_rounds
from wulf.base.records import Place

#: Comparisons of both ways, at least and at most.
FEWEST, MOST = 3, 6
#: Trials from which on a search gains by it: finding it out takes up to twelve of them.
WORTH = 60
#: Of the interval that must lie within the margin (two one-sided tests at 5 %: Schuirmann 1987), or outside.
CONFIDENCE = 0.90


def disturb(differences: Sequence[float], margin: float) -> bool | None:
    """Whether pairs disturb each other; None where it is not known yet.

    Parameters
    ----------
    differences
        Log cost at the same time − log cost in turn, of neighbours in time.
    margin
        Change that does not matter, as a share.
    """
    if len(differences) < FEWEST:
        return None
    values = np.asarray(differences)
    half = float(
        scipy.stats.t.ppf((1 + CONFIDENCE) / 2, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size)
    )
    low, high = float(values.mean()) - half, float(values.mean()) + half
    limit = math.log1p(margin)
    if -limit <= low and high <= limit:
        return False
    if low > limit or high < -limit or len(differences) >= MOST:
        return True
    return None


def groups(places: Sequence[Place]) -> list[list[Place]]:
    """Return the places in groups that have no node in common."""
    return [[places[index] for index in group] for group in disjoint_rounds.disjoint(places)]
