"""What is asked: whose jobs, at which prices, on which networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.request import RUNS, Argument, Option, RunsField
from wulf.node.replay.fields import (
    SAMPLES,
    NetworksField,
    OnField,
    RanksPerNodeField,
    RulesField,
    SamplesField,
    SeedField,
    SlurmField,
)


@dataclass(frozen=True)
class WorthRequest:
    """Work out what other networks are worth: node-hours saved a year, against ports and power.

    Each trace is predicted as with 'wulf program predict', and stands for its share of the cluster's node-hours.
    For every network: value, cost, the price of a port up to which it pays, when it has paid, how many nodes the
    same money buys, and what it gains beyond tuning the present network. Every figure has an interval, which covers
    predictions and prices.

    A trace that cannot answer the question is refused: one that cannot be replayed soundly, was cut off, is of one
    node or of other ranks or nodes than the jobs, or has receives from any source. A network that changes less than
    the traces vary by themselves is not said to pay.
    """

    traces: Annotated[Sequence[Path | str], Argument("Traces of the jobs.", metavar="TRACE...")]
    on: OnField
    jobs: Annotated[
        Path | str,
        Option(
            "File of the cluster's jobs (--template jobs prints an example), or the output of 'sacct "
            "--allusers --parsable2 --truncate --starttime now-30days --format "
            "JobID,JobName,NNodes,NTasks,ElapsedRaw,Start,End,NodeList': "
            "jobs are matched to traces by their names, nodes and tasks.",
            names=("--jobs", "--from-accounting"),
            metavar="FILE",
        ),
    ]
    prices: Annotated[
        Path | str, Option("File of prices: --template prices prints an example.", metavar="FILE")
    ]
    what_if: Annotated[str, Option("Networks by name, separated by commas.", metavar="LIST")] = (
        "10gbe,25gbe,25gbe-roce"
    )
    tuned: Annotated[
        str,
        Option("The network as it is after tuning; 'none' to leave it out.", metavar="NETWORK"),
    ] = "1gbe-tuned"
    own: NetworksField = ()
    ranks_per_node: RanksPerNodeField = 0
    rules: RulesField = None
    as_traced: Annotated[
        bool,
        Option(
            "Also accept traces that receive from any source, as if messages arrived in the same order on "
            "every network."
        ),
    ] = False
    samples: SamplesField = SAMPLES
    seed: SeedField = 1
    slurm: SlurmField = None
    runs: RunsField = RUNS

    @property
    def tuned_name(self) -> str:
        """The network that tuning makes of the one that is there; empty where that is not asked about."""
        return "" if self.tuned == "none" else self.tuned
