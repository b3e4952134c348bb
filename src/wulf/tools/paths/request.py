"""What is asked: between which nodes, and with how many flows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.request import BYTES, SECONDS, Option
from wulf.node.fleet.fields import ClusterField, NodesField


@dataclass(frozen=True)
class PathsRequest:
    """Say which path between nodes (spine, member of a bond) is slow or lossy, and a port that shows it.

    A flow takes one path of many, which switches choose by its addresses and ports. So between each pair of nodes many
    flows are measured in turn, each from a source port of its own: small requests over UDP and TCP, and streams over
    TCP in both directions. Which way a flow takes is asked from the switches (packets whose time to live ends there;
    it takes no right of root). Flows of a pair are held against each other, and what the bad ones of all pairs have
    in common is named: a switch, or a link in one direction. Where switches do not answer, flows that are worse than
    others of their pair are told by themselves, and which nodes they have in common.

    Of a network where all paths are alike something is named in one case of a hundred. It cannot tell where a path that
    takes 50 µs (or half a usual round trip) more, loses 1 % or has half the rate could not have been seen.

    Exit code 3 when a path is named, when it cannot be told, or not all pairs were measured.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    budget_s: Annotated[float, Option("Time for measuring.", unit=SECONDS)] = 180.0
    flows: Annotated[int, Option("Flows between each two nodes.", least=8, most=256)] = 32
    stream_bytes: Annotated[
        int, Option("A message of a stream: so large that a queue in a switch does not hold it.", unit=BYTES)
    ] = 512 << 10
