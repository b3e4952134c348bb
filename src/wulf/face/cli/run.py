"""``wulf tune all``: the whole procedure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from wulf.base.errors import EXIT_ERROR
from wulf.base.text import count, printable
from wulf.face.cli import persist, tune
from wulf.face.cli.declared import flat
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import MovedArgument, console, require_named
from wulf.face.cli.progress import Counting, Display, counting, note, staging
from wulf.face.cli.report import write_page
from wulf.face.cli.set_values import show, telling_of_nodes
from wulf.face.cli.tune_progress import TuneProgress
from wulf.node.fleet.fields import AllowMissingField
from wulf.tools.tune.request import WholeRequest

if TYPE_CHECKING:
    from wulf.base.records import Audit, Mending
    from wulf.base.store.tuning import TuningRun


@dataclass(frozen=True)
class Allowed:
    """What may be missing."""

    allow_missing: AllowMissingField = 0


class Shown:
    """Shows the parts of the procedure, one after the other."""

    def looking(self, nodes: int) -> AbstractContextManager[Counting]:
        """Show a look at so many nodes."""
        return counting(f"looking at {count(nodes, 'node')}")

    def audited(self, audit: Audit) -> None:
        """Print the findings in a line each."""
        console().print(f"audit: {count(len(audit.findings), 'finding')}")
        for finding in audit.findings:
            console().print(
                printable(f"  {finding.severity}: {finding.title}: {finding.found}", 160), markup=False
            )

    @contextmanager
    def mending(self) -> Iterator[Callable[[str], None]]:
        """Show how that is set right which is certainly wrong."""
        with telling_of_nodes(json=False), Display() as display:
            yield display.stage

    def mended(self, found: Mending) -> None:
        """Print what was set right, and what that brought."""
        from wulf.page.terminal import print_blocks, print_page
        from wulf.tools.mend import page as mending

        print_blocks([mending.refusals(found.refused)], console())
        if found.outcome is not None:
            show(found.outcome, json=False)
        print_page(mending.build(found), console())

    def measuring(self, name: str) -> AbstractContextManager[MeasureProgress]:
        """Show the measurement of curves."""
        sys.stderr.write(f"curves {name}\n")
        return MeasureProgress()

    def searching(self) -> AbstractContextManager[TuneProgress]:
        """Show the search."""
        return TuneProgress()

    def searched(self, run: TuningRun) -> None:
        """Print what the search found."""
        tune.show(run)

    def note(self, text: str) -> None:
        """Say something that stays."""
        note(text)


@flat
def command(request: WholeRequest, allowed: Allowed, moved: MovedArgument = None) -> None:
    from wulf.base.store.tuning import load_tuning
    from wulf.compose import procedure
    from wulf.node.fleet import allocation
    from wulf.node.fleet.clusters import config_of
    from wulf.node.fleet.new_run import new_run
    from wulf.node.trials import open_bench
    from wulf.tools.tune import apply_result, session
    from wulf.tools.tune import page as report

    require_named(moved)
    path = new_run(request.path, request.runs)
    whole = config_of(request.cluster)
    there = tune.answering(whole, request.nodes, allowed.allow_missing)
    config = whole.without(there.missing)
    capped = replace(request, budget_s=allocation.capped(request.budget_s, note))
    with staging() as say:
        task = session.task_of(capped, config, there.nodes, say)
    found = procedure.run(task, path, Shown(), whole_curves=request.curves)
    stored = True
    if found.manifest.change is not None:
        if request.persist:
            stored = persist.keep(config, there.nodes, request.runs, deadline_s=open_bench.CONFIRM_WITHIN_S)
        tune.remember_missing(whole, there, found, persist=request.persist and stored)
    done = load_tuning(path)
    page = write_page(done, None)
    if done.result is not None:
        sys.stdout.write(f"{report.headline(apply_result.report(done))}.\n")
    sys.stdout.write(f"report: {page.resolve()}\n")
    if not stored:
        raise typer.Exit(EXIT_ERROR)
    tune.leave(found)
