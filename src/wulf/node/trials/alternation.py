"""Two ways measured in turn, in pairs of random order: what changes slowly falls out of a pair."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

Taken = TypeVar("Taken")


def in_turn(
    measure: Callable[[int, int], Taken], seed: int, announce: Callable[[int, float], None]
) -> Iterator[tuple[Taken, Taken]]:
    """Measure two ways in neighbouring launches, again and again, until the caller has enough.

    The order of every pair is drawn for itself: then the sign of a difference says nothing where nothing differs,
    however launches depend on each other and on time, and a signed-rank test is right (a fixed ABBA ties the orders of
    two pairs together, and is right only where a drift is all there is).

    Parameters
    ----------
    measure
        Called with the way (0 or 1) and the number of the pair.
    seed
        Of the orders.
    announce
        Called before every pair with its number, from 0, and the time since the first began [s].

    Yields
    ------
    tuple
        What the first way gave, and what the second.
    """
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    begin = time.monotonic()
    for number in count():
        announce(number, time.monotonic() - begin)
        if order.random() < 0.5:
            first = measure(0, number)
            yield first, measure(1, number)
        else:
            second = measure(1, number)
            yield measure(0, number), second
