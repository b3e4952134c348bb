"""What is asked: of which nodes, and what they are to be good at."""

from __future__ import annotations

from dataclasses import dataclass

from wulf.node.fleet.fields import ClusterField, LookField, NodesField, ProfileField


@dataclass(frozen=True)
class AuditRequest:
    """Check every node's settings, services and drivers, and that the nodes are alike.

    Only reads: nothing is installed or changed. Exit code 0 when nothing is wrong, 3 with findings or where facts
    that could not be read may hide one ("cannot tell"), 1 when no node could be looked at.
    """

    cluster: ClusterField = None
    nodes: NodesField = None
    look: LookField = None
    profile: ProfileField = "hpc"
