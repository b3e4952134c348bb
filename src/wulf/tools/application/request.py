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
    """Say of which class programs are: what they do with MPI, and what settings bring them.

    Each program is launched once more, with a library before its MPI library that counts its calls, messages and the
    time in them (not its run time's measurement; the profile is kept with the run). That tells how much a better
    network could bring it at most. With settings it is then measured what they do bring: launches with and without take
    turns, and everything is put back. Both are kept with the run (profile.json, gains.json): the same words go on after
    Ctrl-C, and without these files it is measured again.
    """

    programs: Annotated[
        Sequence[AnyRun], Argument("Runs of 'wulf program run'.", metavar="RUN...", complete="runs")
    ]
    _: KW_ONLY
    settings: Annotated[
        Sequence[str],
        Option(
            "Measure what this brings each program, against the original settings in turn. May be repeated.",
            names=("--setting",),
            metavar="KNOB=VALUE,…",
        ),
    ] = ()
    tuned: Annotated[
        Path | str | None,
        Option("The same with each setting that this run of 'wulf tune' has kept.", metavar="RUN"),
    ] = None
    mpi: Annotated[
        str | None, Option("MPI library of the programs: openmpi, mpich, or the path of an mpicc.")
    ] = None
    launches: Annotated[int, Option("Pairs of launches of a program and a setting.")] = 12
    budget_s: Annotated[
        float,
        Option("For a program and a setting: time after which no pair of launches is begun.", unit=SECONDS),
    ] = 600.0
    margin: MarginField = 0.02
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
    runs: RunsField = RUNS
