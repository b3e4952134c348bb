"""``wulf tune``: change, measure, keep or undo, until nothing helps any more."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold
from wulf.base.signals import end_gently
from wulf.base.text import printable
from wulf.base.units import parse_duration, parse_percent
from wulf.face.cli import complete
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import RUNS, ClusterOption, RunsOption, console
from wulf.face.cli.progress import staging
from wulf.face.cli.set_values import AllowMissingOption, RelaxOption, TakeOverOption
from wulf.face.cli.tune_progress import TuneProgress

if TYPE_CHECKING:
    from wulf.base.records import Pair
    from wulf.base.store.tuning import TuningRun
    from wulf.node.cluster.inventory import ClusterConfig
    from wulf.node.fleet import level
    from wulf.node.trials.experiment import objective
    from wulf.tools.tune import session

BUDGET = "30m"


def command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Name of the new run; with --resume, the run to go on with.",
            autocompletion=complete.runs,
        ),
    ] = None,
    cluster_name: ClusterOption = None,
    nodes: NodesOption = None,
    objective_name: Annotated[
        str,
        typer.Option(
            "--objective", help="latency, bandwidth, 'app: COMMAND' (run on the first node), or a .toml file."
        ),
    ] = "latency",
    match: Annotated[
        str,
        typer.Option(help="With 'app:': regular expression with a group around the number in its output."),
    ] = "",
    better: Annotated[
        str, typer.Option(help="With --match: whether a lower or a higher number is better.")
    ] = "lower",
    unit: Annotated[str, typer.Option(help="With --match: unit of the number.")] = "",
    knobs: Annotated[
        str | None,
        typer.Option(
            help="Only these, separated by spaces; * matches; with values: \"nic.mtu=1500,9000 nic.tso_gso='on on'\"."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help=f"Time for the search (30m, 1h30m); --resume has it anew. Default: {BUDGET}."),
    ] = None,
    margin: Annotated[str, typer.Option(help="Change of the objective that does not matter.")] = "2%",
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random orders. Default: a new one, stored.")
    ] = None,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    allow_missing: AllowMissingOption = 0,
    only_search: Annotated[
        bool, typer.Option("--only-search", help="Put everything back at the end, also what helps.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be tried, with every command, and change nothing."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Find the settings that help, by experiment, and set them.

    Each candidate is switched on and off in random blocks while complete cycles are measured. What is proven to help
    is kept and the rest is tested again on top of it; at the end the whole set is confirmed against the original
    settings. A setting under which another figure gets worse (large messages, the slowest percent) is not kept.

    While it runs, the nodes put a setting back by themselves when they hear nothing for two minutes, or for three times
    as long as the longest measurement so far, an hour at most. Ctrl-C puts everything back and keeps the results;
    --resume goes on. What was kept is set until the next boot: 'wulf settings persist' keeps it, 'wulf rollback'
    takes it back.

    Exit code 3 when the search did not come to its end, 1 when what helps could not be set.
    """
    from wulf.node.fleet import change
    from wulf.node.fleet.begin import new_run, new_seed
    from wulf.node.fleet.clusters import cluster
    from wulf.node.trials import prepare
    from wulf.tools.tune import session

    end_gently()
    if resume:
        if allow_missing:
            raise UsageError("--allow-missing and --resume: a run goes on with the nodes it was begun with")
        with TuneProgress() as progress:
            more_s = parse_duration(budget) if budget else None
            finished = session.go_on(run or "latest", runs, more_s, progress, set_kept=not only_search)
    else:
        path = new_run(run, runs)
        whole = cluster(cluster_name)
        there = answering(whole, nodes, allow_missing)
        config = whole.without(there.missing)
        compiler = mpi or config.mpi.compiler
        with staging() as say:
            goal = prepare.goal(objective_name, compiler, say, match, _way(better), unit)
        request = session.TuneRequest(
            config=config,
            nodes=there.nodes,
            goal=goal,
            patterns=patterns_of(knobs),
            mpi=compiler,
            budget_s=parse_duration(budget or BUDGET),
            margin=parse_percent(margin),
            seed=new_seed(seed),
            permissions=change.Permissions(take_over=take_over, relax=relax),
        )
        if dry_run:
            _explain(request)
            return
        with TuneProgress() as progress:
            finished = session.start(request, path, progress, set_kept=not only_search)
        remember_missing(whole, there, finished)
    show(finished)
    leave(finished)


def answering(config: ClusterConfig, nodes: str | None, allow_missing: int) -> level.Present:
    """Return which nodes take part, and name those that are left out."""
    from wulf.node.fleet import members

    there = members.answering(config, config.select(nodes), allow_missing=allow_missing)
    for node, reason in there.missing.items():
        sys.stderr.write(f"left out: {node} ({printable(reason, 300)})\n")
    return there


def remember_missing(
    config: ClusterConfig, there: level.Present, run: TuningRun, *, persist: bool = False
) -> None:
    """Note what nodes that were left out have missed, and say what brings them level."""
    from wulf.node.fleet import members

    for node, commands in members.remember_missing(config, there, run, persist=persist).items():
        sys.stdout.write(f"{node} is refused until: {' && '.join(commands)}\n")


def leave(run: TuningRun) -> None:
    """End the program as the run ended: an error when what helps could not be set, findings when it was cut short."""
    if run.manifest.message is not None:
        raise typer.Exit(EXIT_ERROR)
    if run.result is None or run.result.status != "complete":
        raise typer.Exit(EXIT_FINDINGS)


def show(run: TuningRun) -> None:
    """Print the conclusion and what to do next."""
    from wulf.page.terminal import print_page
    from wulf.tools.tune import apply_result
    from wulf.tools.tune import page as report

    if run.result is not None:
        print_page(report.build(apply_result.report(run)), console())
    sys.stdout.write(f"\nrun: {run.path}\nnext: wulf report {run.path}")
    sys.stdout.write(", wulf settings persist, wulf rollback\n" if run.manifest.change else "\n")


def _explain(request: session.TuneRequest) -> None:
    """Print what would be tried on which nodes, command by command."""
    from wulf.tools.tune import session

    with staging() as say:
        choice, commands = session.explain(request, say)
    for candidate in choice.candidates:
        where = f"changes {candidate.nodes} only; " if candidate.nodes else ""
        sys.stdout.write(
            f"{candidate.knob}: {printable(candidate.original, 200)}  ({where}risk: {candidate.risk})\n"
        )
        for value in candidate.values:
            sys.stdout.write(f"  → {candidate.shown(value)}\n")
            for lines, who in commands[candidate.knob, value].items():
                sys.stdout.writelines(f"      {fold(who)}: {printable(line, 300)}\n" for line in lines)
    sys.stdout.write(f"\nmeasured in every trial: {_words(request.goal, choice.pairs(request.nodes))}\n")
    sys.stdout.write(f"not tried: {len(choice.left_out)} knobs\n")
    sys.stdout.writelines(f"  {name}: {printable(why, 200)}\n" for name, why in choice.left_out.items())
    sys.stdout.write("\nnothing was changed (--dry-run)\n")


def _words(goal: objective.Objective, places: Sequence[Pair]) -> str:
    from wulf.page.words import count

    pairs = f"{count(len(places), 'pair')} ({', '.join(' and '.join(pair) for pair in places)})"
    words = [f"{op} at {count(len(sizes), 'size')} between {pairs}" for op, sizes in goal.probes.items()]
    return ", ".join([*words, *(printable(one.command, 200) for one in goal.commands)])


def patterns_of(knobs: str | None) -> list[str]:
    """Return the words of ``--knobs``; a value with blanks in it is quoted as for a shell."""
    try:
        return shlex.split(knobs or "")
    except ValueError as error:
        raise UsageError(f"--knobs {knobs!r}: {error}") from None


def _way(better: str) -> Literal["lower", "higher"]:
    if better == "lower":
        return "lower"
    if better == "higher":
        return "higher"
    raise UsageError(f"--better {better!r}: lower or higher")
