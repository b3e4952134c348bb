"""The records of a rank as columns, and what their kinds are for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import TraceError
from wulf.base.trace.layout import MOST_NS, Kind
from wulf.base.trace.reader import Stream

KINDS = 256
#: What time in MPI is for; the number of a part is its place.
PARTS = ("messages", "waiting", "collectives", "other")


def _parts() -> NDArray[np.intp]:
    found = np.full(KINDS, PARTS.index("other"), dtype=np.intp)
    found[Kind.SEND : Kind.IMRECV + 1] = PARTS.index("messages")
    found[Kind.FREE] = PARTS.index("other")
    found[Kind.WAIT : Kind.TEST + 1] = PARTS.index("waiting")
    found[Kind.BARRIER : Kind.MAKE_COMMUNICATOR + 1] = PARTS.index("collectives")
    return found


#: Part by kind.
PART_OF = _parts()


def times(
    stream: Stream, starts: NDArray[np.intp], records: NDArray[np.void]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return computing and call of all records [ns], what 32 bits do not hold with the record that it belongs to.

    Raises
    ------
    TraceError
        A time is longer than any.
    """
    compute_ns = records["compute_ns"].astype(np.int64)
    call_ns = records["call_ns"].astype(np.int64)
    for place in np.flatnonzero(records["kind"] == Kind.TIME).tolist():
        if place + 1 < len(records):
            long_ns = (
                int(records["bytes"][place]),
                int.from_bytes(stream.payload(int(starts[place])), "little"),
            )
            if max(long_ns) > MOST_NS:
                raise TraceError(f"{stream.origin}: damaged: {max(long_ns)} ns between two calls, or in one")
            compute_ns[place + 1], call_ns[place + 1] = long_ns
    whole_ns = float(compute_ns.sum(dtype=float) + call_ns.sum(dtype=float))
    if whole_ns > MOST_NS:
        raise TraceError(f"{stream.origin}: damaged: its times add up to {whole_ns * 1e-9:.3g} s")
    return compute_ns, call_ns
