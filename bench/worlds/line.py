"""What a world is, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import scipy

CONFIDENCE = 0.95


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How often something happened."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """Hits ÷ all; 0 of none."""
        return self.hits / self.of if self.of else 0.0


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    #: Of the list of what was found broken.
    item: str
    name: str
    #: What is counted.
    says: str
    #: The share may be so high at most, or has to be so high at least.
    at_most: float | None = None
    at_least: float | None = None
    #: How often the world is drawn.
    times: int
    #: Seed and times → count.
    run: Callable[[Sequence[int], int], Count]

    @property
    def claim(self) -> str:
        """The claim in words."""
        return f"<= {self.at_most:.1%}" if self.at_most is not None else f">= {self.at_least:.1%}"

    def held(self, found: Count) -> str:
        """Say whether the claim holds, with `?` where the bounds reach across it; what was never counted does not."""
        low, high = bounds(found)
        if not found.of:
            return "no"
        if self.at_most is not None:
            holds, certain = found.share <= self.at_most, high <= self.at_most or low > self.at_most
        else:
            assert self.at_least is not None, "a world claims something"
            holds, certain = found.share >= self.at_least, low >= self.at_least or high < self.at_least
        return ("yes" if holds else "no") + ("" if certain else " ?")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a world."""

    world: str
    found: Count
    cpu_s: float


def bounds(found: Count) -> tuple[float, float]:
    """Return the bounds of Clopper and Pearson of a share."""
    if not found.of:
        return 0.0, 1.0
    result = scipy.stats.binomtest(found.hits, found.of).proportion_ci(CONFIDENCE, method="exact")
    return float(result.low), float(result.high)
