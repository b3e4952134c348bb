"""Words that advice about launches and about figures share: operations and places, numbers of launches.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from wulf.base.nodeset import fold
from wulf.base.records import CellEstimate, Place, Plan
from wulf.base.text import count

#: Operations and pairs that are named one by one.
NAMED = 3
#: An operation between given nodes, and its cells by size.
Stream = tuple[str, Place]
Streams = Mapping[Stream, Sequence[CellEstimate]]


def subject(stream: Stream, plan: Plan) -> str:
    """Return operation and place: what is not measured between the pairs has a set of nodes."""
    op, place = stream
    return f"{op} {'–'.join(place) if op in plan.workload.between_pairs else group(place)}"


def group(place: Place) -> str:
    """Return the nodes of a group, each once; two names are as short as their set."""
    nodes = list(dict.fromkeys(place))
    return ",".join(nodes) if len(nodes) < 3 else fold(nodes)


def subjects(streams: Sequence[Stream], plan: Plan) -> str:
    """Return some streams by name; of many, each operation with the number of its pairs."""
    if len(streams) <= NAMED:
        return ", ".join(subject(stream, plan) for stream in streams)
    pairs = Counter(op for op, _ in streams)
    return ", ".join(
        f"{op} ({count(of, 'pair')})" if op in plan.workload.between_pairs else op for op, of in pairs.items()
    )
