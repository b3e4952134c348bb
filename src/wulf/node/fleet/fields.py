"""Fields of requests that are about nodes (`wulf.base.request`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wulf.base.profile import Profile
from wulf.base.request import SHARE, Option

if TYPE_CHECKING:
    from wulf.node.cluster.inventory import ClusterConfig

    #: A configuration, a cluster file, ``lab``, ``slurm`` or ``local``; None for the one that is there.
    AnyCluster = ClusterConfig | Path | str | None
else:  # importing what it is takes long; who opens it says what is none
    AnyCluster = Any

ClusterField = Annotated[
    AnyCluster,
    Option(
        "A cluster file, 'lab' (the virtual cluster), 'slurm' (this allocation) or 'local' (this machine). "
        "Default: the Slurm allocation that this runs in, else ./cluster.toml, else that of 'wulf config', else the "
        "virtual cluster that is up.",
        names=("--cluster",),
        complete="clusters",
    ),
]
NodesField = Annotated[str | None, Option("Only these nodes of the cluster, such as 'node[01-32]'.")]
LookField = Annotated[
    Path | str | None,
    Option(
        "Read a look saved with 'wulf audit facts --save' instead of looking.",
        names=("--from",),
        metavar="FILE",
    ),
]
ProfileField = Annotated[
    Profile, Option("What the cluster is to be good at: latency, throughput or hpc (both).")
]
MpiField = Annotated[str | None, Option("MPI library: openmpi, mpich, or the path of an mpicc.")]
SeedField = Annotated[int | None, Option("Seed of all random orders. Default: a new one, stored.", least=0)]
PrecisionField = Annotated[
    float, Option("Launches are added until the 95 % interval is ± this wide.", unit=SHARE)
]
LaunchesField = Annotated[
    int | None,
    Option(
        "Exactly so many launches, however precise they are; an interval takes 6.",
        names=("--launches", "--repeat"),
        least=1,
    ),
]
MarginField = Annotated[float, Option("Differences smaller than this do not matter.", unit=SHARE)]
TakeOverField = Annotated[bool, Option("Set it although TuneD, NetworkManager … on the node sets it, too.")]
RelaxField = Annotated[
    bool,
    Option(
        "Relax the packet filter although the interface has the default route or a public address.",
        names=("--relax-firewall-facing-outside",),
    ),
]
AllowMissingField = Annotated[
    int,
    Option(
        "Go on without up to N nodes that do not answer at all; they are refused until they are as the others.",
        metavar="N",
    ),
]
CommandRanksField = Annotated[
    int,
    Option(
        "The command is an MPI program: start so many ranks of it, spread over the nodes of the cluster, as its MPI "
        "library and network want it. Default: 0, the command starts its own.",
        least=0,
    ),
]
MatchField = Annotated[
    Sequence[str],
    Option(
        "Also a number in its output: a regular expression with one group around it; the last match counts. "
        "May be repeated.",
        metavar="REGEX",
    ),
]
NamesField = Annotated[
    Sequence[str],
    Option(
        "What the number of a --match is, in their order: 'performance [GFLOPS] higher' is its name, unit, "
        "and that more is better. Default: 'result', lower is better.",
        names=("--as",),
        metavar="NAME",
    ),
]
