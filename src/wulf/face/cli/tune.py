"""``wulf tune``: change, measure, keep or undo, until nothing helps any more."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS
from wulf.base.nodeset import fold
from wulf.base.request import Option
from wulf.base.text import count, printable
from wulf.face.cli.declared import flat
from wulf.face.cli.options import MovedArgument, ResumeField, console, require_named
from wulf.face.cli.progress import staging
from wulf.face.cli.tune_progress import TuneProgress
from wulf.node.fleet.fields import AllowMissingField
from wulf.tools.tune.request import TuneRequest

if TYPE_CHECKING:
    from wulf.base.records import Pair
    from wulf.base.store.tuning import TuningRun
    from wulf.node.cluster.inventory import ClusterConfig
    from wulf.node.fleet import missed_changes
    from wulf.node.trials.experiment import objective
    from wulf.tools.tune import session


@dataclass(frozen=True)
class Begun:
    """How a search is begun."""

    allow_missing: AllowMissingField = 0
    dry_run: Annotated[bool, Option("Print what would be tried, with every command, and change nothing.")] = (
        False
    )
    resume: ResumeField = None


@flat
def command(request: TuneRequest, begun: Begun, moved: MovedArgument = None) -> None:
    from wulf.node.fleet.clusters import config_of
    from wulf.node.fleet.new_run import new_run
    from wulf.tools.tune import session

    require_named(moved)
    if begun.resume is not None:
        with TuneProgress() as progress:
            finished = session.go_on(
                begun.resume, request.runs, request.budget_s, progress, set_kept=request.set_kept
            )
    else:
        path = new_run(request.path, request.runs)
        whole = config_of(request.cluster)
        there = answering(whole, request.nodes, begun.allow_missing)
        with staging() as say:
            config = whole.without(there.missing)
            task = session.task_of(request, config, there.nodes, say, dry_run=begun.dry_run)
        if begun.dry_run:
            _explain(task)
            return
        with TuneProgress() as progress:
            finished = session.start(task, path, progress, set_kept=request.set_kept)
        remember_missing(whole, there, finished)
    show(finished)
    leave(finished)


def answering(config: ClusterConfig, nodes: str | None, allow_missing: int) -> missed_changes.Present:
    """Return which nodes take part, and name those that are left out."""
    from wulf.node.fleet import change_members

    there = change_members.answering(config, config.select(nodes), allow_missing=allow_missing)
    for node, reason in there.missing.items():
        sys.stderr.write(f"left out: {node} ({printable(reason, 300)})\n")
    return there


def remember_missing(
    config: ClusterConfig, there: missed_changes.Present, run: TuningRun, *, persist: bool = False
) -> None:
    """Note what nodes that were left out have missed, and say what brings them level."""
    from wulf.node.fleet import change_members

    for node, commands in change_members.remember_missing(config, there, run, persist=persist).items():
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


def _explain(task: session.TuneTask) -> None:
    """Print what would be tried on which nodes, command by command."""
    from wulf.tools.tune import session

    with staging() as say:
        choice, commands = session.explain(task, say)
    for candidate in choice.candidates:
        where = f"changes {candidate.nodes} only; " if candidate.nodes else ""
        sys.stdout.write(
            f"{candidate.knob}: {printable(candidate.original, 200)}  ({where}risk: {candidate.risk})\n"
        )
        for value in candidate.values:
            sys.stdout.write(f"  → {candidate.shown(value)}\n")
            for lines, who in commands[candidate.knob, value].items():
                sys.stdout.writelines(f"      {fold(who)}: {printable(line, 300)}\n" for line in lines)
    sys.stdout.write(f"\nmeasured in every trial: {_words(task.goal, choice.pairs(task.nodes))}\n")
    sys.stdout.write(f"not tried: {count(len(choice.left_out), 'knob')}\n")
    sys.stdout.writelines(f"  {name}: {printable(why, 200)}\n" for name, why in choice.left_out.items())
    sys.stdout.write("\nnothing was changed (--dry-run)\n")


def _words(goal: objective.Objective, places: Sequence[Pair]) -> str:
    pairs = f"{count(len(places), 'pair')} ({', '.join(' and '.join(pair) for pair in places)})"
    words = [f"{op} at {count(len(sizes), 'size')} between {pairs}" for op, sizes in goal.probes.items()]
    return ", ".join([*words, *(printable(one.command, 200) for one in goal.commands)])
