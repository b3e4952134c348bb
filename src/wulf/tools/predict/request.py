"""What is asked: what traced programs would take, on which networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, Argument, Option, RunsField
from wulf.node.replay.fields import (
    SAMPLES,
    USUAL,
    Engine,
    NetworksField,
    OnField,
    RanksPerNodeField,
    RulesField,
    SamplesField,
    SeedField,
    SlurmField,
)


@dataclass(frozen=True)
class PredictRequest:
    """Predict the run time of a traced program on other networks, and whether one is worth having.

    The network as it is comes from a calibration run. The longest path through the trace's messages shows how much
    of the run time is latency, bandwidth, CPU time of messages or computing, and how much latency the program
    tolerates. Every figure has an interval, which covers the parameters, the compute times, and how well the model
    fits the network as it is.

    A second replay, event by event, shows how much contention matters: the order in which messages arrive, and what
    ranks, uplinks and programs share.

    A trace that cannot be replayed soundly is refused, with the reason. Exit code 3 when --verify finds the time
    outside the interval.
    """

    source: Annotated[
        Path | str | Sequence[Path | str],
        Argument(
            "A trace (.wtrace), or a pattern (.toml, or its name in 'wulf program emulate --list'); or several.",
            metavar="TRACE...",
        ),
    ]
    on: OnField
    _: KW_ONLY
    again: Annotated[
        Sequence[Path | str],
        Option(
            "Another trace of the same program, from a separate launch; two or more of them show how launches "
            "differ, and where a single one lies. May be repeated.",
            metavar="TRACE",
        ),
    ] = ()
    what_if: Annotated[
        str,
        Option(
            "Networks by name, or changes of the calibrated one: latency=5us, latency=+5us, latency=x0.5, "
            "latency=5us..100us, bandwidth=x2, overhead=x0.5, compute=x0.9; buffer=64KiB for what the port to each "
            "receiver keeps, with rto=5ms for another timeout than 200 ms of what it loses; @RUN for the network of "
            "another calibrated run. Commas between; + joins several for one.",
            metavar="LIST",
        ),
    ] = USUAL
    own: NetworksField = ()
    ranks: Annotated[int, Option("Number of ranks, for a pattern that leaves it open.", least=0)] = 0
    ranks_per_node: RanksPerNodeField = 0
    placement: Annotated[
        Sequence[int] | Path | str,
        Option(
            "The node of each rank: a number for each, in order; those of programs given by --beside follow.",
            metavar="FILE",
        ),
    ] = ()
    rules: RulesField = None
    engine: Annotated[
        Engine,
        Option(
            "static: messages in their recorded order, exactly. events: event by event, with the order in which "
            "messages arrive and with contention between ranks, uplinks and programs; slower, with fewer "
            "samples. both: static run times, with those of events next to them. auto: events where ranks share "
            "interfaces or receive from any source and it matters, else static.",
            metavar="ENGINE",
        ),
    ] = "auto"
    beside: Annotated[
        Sequence[Path | str],
        Option(
            "A program that runs at the same time, on nodes of the same names. May be repeated.",
            metavar="TRACE",
        ),
    ] = ()
    topology: Annotated[
        Path | str | None,
        Option(
            "Which nodes share which uplinks: Slurm's topology.conf, with the speed of each uplink as LinkSpeed.",
            metavar="FILE",
        ),
    ] = None
    node_watts: Annotated[
        float | None,
        Option(
            "Power of a node while the program runs [W], for the energy of a run on each network: measured, as by "
            "'wulf program run' or 'wulf bench hpl', or from a data sheet.",
            least=0,
        ),
    ] = None
    samples: SamplesField = SAMPLES
    seed: SeedField = 1
    slurm: SlurmField = None
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse for several traces what is of one.

        Raises
        ------
        UsageError
            Names the option.
        """
        if not self.sources:
            raise UsageError(f"source={self.source!r}: name a trace, or several")
        if len(self.sources) > 1 and self.again:
            raise UsageError("--again is of one program: give one trace of it before")
        if len(self.sources) > 1 and self.placement:
            raise UsageError("--verify and --placement need a single trace")

    @property
    def sources(self) -> list[Path]:
        """The traces."""
        if isinstance(self.source, (str, Path)):
            return [Path(self.source)]
        return [Path(source) for source in self.source]
