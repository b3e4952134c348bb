"""What a network carries in the long run, and what it lets through at once.  Pure.

A link that is shaped (by a token bucket, as clouds and virtual networks do) lets a burst through faster than it
carries more than that. A message is then faster than its size at the rate of the long run, which is how it is seen. Of
N bytes at once behind a rest

    T(N) = c + burst(N)            where the bucket holds them
    T(N) = c + (N − depth) · G     where it does not

so the slope between long trains is G whatever the depth, and what is missing of N · G is the depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

#: A message that takes less than this part of its size at the rate of the long run went as a burst.
FASTER = 0.8
#: … of messages of so many bytes at least, whose time is not all latency.
_LEAST_BYTES = 4096
#: Trains whose rate still falls by more than this have not emptied what lets bursts through.
STEADY = 1.15
#: So many of the longest trains say what the rate is.
_LONGEST = 3


@dataclass(frozen=True)
class Sustained:
    """The rate of the long run, and how far a link may be ahead of it."""

    #: [ns]
    per_byte_ns: float
    #: What passes as a burst; 0 where a link has one rate [B].
    depth_bytes: float
    #: Whether the rate of the longest trains no longer falls.
    is_steady: bool

    @property
    def is_shaped(self) -> bool:
        """Whether the link lets bursts through."""
        return self.depth_bytes > 0

    @property
    def depth_ns(self) -> float:
        """How far the link may be ahead of its rate [ns]."""
        return self.depth_bytes * self.per_byte_ns


def sustained(
    trains: Mapping[int, float],
    singles: Mapping[int, float],
    calls: Mapping[int, float],
    *,
    shaped: bool | None,
    held: float = 0.0,
) -> Sustained | None:
    """Return what trains say; None where there are too few of them, or they tell no rate.

    Parameters
    ----------
    trains
        Bytes at once, behind a rest → until all of them have come, without the way of an empty message [s].
    singles
        Size of one message → the same [s].
    calls
        Size → by how much longer both calls take, each alone, than of an empty one [s].
    shaped
        Whether the link lets bursts through; None where that is to be found.
    held
        Where the depth is between what is likely (0) and what may be (1).
    """
    totals = sorted(trains)[-_LONGEST:]
    if len(totals) < _LONGEST:
        return None
    slopes = np.diff([trains[total] for total in totals]) / np.diff(np.asarray(totals, dtype=float))
    if not np.all(slopes > 0):
        return None
    is_steady = bool(slopes[-1] <= STEADY * slopes[0])
    first = totals[0] if is_steady else totals[1]
    each = (trains[totals[-1]] - trains[first]) / (totals[-1] - first)
    missing = [total - trains[total] / each for total in totals if total >= first]
    found = passes_bursts(singles, each) if shaped is None else shaped
    likely, most = _depth_bytes(singles, calls, each, float(np.median(missing))) if found else (0.0, 0.0)
    depth = likely + held * (most - likely)
    return Sustained(per_byte_ns=each * 1e9, depth_bytes=depth, is_steady=is_steady)


def _depth_bytes(
    singles: Mapping[int, float], calls: Mapping[int, float], each_s: float, missing: float
) -> tuple[float, float]:
    """Return how far a link that lets bursts through may be ahead of its rate: what is likely, and what may be [B].

    Every message longer than the bucket is ahead by all of it, and the shortest one tells it best: an error of the rate
    counts with the size. Only where all went as bursts, trains tell it: by how much they are short of their bytes. A
    burst that takes no longer than its calls' CPU may have been held wholly, however little it is ahead.
    """
    ahead, held = [0.0], [0.0]
    for size in sorted(size for size, time in singles.items() if size >= _LEAST_BYTES and time > 0):
        ahead.append(size - singles[size] / each_s)
        if singles[size] >= FASTER * size * each_s:
            break
        if singles[size] <= calls.get(size, 0.0):
            held.append(float(size))
    else:
        ahead.append(missing)
    return max(ahead), max(*ahead, *held)


def passes_bursts(singles: Mapping[int, float], each_s: float) -> bool:
    """Whether some message is faster than its size at the rate of the long run."""
    return any(
        time < FASTER * size * each_s for size, time in singles.items() if size >= _LEAST_BYTES and time > 0
    )
