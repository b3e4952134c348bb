"""Whether anything of a trace can depend on what is shared, or on who comes first.  Pure.

Messages in their recorded order, each rank with an interface of its own, are then all there is to know. Else a replay
event by event says how much it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from wulf.base.text import count
from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.messages import members, sent
from wulf.base.trace.reader import Stream, Trace

#: Calls that take whatever is there first.
_FIRST_COME = (Kind.WAIT_SOME, Kind.TEST)


def reasons(trace: Trace, nodes: Sequence[int]) -> list[str]:
    """Return why order or sharing may matter, in words; nothing where neither can.

    Parameters
    ----------
    nodes
        On which node each rank is.

    Raises
    ------
    TraceError
        A stream is damaged.
    """
    places = np.asarray(nodes)
    senders: dict[int, set[int]] = {}
    outward: dict[int, set[int]] = {}
    first_come = widest = 0
    for stream in trace.streams:
        starts = stream.starts()
        records = stream.slots[starts]
        own = int(places[stream.rank])
        for node, ranks in _reached(stream, starts, records, places):
            if node != own:
                senders.setdefault(node, set()).add(own)
                outward.setdefault(own, set()).add(stream.rank)
                for rank in ranks:
                    outward.setdefault(node, set()).add(rank)
        together = _together(stream, starts, records, places)
        if together > 1:
            widest = max(widest, together)
            outward.setdefault(own, set()).add(stream.rank)
        first_come += int(np.count_nonzero(_takes_the_first(records)))
    return list(_in_words(senders, outward, first_come, widest))


def _reached(
    stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void], places: NDArray[np.int_]
) -> Iterator[tuple[int, list[int]]]:
    """Yield nodes that a rank sends to, with its receivers there."""
    known = members(stream, starts, records)
    peers = [messages.peers for messages in sent(records, known)]
    receivers = np.unique(np.concatenate(peers)) if peers else np.zeros(0, dtype=np.int64)
    for node in np.unique(places[receivers]).tolist():
        yield node, receivers[places[receivers] == node].tolist()


def _together(
    stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void], places: NDArray[np.int_]
) -> int:
    """Return of how many nodes the largest collective is that a rank takes part in."""
    kinds = records["kind"]
    whole = records[(kinds >= Kind.BARRIER) & (kinds <= Kind.MAKE_COMMUNICATOR)]
    known = members(stream, starts, records)
    comms = np.unique(whole["comm"]).tolist()
    return max((len(np.unique(places[known[comm]])) for comm in comms), default=0)


def _takes_the_first(records: NDArray[np.void]) -> NDArray[np.bool_]:
    wild = (records["flags"] & Flag.WILD) != 0
    first: NDArray[np.bool_] = wild | np.isin(records["kind"], _FIRST_COME)
    return first


def _in_words(
    senders: dict[int, set[int]], outward: dict[int, set[int]], first_come: int, widest: int
) -> Iterator[str]:
    ranks = max((len(one) for one in outward.values()), default=0)
    if ranks > 1:
        yield f"up to {count(ranks, 'rank', verbs=('shares', 'share'))} the interface of a node"
    crowd = max((len(one) for one in senders.values()), default=0)
    if crowd > 1:
        yield f"up to {count(crowd, 'node', verbs=('sends', 'send'))} to one"
    if widest > 2:
        yield f"collectives are of {count(widest, 'node')}"
    if first_come:
        yield f"{count(first_come, 'call', verbs=('takes', 'take'))} whoever comes first"
