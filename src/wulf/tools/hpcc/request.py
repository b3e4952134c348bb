"""What is asked: HPC Challenge on which nodes, and for how long."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from wulf.base.request import RUNS, SECONDS, Option, PathField, RunsField
from wulf.node.fleet.fields import ClusterField, NodesField, SeedField

SMALLEST, LARGEST = 200, 2_000_000


@dataclass(frozen=True)
class HpccRequest:
    """Run HPC Challenge on all nodes together and on each alone, and name the nodes that differ from the others.

    All results have their units and intervals; the run is stored, so that 'wulf compare' compares two of them. A
    run of HPCC that fails one of its own checks (residuals, errors of RandomAccess) counts as failed, and is shown.

    Exit code 3 when a node differs or a run of HPCC failed.
    """

    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    nodes: NodesField = None
    budget_s: Annotated[
        float,
        Option("Total time; the problem size is chosen to fit.", names=("--budget", "--time"), unit=SECONDS),
    ] = 1200.0
    launches: Annotated[int, Option("Maximum number of rounds; an interval needs 6.", least=1)] = 6
    size: Annotated[
        int | None,
        Option(
            "N of HPL on all nodes together. Runs are compared at the same N.", least=SMALLEST, most=LARGEST
        ),
    ] = None
    ranks_per_node: Annotated[
        int | None,
        Option(
            "Ranks on each node. Default: the number of CPUs of the smallest node.",
            names=("--ranks",),
            least=1,
        ),
    ] = None
    program: Annotated[str, Option("HPCC on the nodes: its name, or its path.")] = "hpcc"
    seed: SeedField = None
    runs: RunsField = RUNS
