"""``wulf rollback``: back to an earlier state."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from wulf.change import apply
from wulf.cli.begin import end_gently
from wulf.cli.facts import NodesOption
from wulf.cli.options import ClusterOption, JsonOption
from wulf.cli.options import cluster as resolve
from wulf.cli.set_values import ConfirmOption, changing, deadline, show
from wulf.errors import EXIT_ERROR, UsageError
from wulf.nodeset import fold
from wulf.procedure import change

_CHANGE = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")


def command(
    to: Annotated[
        str,
        typer.Option(
            "--to", help="original, or the change (see 'wulf status') that is undone with all later ones."
        ),
    ] = "original",
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    confirm_within: ConfirmOption = "60s",
    json: JsonOption = False,
) -> None:
    """Put back, exactly, what confirmed changes have changed: live values and stored files.

    It is a change as any other: journalled, confirmed over a new connection, all nodes or none.
    """
    end_gently()
    if to != "original" and not _CHANGE.fullmatch(to):
        raise UsageError(f"--to {to!r}: 'original' or the name of a change, as 'wulf status' lists them")
    config = resolve(cluster)
    chosen = list(config.nodes) if nodes is None else config.select(nodes)
    with change.reach(config) as (_, guards), changing(json=json) as say:
        outcome = apply.rollback(guards, chosen, to, deadline_s=deadline(confirm_within), watch=say)
    if not json and outcome.kept:
        back = [node.node for node in outcome.nodes if node.state == "confirmed"]
        sys.stdout.write(
            f"put back on {fold(back)}, confirmed over a new connection\n" if back else "nothing is set\n"
        )
    else:
        show(outcome, json=json)
    if not outcome.kept:
        raise typer.Exit(EXIT_ERROR)
