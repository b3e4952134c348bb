"""What no message of a program carries, from a calibration: making communicators, and connecting.  Pure.

Two ranks duplicate and free a communicator in M seconds. The replay has three agreements for that (``agreed_in_three``
of ``native/replay/collectives.cpp``), each of which is two messages that meet, E; the rest, M - 3 E, is what the
library does on each rank. By MPI_Comm_split it is more than by MPI_Comm_dup, and a trace does not say which was called.

Two ranks are connected when one first sends to the other, which takes some libraries thousands of messages' time, and
not the same in each launch. A calibration has one such time for each launch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from wulf.base.records import CellEstimate
from wulf.stats.prediction.draws import Draw, at_end
from wulf.stats.prediction.network import Link, meeting_ns

DUPLICATE, SPLIT, CONNECT = "mpi_comm_dup", "mpi_comm_split", "mpi_connect"
#: How the replay has it that ranks agree on a communicator: so many times, on so many bytes.
AGREEMENTS, AGREED_BYTES = 3, 8
_NORMAL = NormalDist()


def making_ns(drawn: Mapping[str, Mapping[int, float]], link: Link, number: float) -> float:
    """Return what making a communicator takes each rank beside its messages [ns]; 0 where that was not measured.

    Parameters
    ----------
    drawn
        Times of operations by size [s].
    link
        Of the messages by which ranks agree.
    number
        A standard normal number: where it is between both ways to make one.
    """
    times = sorted(time for kind in (DUPLICATE, SPLIT) for time in drawn.get(kind, {}).values())
    if not times:
        return 0.0
    whole = 1e9 * (times[0] + at_end(number, 0.5) * (times[-1] - times[0]))
    return max(whole - AGREEMENTS * meeting_ns(link, AGREED_BYTES), 0.0)


def launches_of(cells: Sequence[CellEstimate]) -> tuple[float, ...]:
    """Return the time of each launch, ascending [s]."""
    return tuple(sorted(point.median_s for cell in cells for point in cell.launches))


def connecting_ns(launches: Sequence[float], answered_s: float, draw: Draw, *, one_launch: bool) -> float:
    """Return for how long a first message waits for its connection [ns]; 0 where that was not measured.

    Parameters
    ----------
    launches
        Time of the first message and its answer in each launch, ascending [s].
    answered_s
        What a later message and its answer take [s].
    one_launch
        Whether it is that of some launch; else it is that of a usual one, the median.
    """
    if not launches:
        return 0.0
    number = draw.of("connecting") / (1.0 if one_launch else math.sqrt(len(launches)))
    took_s = float(np.quantile(launches, _NORMAL.cdf(number)))
    return max(took_s - answered_s, 0.0) * 1e9
