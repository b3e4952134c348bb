"""Which candidates are measured again: at every size the better half of those that are left.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An algorithm with the parts in which it sends."""

    number: int
    name: str
    segment_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.name}, parts of {self.segment_bytes} B" if self.segment_bytes else self.name


#: Size [B] → candidate → time ÷ time of the default in the same block, one for each block.
Ratios = dict[int, dict[Candidate, list[float]]]


def halve(alive: Mapping[int, Sequence[Candidate]], ratios: Ratios) -> dict[int, list[Candidate]]:
    """Return the better half at each size, at least one; those without a ratio are out.

    Karnin, Koren and Somekh (2013), "Almost optimal exploration in multi-armed bandits", ICML 28(3), 1238–1246.
    """
    found = {}
    for size, candidates in alive.items():
        known = [one for one in candidates if ratios.get(size, {}).get(one)]
        found[size] = sorted(known, key=lambda one: (typical(ratios[size][one]), one))[
            : max(math.ceil(len(known) / 2), 1)
        ]
    return found


def settled(alive: Mapping[int, Sequence[Candidate]]) -> bool:
    """Whether every size has one left at most."""
    return all(len(candidates) <= 1 for candidates in alive.values())


def typical(ratios: Sequence[float]) -> float:
    """Return the median of the ratios of a candidate."""
    return statistics.median(ratios)
