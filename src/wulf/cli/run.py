"""``wulf run``: the whole procedure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from wulf import catalogue
from wulf.cli import persist, tune
from wulf.cli.begin import end_gently
from wulf.cli.facts import NodesOption
from wulf.cli.measure_progress import MeasureProgress
from wulf.cli.options import RUNS, ClusterOption, RunsOption, console
from wulf.cli.progress import counting, staging
from wulf.cli.report import write_tuning_page
from wulf.cli.set_values import AllowMissingOption, RelaxOption, TakeOverOption
from wulf.cli.tune_progress import TuneProgress
from wulf.cluster import inventory
from wulf.errors import EXIT_ERROR, StoreError
from wulf.experiment import objective
from wulf.probe import ladder
from wulf.procedure import change
from wulf.procedure.analysis import analyze
from wulf.procedure.begin import new_run, new_seed
from wulf.procedure.clusters import cluster
from wulf.procedure.look import judge, look
from wulf.procedure.measuring import session as measuring
from wulf.procedure.tuning import prepare, session
from wulf.records import Audit
from wulf.report import run as run_report
from wulf.store import load, write_atomically
from wulf.store.tuning import AFTER, AUDIT_AFTER, AUDIT_BEFORE, BEFORE, load_tuning
from wulf.text import printable
from wulf.units import parse_duration, parse_percent

BUDGET = "30m"
#: Share of the budget for the curves before the search; as much again for those after it.
_CURVES = 0.1
#: Largest message of the curves [B].
_LARGEST = 1 << 20
#: Curves are precise enough after this.
_CURVES_S = 300.0


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole procedure is about."""

    config: inventory.ClusterConfig
    nodes: list[str]
    goal: objective.Objective
    mpi: str | None
    budget_s: float
    path: Path


def command(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Name of the new run.")] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    objective_name: Annotated[
        str, typer.Option("--objective", help="latency, bandwidth, 'app: COMMAND', or a .toml file.")
    ] = "latency",
    knobs: Annotated[
        str | None, typer.Option(help="Only these, separated by spaces; as for 'wulf tune'.")
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for everything, such as 45m or 1h30m.")] = BUDGET,
    margin: Annotated[str, typer.Option(help="Change of the objective that does not matter.")] = "2%",
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    keep_over_reboots: Annotated[
        bool, typer.Option("--persist", help="Also write the files that keep what helps over reboots.")
    ] = False,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    allow_missing: AllowMissingOption = 0,
    runs: RunsOption = RUNS,
) -> None:
    """Do everything: audit, measure, tune, confirm, measure again, report.

    The same as 'wulf audit', 'wulf measure', 'wulf tune', 'wulf measure', 'wulf audit' and 'wulf report', in one run
    with one page. Ctrl-C puts the nodes back and keeps the results so far. Exit code 3 when the search did not come to
    its end.
    """
    end_gently()
    path = new_run(run, runs)
    whole = cluster(cluster_name)
    config, there = tune.without_missing(whole, nodes, allow_missing)
    compiler = mpi or config.mpi.compiler
    with staging() as say:
        goal = prepare.goal(objective_name, compiler, say)
    what = Procedure(
        config=config,
        nodes=there.nodes,
        goal=goal,
        mpi=compiler,
        budget_s=parse_duration(budget),
        path=path,
    )
    request = session.TuneRequest(
        config=config,
        nodes=what.nodes,
        goal=what.goal,
        patterns=tune.patterns_of(knobs),
        mpi=what.mpi,
        budget_s=what.budget_s * (1 - 2 * _CURVES) if what.goal.probes else what.budget_s,
        margin=parse_percent(margin),
        seed=new_seed(seed),
        permissions=change.Permissions(take_over=take_over, relax=relax),
    )
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"cannot make the run directory {path}: {error.strerror}") from None
    write_atomically(path / AUDIT_BEFORE, msgspec.json.encode(_audit(what)))
    _curves(what, BEFORE)
    with TuneProgress() as progress:
        found = session.start(request, path, progress, set_kept=True)
    tune.show(found)
    stored = True
    if found.manifest.change is not None:
        _curves(what, AFTER)
        write_atomically(path / AUDIT_AFTER, msgspec.json.encode(_audit(what)))
        if keep_over_reboots:
            stored = persist.keep(config, what.nodes, runs, deadline_s=session.CONFIRM_WITHIN_S)
        tune.remember_missing(whole, there, found, persist=keep_over_reboots and stored)
    page = write_tuning_page(load_tuning(path), None)
    sys.stdout.write(f"report: {page.resolve()}\n")
    if not stored:
        raise typer.Exit(EXIT_ERROR)
    tune.leave(found)


def _audit(what: Procedure) -> Audit:
    """Look at the nodes and judge them; print the findings in a line each."""
    with counting(f"looking at {len(what.nodes)} nodes") as progress:
        records = look(what.config, what.nodes, progress=progress)
    audit = judge(records, _profile(what))
    console().print(f"audit: {len(audit.findings)} findings")
    for finding in audit.findings:
        console().print(
            printable(f"  {finding.severity}: {finding.title}: {finding.found}", 160), markup=False
        )
    return audit


def _profile(what: Procedure) -> catalogue.Profile:
    return what.goal.profile


def _curves(what: Procedure, name: str) -> None:
    """Measure whole curves of what the objective is made of, and write their page."""
    pairs = objective.pairs_for(what.nodes)
    if not what.goal.probes or not pairs:
        return
    sys.stderr.write(f"curves {name}\n")
    request = measuring.MeasureRequest(
        config=what.config,
        ops=[part.op for part in what.goal.probes],
        mpi=what.mpi,
        pairs=pairs,
        ladder="imb",
        sizes_bytes=ladder.base_sizes("imb", _LARGEST),
        budget_s=min(what.budget_s * _CURVES, _CURVES_S),
        max_launches=20,
    )
    with MeasureProgress() as progress:
        run, _ = measuring.start(request, what.path / name, progress)
    loaded = load(run.path)
    page = run_report.render_html(loaded.manifest, loaded.nodes, loaded.launches, analyze(loaded), None)
    write_atomically(run.path / "report.html", page.encode())
