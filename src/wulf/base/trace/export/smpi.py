"""Time-independent traces that SimGrid's SMPI replays, with the platform that they run on.  Pure.

Written for SimGrid 3.32 (Debian 12). A host computes one operation in a nanosecond, so that compute times are
numbers of operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wulf.base.trace.export.operations import Operation
from wulf.base.trace.layout import NOBODY, Kind

#: MPI_BYTE, as SMPI's traces number types.
_BYTE = 6
#: Collectives that SMPI replays, with the numbers that it wants for them.
_WHOLE = {
    Kind.BARRIER: "barrier",
    Kind.BCAST: "bcast {bytes} {root} 6",
    Kind.REDUCE: "reduce {bytes} 0 {root} 6",
    Kind.ALLREDUCE: "allreduce {bytes} 0 6",
    Kind.GATHER: "gather {bytes} {bytes} {root} 6 6",
    Kind.SCATTER: "scatter {bytes} {bytes} {root} 6 6",
    Kind.ALLGATHER: "allgather {bytes} {bytes} 6 6",
    Kind.ALLTOALL: "alltoall {bytes} {bytes} 6 6",
}
#: Collectives of all ranks that stay collectives in what `operations.exported` gives with ``whole``.
REPLAYED = frozenset(_WHOLE)


def rank_lines(rank: int, done: Sequence[Operation]) -> Iterator[str]:
    """Yield the lines of one rank's trace."""
    yield f"{rank} init"
    begun: dict[int, Operation] = {}
    for one in done:
        if one.verb in ("begin_send", "begin_receive"):
            begun[one.number] = one
        yield f"{rank} {_action(rank, one, begun)}"
    yield f"{rank} finalize"


def _action(rank: int, one: Operation, begun: Mapping[int, Operation]) -> str:
    if one.verb == "compute":
        return f"compute {one.compute_ns}"
    if one.verb == "wait":
        what = begun[one.number]
        ends = (rank, what.peer) if what.verb == "begin_send" else (what.peer, rank)
        return f"wait {ends[0]} {ends[1]} {what.tag}"
    if one.verb == "collective":
        root = 0 if one.peer == NOBODY else one.peer
        return _WHOLE[one.kind].format(bytes=one.bytes, root=root)
    verb = {"send": "send", "receive": "recv", "begin_send": "isend", "begin_receive": "irecv"}[one.verb]
    return f"{verb} {one.peer} {one.tag} {one.bytes} {_BYTE}"


def platform(
    nodes: int,
    *,
    latency_s: float,
    bandwidth: float,
    eager_bytes: int,
    send: Sequence[tuple[int, float, float]],
    receive: Sequence[tuple[int, float, float]],
) -> str:
    """Return a platform: nodes with a link each to one switch.

    Parameters
    ----------
    latency_s
        Between two nodes [s].
    bandwidth
        Of a link, each way [B/s].
    eager_bytes
        Messages up to that size do not wait for their receiver [B].
    send, receive
        The CPU's time at either end: from how many bytes, base [s], of each byte [s/B].
    """
    settings = {
        "smpi/os": _pieces(send),
        "smpi/or": _pieces(receive),
        "smpi/async-small-thresh": str(eager_bytes + 1),
        "smpi/send-is-detached-thresh": str(eager_bytes + 1),
        # Its own default takes linear trees for all sizes.
        "smpi/coll-selector": "ompi",
        "smpi/lat-factor": "0:1",
        "smpi/bw-factor": "0:1",
        "network/latency-factor": "1",
        "network/bandwidth-factor": "1",
        "network/TCP-gamma": "1e12",
    }
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        "  <config>",
        *(f'    <prop id="{key}" value="{value}"/>' for key, value in settings.items()),
        "  </config>",
        f'  <cluster id="cluster" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf" bw="{bandwidth:.6g}Bps" '
        f'lat="{latency_s / 2:.6g}s" sharing_policy="SPLITDUPLEX"/>',
        "</platform>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _pieces(pieces: Sequence[tuple[int, float, float]]) -> str:
    return ";".join(f"{begin}:{max(base, 0):.6g}:{each:.6g}" for begin, base, each in pieces)
