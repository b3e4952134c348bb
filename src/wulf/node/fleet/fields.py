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
        "Read facts saved with 'wulf audit facts --save' instead of asking the nodes.",
        names=("--from",),
        metavar="FILE",
    ),
]
ProfileField = Annotated[
    Profile, Option("What the cluster is optimised for: latency, throughput or hpc (both).")
]
MpiField = Annotated[str | None, Option("MPI library: openmpi, mpich, or the path of an mpicc.")]
SeedField = Annotated[int | None, Option("Seed of all random orders. Default: a new one, stored.", least=0)]
PrecisionField = Annotated[
    float, Option("Launches are added until the 95 % interval is within ± this.", unit=SHARE)
]
LaunchesField = Annotated[
    int | None,
    Option(
        "Exactly this many launches, however precise they are; an interval needs 6.",
        names=("--launches", "--repeat"),
        least=1,
    ),
]
MarginField = Annotated[float, Option("Differences smaller than this do not matter.", unit=SHARE)]
TakeOverField = Annotated[bool, Option("Set it even if TuneD, NetworkManager … manages it on the node.")]
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
        "Proceed without up to N nodes that do not answer at all; they are refused later until they have "
        "the same settings as the others.",
        metavar="N",
    ),
]
CommandRanksField = Annotated[
    int,
    Option(
        "The command is an MPI program: start this many ranks of it, spread over the nodes of the cluster, with its "
        "MPI library's launcher. Default: 0, the command starts its ranks itself.",
        least=0,
    ),
]
MatchField = Annotated[
    Sequence[str],
    Option(
        "Also measure a number in its output: a regular expression with one group around the number; the "
        "last match counts. May be repeated.",
        metavar="REGEX",
    ),
]
NamesField = Annotated[
    Sequence[str],
    Option(
        "Names the number of each --match, in the same order: 'performance [GFLOPS] higher' gives its name, "
        "its unit, and that higher is better. Default: 'result', lower is better.",
        names=("--as",),
        metavar="NAME",
    ),
]
