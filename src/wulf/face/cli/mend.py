"""``wulf mend``: set right what is certainly wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from wulf.base.signals import end_gently
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json
from wulf.face.cli.progress import Display, counting
from wulf.face.cli.set_values import (
    RelaxOption,
    TakeOverOption,
    show,
    show_commands,
    show_next,
    show_rows,
    telling_of_nodes,
)

if TYPE_CHECKING:
    from wulf.base.records import Mending


def command(
    findings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FINDING...]",
            help="Ids of findings, as 'wulf audit' prints them; default: all that can be mended.",
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="What the cluster is to be good at: latency, throughput or hpc (both).")
    ] = "hpc",
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command for every node, and change nothing.")
    ] = False,
    measured: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure with and without it, in turn; undo it where something is proven to be worse.",
        ),
    ] = True,
    mpi: Annotated[
        str | None, typer.Option(help="MPI library: openmpi, mpich, or the path of an mpicc.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random orders. Default: a new one.")] = None,
    take_over: TakeOverOption = False,
    relax: RelaxOption = False,
    json: JsonOption = False,
) -> None:
    """Set right what is wrong whatever the cluster is for.

    That is a node unlike most others in what must agree (MTU, kernel and interface settings), and values that are
    never right. 'wulf audit' says of each finding whether it can be mended, is worth trying (wulf tune) or is left to
    a person. All nodes are set right in one guarded step, as with 'wulf settings set': it holds until the next
    boot, 'wulf settings persist' keeps it, 'wulf rollback' takes it back.

    Exit code 0 when nothing that can be mended is left, 3 when something is (or a node did not answer), 1 when it was
    undone or nobody knows what is left.
    """
    from wulf.base.catalogue import PROFILES
    from wulf.node.fleet import change, look
    from wulf.node.fleet.begin import new_seed
    from wulf.node.fleet.clusters import cluster as resolve
    from wulf.tools.mend import page as shown
    from wulf.tools.mend import work

    end_gently()
    if dry_run and json:
        raise UsageError("--dry-run has no --json: it prints commands for people")
    known = next((name for name in PROFILES if name == profile), None)
    if known is None:
        raise UsageError(f"--profile: there is no '{profile}'; there are: {', '.join(PROFILES)}")
    config = resolve(cluster)
    chosen = config.select(nodes)
    request = work.MendRequest(
        config=config,
        nodes=chosen,
        names=findings or [],
        profile=known,
        permissions=change.Permissions(take_over=take_over, relax=relax),
        mpi=mpi or config.mpi.compiler,
        seed=new_seed(seed),
        measured=measured,
    )
    # What most nodes have only all of them tell.
    everyone = list(config.nodes)
    with counting(f"looking at {len(everyone)} nodes") as progress:
        records = look.look(config, everyone, progress=progress)
    choice, plan = work.planned(request, look.judge(records, known), records)
    if not json:
        shown.intentions(choice.findings, choice.well, console())
        show_rows(plan)
        shown.refusals(choice.refused, console())
    if dry_run:
        with change.open_guards(config) as (transport, _):
            show_commands(change.explain(transport, plan.plans), choice.audit.unreachable)
        return
    interrupted = False
    with telling_of_nodes(json=json), Display() as display:
        try:
            found = work.mend(request, choice, plan, records, display.stage)
        except work.MendingInterrupted as stop:
            found, interrupted = stop.found, True
    _show(found, json=json)
    if interrupted:
        sys.stderr.write("interrupted\n")
        raise typer.Exit(EXIT_INTERRUPTED)
    if found.unseen or (found.outcome is not None and not found.outcome.kept):
        raise typer.Exit(EXIT_ERROR)
    if found.left or found.unreachable:
        raise typer.Exit(EXIT_FINDINGS)


def _show(found: Mending, *, json: bool) -> None:
    from wulf.tools.mend import page as shown

    if json:
        print_json(found)
        return
    if found.outcome is not None:
        show(found.outcome, json=False)
    shown.text(found, console())
    if found.outcome is not None:
        show_next(found.outcome)
