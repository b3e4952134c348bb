"""Fields of requests that ask what traced programs would take on other networks (`wulf.base.request`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from wulf.base.request import AnyRun, Option

#: What is asked about without --what-if.
USUAL = "1gbe-tuned,10gbe,25gbe,25gbe-roce"
#: What the run times are by, and what stands beside them.
Engine = Literal["auto", "static", "events", "both"]
OnField = Annotated[
    AnyRun,
    Option(
        "Run of 'wulf measure --suite calibrate' on the nodes of the trace.", metavar="RUN", complete="runs"
    ),
]
NetworksField = Annotated[
    Sequence[Path | str],
    Option(
        "A network of your own, or a directory of them, beside those in ~/.config/wulf/networks. May be repeated.",
        names=("--network", "--networks"),
        metavar="FILE",
    ),
]
RanksPerNodeField = Annotated[
    int,
    Option("Put this many ranks on each node, in blocks. Default: 0, as in the trace.", least=0),
]
RulesField = Annotated[
    Path | str | None,
    Option(
        "Algorithms for collectives, one per line: COLLECTIVE FROM_RANKS FROM_BYTES ALGORITHM [SEGMENT_BYTES]. "
        "Without it: what Open MPI 4.1 and 5.0 decide by themselves, and for other libraries what is usual.",
        metavar="FILE",
    ),
]
SamplesField = Annotated[int, Option("Number of samples for the intervals.", least=20)]
SeedField = Annotated[int, Option("Seed of these samples.", least=0)]
SlurmField = Annotated[
    str | None,
    Option(
        "Split the replay into a job array of Slurm and follow it: options for sbatch as one argument, such as "
        "'--time=00:10:00 --mem=8G', or '' for none. The result is the same; after a failed task or Ctrl-C, the same "
        "command does only what is missing. --runs must be a directory that all nodes share.",
        metavar="OPTIONS",
    ),
]
SAMPLES = 200
