"""``wulf program characterise``: which kind of program gains how much from what."""

from __future__ import annotations

from typing import Annotated

import typer

from wulf.base.signals import end_gently
from wulf.base.units import parse_duration, parse_percent
from wulf.face.cli import complete
from wulf.face.cli.options import RUNS, JsonOption, RunsOption, console, open_run, print_json
from wulf.face.cli.progress import Display
from wulf.face.cli.set_values import RelaxOption, TakeOverOption, telling_of_nodes

LAUNCHES = 12
BUDGET = "10m"


def command(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs of 'wulf program run'.", autocompletion=complete.runs),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            metavar="KNOB=VALUE,…",
            help="Measure what this brings each program, against the original settings in turn. May be repeated.",
        ),
    ] = None,
    tuned: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The same with each setting that this run of 'wulf tune' has kept."),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="MPI library of the programs: openmpi, mpich, or the path of an mpicc."),
    ] = None,
    launches: Annotated[int, typer.Option(help="Pairs of launches of a program and a setting.")] = LAUNCHES,
    budget: Annotated[
        str, typer.Option(help="For a program and a setting: time after which no pair of launches is begun.")
    ] = BUDGET,
    margin: Annotated[str, typer.Option(help="Differences smaller than this do not matter.")] = "2%",
    seed: Annotated[int | None, typer.Option(help="Seed of all random orders.")] = None,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Say of which class programs are: what they do with MPI, and what settings bring them.

    Each program is launched once more, with a library before its MPI library that counts its calls, messages and the
    time in them (not its run time's measurement; the profile is kept with the run). That tells how much a better
    network could bring it at most. With settings it is then measured what they do bring: launches with and without take
    turns, and everything is put back. Both are kept with the run (profile.json, gains.json): the same words go on after
    Ctrl-C, and without these files it is measured again.
    """
    from wulf.base.store import find_run
    from wulf.base.store.tuning import HEAD, load_tuning
    from wulf.node.fleet import change
    from wulf.node.fleet.begin import new_seed
    from wulf.node.trials import interleaving
    from wulf.page.terminal import print_page
    from wulf.tools.application import page as report
    from wulf.tools.application import work

    end_gently()
    sides = [interleaving.side(text) for text in settings or []]
    if tuned is not None:
        sides += work.kept(load_tuning(find_run(tuned, runs, HEAD)))
    request = work.CharacteriseRequest(
        runs=[open_run(name, runs) for name in names],
        settings=sides,
        mpi=mpi,
        launches=launches,
        budget_s=parse_duration(budget),
        margin=parse_percent(margin),
        permissions=change.Permissions(take_over=take_over, relax=relax),
        seed=new_seed(seed),
    )
    with telling_of_nodes(json=json), Display() as display:
        found = work.characterise(request, display.stage)
    if json:
        print_json(found)
    else:
        print_page(report.build(found), console())
