"""``wulf mend``: set right what is certainly wrong."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.request import DryRunField, JsonField
from wulf.base.text import count
from wulf.face.cli.declared import flat
from wulf.face.cli.options import console, print_json
from wulf.face.cli.progress import Display, counting
from wulf.face.cli.set_values import (
    show,
    show_commands,
    show_next,
    show_rows,
    telling_of_nodes,
)
from wulf.tools.mend.request import MendRequest

if TYPE_CHECKING:
    from wulf.base.records import Mending


@dataclass(frozen=True)
class Shown:
    """How it is shown."""

    dry_run: DryRunField = False
    json: JsonField = False

    def __post_init__(self) -> None:
        if self.dry_run and self.json:
            raise UsageError("--dry-run has no --json: it prints commands for people")


@flat
def command(request: MendRequest, shown: Shown) -> None:
    from wulf.node.fleet import change, look
    from wulf.page.terminal import print_blocks
    from wulf.tools.mend import page, work

    task = work.task_of(request)
    # What most nodes have only all of them tell.
    everyone = list(task.config.nodes)
    with counting(f"looking at {count(len(everyone), 'node')}") as progress:
        records = look.look(task.config, everyone, progress=progress)
    choice, plan = work.planned(task, look.judge(records, task.profile), records)
    if not shown.json:
        if shown.dry_run or choice.findings or choice.well:
            print_blocks([page.intentions(choice.findings, choice.well)], console())
        show_rows(plan)
        print_blocks([page.refusals(choice.refused)], console())
    if shown.dry_run:
        with change.open_guards(task.config) as (transport, _):
            show_commands(change.explain(transport, plan.plans), choice.audit.unreachable)
        return
    interrupted = False
    with telling_of_nodes(json=shown.json), Display() as display:
        try:
            found = work.mend(task, choice, plan, records, display.stage)
        except work.MendingInterrupted as stop:
            found, interrupted = stop.found, True
    _show(found, json=shown.json)
    if interrupted:
        sys.stderr.write("interrupted\n")
        raise typer.Exit(EXIT_INTERRUPTED)
    if found.unseen or (found.outcome is not None and not found.outcome.kept):
        raise typer.Exit(EXIT_ERROR)
    if found.left or found.unreachable:
        raise typer.Exit(EXIT_FINDINGS)


def _show(found: Mending, *, json: bool) -> None:
    from wulf.page.terminal import print_page
    from wulf.tools.mend import page as shown

    if json:
        print_json(found)
        return
    if found.outcome is not None:
        show(found.outcome, json=False)
    print_page(shown.build(found), console())
    if found.outcome is not None:
        show_next(found.outcome)
