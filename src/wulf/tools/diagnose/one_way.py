"""In which direction a suspect is slow: half a round trip is the mean of both.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wulf.base.must_see import LARGE_BYTES
from wulf.base.records import Pair
from wulf.base.records.diagnosed import Matrix, Suspect
from wulf.tools.diagnose.confirmation import well_nodes

#: What is measured: a stream tells directions apart, its acknowledgements are small.
OP, SIZE_BYTES = "tcp_stream", 1 << 20
#: Nodes that are well, with which each suspect is measured; suspects, and nodes of a group, the slowest first.
PARTNERS, MOST, OF_A_GROUP = 2, 4, 2


def pairs(matrices: Sequence[Matrix]) -> list[Pair]:
    """Return the pairs to measure, the first node sends: suspects at large messages, in both directions."""
    suspects = [one for matrix in matrices if matrix.size_bytes >= LARGE_BYTES for one in matrix.suspects]
    well = well_nodes(matrices)[:PARTNERS]
    found: dict[Pair, None] = {}
    for suspect in sorted(suspects, key=lambda one: -one.slower)[:MOST]:
        for first, second in _between(suspect, well):
            found |= {(first, second): None, (second, first): None}
    return list(found)


def _between(suspect: Suspect, well: Sequence[str]) -> list[Pair]:
    if suspect.kind == "link":
        return [(suspect.nodes[0], suspect.nodes[1])]
    return [(node, other) for node in suspect.nodes[:OF_A_GROUP] for other in well]


def with_rates(matrix: Matrix, rates: Mapping[Pair, float]) -> Matrix:
    """Return a matrix whose suspects have the rates of their directions.

    Parameters
    ----------
    rates
        Sender and receiver → rate of a stream [bit/s].
    """
    if matrix.size_bytes < LARGE_BYTES:
        return matrix
    return msgspec.structs.replace(matrix, suspects=[_with_rates(one, rates) for one in matrix.suspects])


def _with_rates(suspect: Suspect, rates: Mapping[Pair, float]) -> Suspect:
    if suspect.kind == "link":
        first, second = suspect.nodes[0], suspect.nodes[1]
        sends, receives = rates.get((first, second)), rates.get((second, first))
    else:
        own = set(suspect.nodes)
        sends = _median(rate for (a, b), rate in rates.items() if a in own and b not in own)
        receives = _median(rate for (a, b), rate in rates.items() if b in own and a not in own)
    return msgspec.structs.replace(suspect, sends_bits_per_s=sends, receives_bits_per_s=receives)


def _median(rates: Iterable[float]) -> float | None:
    known = list(rates)
    return statistics.median(known) if known else None
