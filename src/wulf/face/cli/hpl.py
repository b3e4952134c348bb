"""``wulf bench hpl``: High-Performance Linpack, tuned and repeated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold
from wulf.base.signals import end_gently
from wulf.base.units import format_value, parse_duration
from wulf.face.cli import complete
from wulf.face.cli.options import RUNS, ClusterOption, JsonOption, RunsOption, console, print_json
from wulf.face.cli.progress import Display, duration

if TYPE_CHECKING:
    from wulf.base.records.hpl import HplLaunch, HplManifest
    from wulf.base.store.hpl import HplRun

TIME = "20m"
REPEAT = 6


class HplProgress(Display):
    """Shows where a run of HPL stands."""

    def __init__(self) -> None:
        super().__init__()
        self._best = 0.0

    def begun(self, path: Path, manifest: HplManifest) -> None:
        """Say where the run is, and with what."""
        plan = manifest.plan
        self.note(f"run: {path}")
        self.note(f"{plan.program} on {fold(plan.nodes)}, {plan.cpus} CPUs each, {duration(plan.time_s)}")

    def launched(self, launch: HplLaunch, spent_s: float, left_s: float) -> None:
        """Show what came of a launch, and the time left."""
        if launch.status == "failed":
            self.note(f"launch {launch.index} (N {launch.n}, {launch.setting.shown}) failed: {launch.reason}")
        found = launch.gflops if launch.status == "ok" and launch.gflops else 0.0
        self._best = max(self._best, found)
        said = format_value(found, "GFLOPS") if found else launch.status
        text = f"launch {launch.index + 1}: N {launch.n}, {launch.setting.shown}: {said} · "
        text += f"best so far {format_value(self._best, 'GFLOPS')} · at most {duration(left_s)} left"
        self.show(text, spent_s, left_s)

    def interrupted(self, path: Path) -> None:
        """Say how to go on."""
        self.note(f"interrupted; what was measured is kept: wulf bench hpl --resume {path}")


def command(
    cluster_name: ClusterOption = None,
    nodes: Annotated[
        str | None, typer.Option(help="Only these nodes of the cluster, such as 'node[01-08]'.")
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="HPL on the nodes: xhpl or hpcc. Default: xhpl, or else hpcc."),
    ] = None,
    time: Annotated[str | None, typer.Option(help=f"Time for all of it. Default: {TIME}.")] = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Fresh launches of what is chosen; an interval takes 6. Default: {REPEAT}."
        ),
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0, help="Price of the whole machine, in any currency.")
    ] = None,
    watts: Annotated[
        float | None, typer.Option(min=0, help="What the whole machine takes under load.")
    ] = None,
    blas: Annotated[
        str | None,
        typer.Option(
            metavar="all|NAME|PATH",
            help="BLAS library, as 'wulf bench blas' names them: 'all' compares, by HPL itself, those that the "
            "program is "
            "proven to use, and goes on with the fastest. Default: what the program finds.",
        ),
    ] = None,
    peak: Annotated[
        float | None,
        typer.Option(
            min=0, help="Theoretical peak of the nodes [GFLOPS], where it is not known or is not right."
        ),
    ] = None,
    mpi: Annotated[
        str | None,
        typer.Option(
            help="MPI library that starts the job: 'openmpi', 'mpich' or a compiler. Default: that of HPL."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the search.")] = None,
    run: Annotated[str | None, typer.Option(help="Name of the run. Default: date and time.")] = None,
    runs: RunsOption = RUNS,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Go on with a run that was interrupted, as it was begun: of the other options only --time, --runs and "
            "--json go with it.",
            autocompletion=complete.runs,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run High-Performance Linpack with the setting that is quickest here, as large as time and memory allow.

    Small problems say how long a problem takes. Then process grid, threads, block size, broadcast, depth and row
    exchange are searched: first with small problems, the best of them with larger ones; launches that are much slower
    than the best are cut short, early where HPL says how far it is. A model of these times predicts the large
    problem, which is as large as the rest of the time and the memory allow. What is chosen is launched afresh, several
    times: the figure is the median of these launches with its interval, not the best one. A result that fails HPL's
    own check counts as failed.

    The percentage of the theoretical peak needs to know the CPU: how it is derived is shown, --peak overrides it.
    --price and --watts give the price of a GFLOPS and MFLOPS/W.

    Debian has HPL within its package hpcc, which makes all its other tests at every launch, so that fewer settings are
    tried. Exit code 3 when the time ended it before all launches were made, or a launch of what was chosen failed.
    """
    from wulf.base.store import find_run
    from wulf.base.store.hpl import HEAD
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.tools.hpl import session

    if resume is not None:
        given = {
            "--cluster": cluster_name, "--nodes": nodes, "--program": program, "--repeat": repeat, "--price": price,
            "--watts": watts, "--blas": blas, "--peak": peak, "--mpi": mpi, "--seed": seed, "--run": run,
        }  # fmt: skip
        _as_begun([name for name, value in given.items() if value is not None])
    end_gently()
    with HplProgress() as progress:
        if resume is not None:
            finished = session.go_on(
                find_run(resume, runs, HEAD), parse_duration(time) if time else None, progress
            )
        else:
            config = resolve(cluster_name)
            request = session.HplRequest(
                config=config,
                nodes=config.select(nodes),
                program=program,
                time_s=parse_duration(time or TIME),
                repeats=repeat or REPEAT,
                seed=new_seed(seed),
                price=_positive("--price", price),
                watts=_positive("--watts", watts),
                peak_gflops=_positive("--peak", peak),
                mpi=mpi,
                blas=blas,
            )
            finished = session.start(request, new_run(run, runs), progress)
    _show(finished, json=json)


def _as_begun(given: list[str]) -> None:
    if given:
        raise UsageError(f"{', '.join(given)} and --resume: a run goes on as it was begun")


def _positive(name: str, value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise UsageError(f"{name} {value:g}: it must be more than 0")
    return value


def _show(run: HplRun, *, json: bool) -> None:
    from wulf.page.terminal import print_page
    from wulf.tools.hpl import page as report
    from wulf.tools.hpl import session

    result = session.conclude(run.manifest, run.launches)
    if json:
        print_json(result)
    else:
        print_page(report.build(run.manifest, run.launches, result), console())
        sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path}\n")
    failed = any((launch.phase, launch.status) == ("confirm", "failed") for launch in run.launches)
    if failed or run.manifest.status != "complete":
        raise typer.Exit(EXIT_FINDINGS)
