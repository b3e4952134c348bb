"""How much a buffer holds, by the bursts that it takes whole and by what leaves it meanwhile.  Pure.

RFC 9004, section 5.4: while a burst arrives, frames leave at the rate without loss. The longest burst is therefore
longer than the buffer is deep, and what has left is taken off. Where the RFC has the highest rate of the sender's
interface, the rate at which bursts were sent stands here: a node may be slower than its interface.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from wulf.stats.core import intervals
from wulf.stats.estimate.cells import as_estimate
from wulf.tools.rfc2544.record import Buffer

#: What a frame takes on the wire beside its bytes: preamble and gap (IEEE 802.3) [B].
WIRE = 8 + 12


class Burst(NamedTuple):
    """The longest burst that arrived whole, and how fast its frames came."""

    frames: int
    arrival_per_s: float


def line_rate_per_s(frame_bytes: int, bits_per_s: float) -> float:
    """Return how many frames a second an interface of a speed sends at most."""
    return bits_per_s / 8 / (frame_bytes + WIRE)


def corrected(bursts: Sequence[Burst], leaves_per_s: float, precision: float) -> Buffer | None:
    """Return what a buffer holds; None where bursts come no faster than frames leave: they fill nothing.

    Parameters
    ----------
    bursts
        One of each search, at least one.
    leaves_per_s
        The rate without loss [frames/s].
    precision
        To which that rate is known, as a share: it may be higher.

    Notes
    -----
    Frames are whole: a buffer may hold up to one more than what is left of a burst. By that, and by what leaves at a
    rate that is higher by its precision, the interval of the repetitions is wider.
    """
    least = leaves_per_s * (1 + precision)
    if not all(least < one.arrival_per_s < math.inf for one in bursts):
        return None
    shares = [leaves_per_s / one.arrival_per_s for one in bursts]
    held = [one.frames * (1 - share) for one, share in zip(bursts, shares, strict=True)]
    arrival = statistics.median(one.arrival_per_s for one in bursts)
    less = precision * statistics.median(
        one.frames * share for one, share in zip(bursts, shares, strict=True)
    )
    times = [frames / one.arrival_per_s for frames, one in zip(held, bursts, strict=True)]
    return Buffer(
        frames=as_estimate(_wider(intervals.median(held), less, 1.0), "frames"),
        time=as_estimate(_wider(intervals.median(times), less / arrival, 1.0 / arrival), "s"),
        arrival_per_s=arrival,
    )


def _wider(found: intervals.Interval, below: float, above: float) -> intervals.Interval:
    if found.low is None or found.high is None:
        return found
    method = f"{found.method}, wider by a frame and by the precision of the rate"
    return replace(found, low=found.low - below, high=found.high + above, method=method)
