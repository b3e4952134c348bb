"""Where the time of ranks went, by a trace: computing, waiting for other ranks, and transfer."""

from __future__ import annotations

from pathlib import Path

from wulf.base.errors import TraceError
from wulf.base.text import count
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary
from wulf.node.replay import replaying
from wulf.stats.prediction.network import Link, Network, Piece
from wulf.tools.run.record import ScalingLoss

_NOTHING = (Piece(0, 0.0, 0.0),)
#: On which no message takes any time, and none waits for its receiver.
_FREE = Link(latency_ns=0.0, eager_bytes=1 << 62, send=_NOTHING, receive=_NOTHING, wire=_NOTHING)


def of(path: Path) -> ScalingLoss:
    """Return where the time of a traced program's ranks went.

    The program is replayed on a network on which messages take no time: what its ranks are idle for even there is for
    each other (uneven computing, dependencies), and the rest of their time in MPI is what messages take. That is how
    load balance and serialisation are told from transfer since Rosas, Giménez, Labarta: Scalability prediction for
    fundamental performance factors (Supercomputing Frontiers and Innovations 1, 2014).

    Raises
    ------
    TraceError
        The trace is not that of a whole program, or cannot be replayed soundly.
    """
    trace = read(path)
    found = summary(trace)
    unfinished = sum(rank.run_s is None or rank.lost > 0 for rank in found.ranks)
    if unfinished:
        raise TraceError(f"{path}: no whole trace of {unfinished} of {count(len(found.ranks), 'rank')}")
    run_s = max(rank.run_s or 0.0 for rank in found.ranks)
    (alone,) = replaying.replay(path, [Network(_FREE, None)], nodes=[]).results
    ranks = len(found.ranks)
    computing_s = sum(rank.compute_s for rank in found.ranks)
    files_s = sum(rank.files_s for rank in found.ranks)
    ideal_s = alone.time_ns * 1e-9
    return ScalingLoss(
        ranks=ranks,
        run_s=run_s,
        computing_s=computing_s,
        files_s=files_s,
        waiting_s=ranks * ideal_s - computing_s - files_s,
        transfer_s=ranks * (run_s - ideal_s),
    )
