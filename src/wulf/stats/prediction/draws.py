"""Draw parameters from what is known of them.  Pure: the generator is an argument."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist
from typing import Protocol

from wulf.base.networks import Bounds

#: Half of a 95 % interval of a normal distribution, in standard deviations.
WIDTH = 1.959964
_NORMAL = NormalDist()


class Draw(Protocol):
    """One look at what may be: a standard normal number for each name, the same whenever it is asked for."""

    def of(self, name: str) -> float:
        """Return the number of a name."""


class Likely:
    """Every parameter has its likely value."""

    def of(self, name: str) -> float:  # noqa: ARG002 - of every name
        """Return zero."""
        return 0.0


class Sample:
    """Every parameter has a value that it may have.

    Parameters
    ----------
    seed, number
        The same give the same, whatever else is drawn, and in which order.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._seed, self._number = seed, number
        self._known: dict[str, float] = {}

    @property
    def names(self) -> list[str]:
        """What was asked for, in order."""
        return list(self._known)

    def of(self, name: str) -> float:
        """Return the number of a name."""
        if name not in self._known:
            words = f"{self._seed} {self._number} {name}".encode()
            number = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "big") >> 12
            # A generator for each name would take twenty times as long, of thousands of names.
            self._known[name] = _NORMAL.inv_cdf((number + 0.5) / 2**52)
        return self._known[name]


def at_end(number: float, likely: float) -> float:
    """Return at which end, 0 or 1, of a span a value is of which nothing but the span is known; `likely` of number 0.

    An interval of samples that are at either end holds the value wherever it is within the span; of samples spread over
    the span it would leave out one that is at an end (Imbens and Manski 2004, Econometrica 72, 1845-1857).
    """
    return likely if number == 0 else float(number > 0)


def bounded(bounds: Bounds, number: float) -> float:
    """Return a value whose 95 % interval are the bounds; on a scale of factors where all are above zero."""
    far = bounds.high if number >= 0 else bounds.low
    if bounds.low > 0:
        return bounds.value * math.exp(abs(number) / WIDTH * math.log(far / bounds.value))
    return max(0.0, bounds.value + abs(number) / WIDTH * (far - bounds.value))
