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


def highest(passes: Callable[[int], bool], low: int, high: int, precision: float) -> Found:
    """Return the highest number that passes, known to a share: where one passes all below it are taken to.

    Doubled from the lowest on, then halved: what is far beyond the limit is hardly tried, as it disturbs others.
    """
    if not passes(low):
        return Found(None, is_limit=False)
    good, bad = low, None
    while bad is None:
        if good == high:
            return Found(good, is_limit=True)
        following = min(2 * good, high)
        if passes(following):
            good = following
        else:
            bad = following
    while bad - good > max(1, precision * good):
        middle = (good + bad) // 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    return Found(good, is_limit=False)
