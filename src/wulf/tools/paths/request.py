"""What is asked: between which nodes, and with how many flows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.request import BYTES, SECONDS, Option
from wulf.node.fleet.fields import ClusterField, NodesField


@dataclass(frozen=True)
class PathsRequest:
    """Find the path between nodes (spine, member of a bond) that is slow or lossy, and a port that shows it.

    A flow takes one of many paths, which switches choose by its addresses and ports. So many flows are measured
    alternately between each pair of nodes, each from its own source port: small requests over UDP and TCP, and TCP
    streams in both directions. The path of a flow is found by packets whose time to live expires at the switches
    (as traceroute does; root is not needed). The flows of a pair are compared with each other, and what the bad
    ones of all pairs have in common is named: a switch, or a link in one direction. Where switches do not answer,
    the bad flows themselves are shown, and which nodes they have in common.

    Where all paths are alike, something is named in one case out of a hundred. The verdict is "cannot tell" where a
    path that takes 50 µs (or half a usual round trip) longer, loses 1 % or has half the rate would not have been
    found.

    Exit code 3 when a path is named, when it cannot tell, or when not all pairs were measured.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    budget_s: Annotated[float, Option("Time for measuring.", unit=SECONDS)] = 180.0
    flows: Annotated[int, Option("Flows between each pair of nodes.", least=8, most=256)] = 32
    stream_bytes: Annotated[
        int, Option("Size of a stream's messages: too large for a queue in a switch to hold.", unit=BYTES)
    ] = 512 << 10
