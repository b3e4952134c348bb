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
    """Say what other networks are worth: node-hours saved a year, against ports and power.

    Each trace is predicted as 'wulf program predict' does, and stands for its share of the cluster's node-hours.
    Of every network: value, cost, the price of a port at which it pays, when it has paid, how many nodes the same
    money buys, and what it brings beyond tuning what there is. Every figure has an interval: of the predictions
    and of the prices.

    A trace that cannot carry the question is refused: one that cannot be replayed soundly, was cut off, is of one node
    or of other ranks or nodes than the jobs, or has receives from anybody; and of a network that changes less than the
    traces vary by themselves it is not said that it pays.
    """

    traces: Annotated[Sequence[Path | str], Argument("Traces of the jobs.", metavar="TRACE...")]
    on: OnField
    jobs: Annotated[
        Path | str,
        Option(
            "What the cluster is used for: --template jobs. Or what 'sacct --allusers --parsable2 --format "
            "JobID,JobName,NNodes,NTasks,ElapsedRaw,Start,End,NodeList' has printed: jobs are of a trace by their "
            "names, nodes and tasks.",
            names=("--jobs", "--from-accounting"),
            metavar="FILE",
        ),
    ]
    prices: Annotated[Path | str, Option("What things cost: --template prices.", metavar="FILE")]
    what_if: Annotated[str, Option("Networks by name, with commas between.", metavar="LIST")] = (
        "10gbe,25gbe,25gbe-roce"
    )
    tuned: Annotated[
        str,
        Option(
            "What the network as it is becomes when it is tuned; 'none' to leave it out.", metavar="NETWORK"
        ),
    ] = "1gbe-tuned"
    own: NetworksField = ()
    ranks_per_node: RanksPerNodeField = 0
    rules: RulesField = None
    as_traced: Annotated[
        bool,
        Option(
            "Take traces with receives from anybody, too, as if messages came in the same order on every network."
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
