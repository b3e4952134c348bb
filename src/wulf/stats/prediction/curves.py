"""The run time by latency and by bandwidth, and how much of either the program bears.  Pure.

Of latency the curve is exact. Of bandwidth it is a grid: between its places the time is taken to be a straight line of
the time that a byte takes, on which it never lies above (it is convex in that), so that what is borne is never said to
be more than it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wulf.base.records import BandwidthNeed, BandwidthPoint, CurveLine, Tolerance
from wulf.stats.prediction import network, replayed, scenario, uncertainty
from wulf.stats.prediction.network import Network

SLOWER = (0.01, 0.02, 0.05)
#: Bandwidths that are looked at ÷ that of the calibrated network: from 1/16 to 64 in half octaves.
FACTORS = tuple(float(2 ** (half / 2)) for half in range(-8, 13))


def with_bandwidths(base: Network) -> list[Network]:
    """Return the calibrated network with each of the bandwidths; nothing where bytes take no time on it."""
    if network.bandwidth(base.between) is None:
        return []
    return [scenario.with_bandwidth(base, factor) for factor in FACTORS]


def tolerances(
    curve: Sequence[CurveLine],
    beyond_s: float,
    base: Network,
    sampled: Sequence[Network],
    times: NDArray[np.float64],
) -> list[Tolerance]:
    """Return how much latency the program bears; nothing without a curve, which ends at `beyond_s`.

    Parameters
    ----------
    times
        Of the calibrated network, then of each sample of it [s].
    """
    if not curve:
        return []
    here = base.between.latency_ns * 1e-9
    found = []
    for slower in SLOWER:
        reached = replayed.tolerated(curve, here, slower)
        latency = None
        if reached is not None and reached <= beyond_s:
            slack = (reached - here) * times[1:] / times[0]
            samples = np.array([one.between.latency_ns * 1e-9 for one in sampled]) + slack
            latency = uncertainty.estimate(
                reached, samples, "s", "exact for the likely network; interval by its latency and run time"
            )
        found.append(Tolerance(slower=slower, latency=latency, beyond_s=beyond_s))
    return found


def by_bandwidth(base: Network, times: Sequence[float]) -> list[BandwidthPoint]:
    """Return the curve from the times on the networks that `with_bandwidths` gives [s]."""
    here = network.bandwidth(base.between)
    if here is None:
        return []
    return [
        BandwidthPoint(factor=factor, bandwidth=factor * here, time_s=time)
        for factor, time in zip(FACTORS, times, strict=True)
    ]


def needs(
    curve: Sequence[BandwidthPoint],
    base: Network,
    sampled: Sequence[Network],
    times: NDArray[np.float64],
) -> list[BandwidthNeed]:
    """Return down to which bandwidth the program bears it; nothing without a curve.

    Parameters
    ----------
    times
        As of `tolerances`.
    """
    here = network.bandwidth(base.between)
    if not curve or here is None:
        return []
    each = np.array([_per_byte(one) for one in sampled])
    found = []
    for slower in SLOWER:
        reached = _borne(curve, slower)
        bandwidth = None
        if reached is not None:
            slack = (1 / reached - 1) / here * times[1:] / times[0]
            bandwidth = uncertainty.estimate(
                here * reached,
                1 / np.maximum(each + slack, 1e-300),
                "B/s",
                "for the likely network, between places of a grid; interval by its bandwidth and run time",
            )
        found.append(BandwidthNeed(slower=slower, bandwidth=bandwidth, below=curve[0].bandwidth))
    return found


def _per_byte(one: Network) -> float:
    return one.between.wire[-1].per_byte_ns * 1e-9


def _borne(curve: Sequence[BandwidthPoint], slower: float) -> float | None:
    """Return the smallest factor at which the time has grown by no more than a part; None below all of them."""
    ascending = [one for one in reversed(curve) if one.factor <= 1]
    wanted = (1 + slower) * ascending[0].time_s
    for before, after in itertools.pairwise(ascending):
        if after.time_s > wanted:
            part = (wanted - before.time_s) / (after.time_s - before.time_s)
            return 1 / ((1 - part) / before.factor + part / after.factor)
    return None
