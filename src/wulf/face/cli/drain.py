"""``wulf diagnose drain``: take the nodes out of Slurm's service that a diagnosis calls bad."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.request import RUNS
from wulf.face.cli.options import RunArgument, RunsOption, open_run


def command(
    run: RunArgument = "latest",
    now: Annotated[
        bool, typer.Option("--now", help="Run the commands; without this they are only printed.")
    ] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Drain the nodes in Slurm that a run of all pairs shows to be slow, with the reason.

    Only prints the commands, unless --now is given. Jobs on a drained node finish, and no new one starts there;
    'scontrol update nodename=NODE state=resume' undoes it. No node is drained for a slow link or group of nodes, as
    no single node is at fault: 'wulf diagnose RUN' shows these.

    Exit code 3 when a node is bad.
    """
    from wulf.node.cluster import slurm_nodes
    from wulf.tools.diagnose import drain, work

    bad = drain.together(drain.reasons(work.diagnose(open_run(run, runs))))
    for nodes, reason in bad:
        if now:
            slurm_nodes.drain(nodes, reason)
        sys.stdout.write(f"{slurm_nodes.drain_command(nodes, reason)}\n")
    if not bad:
        sys.stdout.write("no node is slower than comparable nodes: nothing to drain\n")
        return
    sys.stdout.write("drained\n" if now else "nothing was drained: --now does it\n")
    raise typer.Exit(EXIT_FINDINGS)
