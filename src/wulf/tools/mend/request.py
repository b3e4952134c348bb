"""What is asked: which findings are set right, on which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wulf.base.request import Argument, Option
from wulf.node.fleet.fields import (
    ClusterField,
    MpiField,
    NodesField,
    ProfileField,
    RelaxField,
    SeedField,
    TakeOverField,
)


@dataclass(frozen=True)
class MendRequest:
    """Fix settings that are wrong whatever the cluster is used for.

    That is: nodes that differ from most others in what must agree (MTU, kernel and interface settings), and values
    that are never right. 'wulf audit' marks each finding as mendable, worth trying (wulf tune) or manual. All nodes
    are changed in one guarded step, as with 'wulf settings set': it holds until the next boot, 'wulf settings
    persist' keeps it, 'wulf rollback' takes it back.

    Exit code 0 when nothing that can be mended is left, 3 when something is (or a node did not answer), 1 when it was
    undone or what is left is unknown.
    """

    cluster: ClusterField = None
    findings: Annotated[
        Sequence[str],
        Argument(
            "Ids of findings, as 'wulf audit' prints them; default: all that can be mended.",
            metavar="[FINDING...]",
        ),
    ] = ()
    profile: ProfileField = "hpc"
    nodes: NodesField = None
    measured: Annotated[
        bool,
        Option(
            "Measure with and without the change, alternately; undo it if something is proven to get worse.",
            names=("--measure/--no-measure",),
        ),
    ] = True
    mpi: MpiField = None
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
