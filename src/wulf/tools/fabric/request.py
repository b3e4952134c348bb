"""What is asked: of which nodes, and where to write what comes of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.request import SECONDS, Option
from wulf.node.fleet.fields import ClusterField, NodesField


@dataclass(frozen=True)
class FabricRequest:
    """Infer which nodes share a switch, as a topology.conf for Slurm and a hostfile in that order.

    Three sources are used, in this order: LLDP, from which ports learn of their switch (where lldpd runs on all
    nodes); the switches that answer on the path between nodes (those that route); the times of small messages
    between all nodes (for switches that only bridge; needs six nodes). Each level of the result names its source
    and how certain it is.

    Exit code 3 when it cannot tell.
    """

    cluster: ClusterField = None
    _: KW_ONLY
    nodes: NodesField = None
    budget_s: Annotated[float, Option("Time for measuring.", unit=SECONDS)] = 60.0
    topology: Annotated[Path | None, Option("Write Slurm's topology.conf to this file.", metavar="FILE")] = (
        None
    )
    hostfile: Annotated[
        Path | None,
        Option("Write the nodes to this file, those of a switch together.", metavar="FILE"),
    ] = None
