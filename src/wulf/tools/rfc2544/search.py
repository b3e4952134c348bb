"""The searches of RFC 2544, by trials that say whether all has arrived.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Found(NamedTuple):
    """The highest number that passes."""

    #: None where not even the lowest does.
    value: int | None
    #: The highest that was allowed passes.
    is_limit: bool


def highest(
    passes: Callable[[int], bool], low: int, high: int, precision: float, near: int | None = None
) -> Found:
    """Return the highest number that passes, known to a share: where one passes all below it are taken to.

    In steps that double, from the lowest on or from where it is taken to be, then halved: what is far beyond the limit
    is hardly tried, as it disturbs others.

    Parameters
    ----------
    near
        About what it is; None where that is not known.
    """
    good, bad = near or low, None
    step = 1
    while not passes(good):
        if good == low:
            return Found(None, is_limit=False)
        bad, good, step = good, max(good - step, low), 2 * step
    while bad is None:
        if good == high:
            return Found(good, is_limit=True)
        following = min(good + step, high)
        if passes(following):
            good, step = following, 2 * step
        else:
            bad = following
    while bad - good > max(1, precision * good):
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return Found(good, is_limit=False)
