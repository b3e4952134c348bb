"""What is asked: of which nodes, and where to write what comes of it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.request import SECONDS, Option
from wulf.node.fleet.fields import ClusterField, NodesField


@dataclass(frozen=True)
class FabricRequest:
    """Infer which nodes hang on one switch, as Slurm's topology.conf and a hostfile in that order.

    Three things tell it, in this order: what ports hear of their switch (LLDP, where lldpd runs on all nodes); which
    switches answer on the way between nodes (those that route); how long small messages take between all nodes (those
    that bridge; six nodes and more). Each level says what it is from and how sure it is.

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
