"""What is asked: which programs, and what is tried with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.request import RUNS, SECONDS, AnyRun, Argument, Option, RunsField
from wulf.node.fleet.fields import MarginField, RelaxField, SeedField, TakeOverField


@dataclass(frozen=True)
class CharacteriseRequest:
    """Classify programs: what they do with MPI, and what they gain from settings.

    Each program is launched once more, with a library before its MPI library that counts its calls, messages and
    the time in them (the run time is not measured in this launch). This shows how much a better network could gain
    at most. With settings, their actual gain is measured: launches with and without them alternate, and everything
    is put back. Both results are kept with the run (profile.json, gains.json): the same command goes on after
    Ctrl-C; without these files everything is measured again.
    """

    programs: Annotated[
        Sequence[AnyRun], Argument("Runs of 'wulf program run'.", metavar="RUN...", complete="runs")
    ]
    _: KW_ONLY
    settings: Annotated[
        Sequence[str],
        Option(
            "Measure what each program gains from this, alternating with the original settings. May be repeated.",
            names=("--setting",),
            metavar="KNOB=VALUE,…",
        ),
    ] = ()
    tuned: Annotated[
        Path | str | None,
        Option("The same for each setting that this run of 'wulf tune' has kept.", metavar="RUN"),
    ] = None
    mpi: Annotated[
        str | None, Option("MPI library of the programs: openmpi, mpich, or the path of an mpicc.")
    ] = None
    launches: Annotated[int, Option("Pairs of launches for each program and setting.")] = 12
    budget_s: Annotated[
        float,
        Option(
            "Time for each program and setting, in which the last pair of launches is to end.", unit=SECONDS
        ),
    ] = 600.0
    margin: MarginField = 0.02
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
    runs: RunsField = RUNS
