"""``wulf settings persist``: keep what is set over reboots."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, UsageError
from wulf.base.nodeset import fold
from wulf.base.request import RUNS
from wulf.base.text import printable
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, RunsOption, console, print_json
from wulf.face.cli.progress import staging
from wulf.face.cli.set_values import (
    AllowMissingOption,
    ConfirmOption,
    changing,
    deadline,
    show,
    show_missing,
    show_notes,
)

if TYPE_CHECKING:
    from wulf.base.records import ChangeOutcome
    from wulf.node.cluster.inventory import ClusterConfig
    from wulf.node.fleet import change_members, persist


def command(
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every file for every node, and change nothing.")
    ] = False,
    confirm_within: ConfirmOption = "60s",
    allow_missing: AllowMissingOption = 0,
    json: JsonOption = False,
    runs: RunsOption = RUNS,
) -> None:
    """Make what 'wulf settings set' or 'wulf tune' has set survive reboots.

    Writes the configuration files that the node uses (sysctl.d, systemd .link, NetworkManager, modprobe.d,
    nftables, a unit for the rest), marked as wulf's; 'wulf rollback' removes them without a trace. After a reboot
    'wulf settings verify' proves that they work.
    """
    from wulf.node.fleet import change_members
    from wulf.node.fleet.clusters import cluster as resolve

    if dry_run and json:
        raise UsageError("--dry-run has no --json: it prints files for people")
    config = resolve(cluster)
    chosen = config.select(nodes)
    if dry_run:
        with change_members.opened(config, chosen, allow_missing=allow_missing) as there:
            _show(_look(there).lasting, files=True)
        sys.stdout.write("\nnothing was changed (--dry-run)\n")
        return
    within_s = deadline(confirm_within)
    if not keep(config, chosen, runs, deadline_s=within_s, allow_missing=allow_missing, json=json):
        raise typer.Exit(EXIT_ERROR)


def keep(
    config: ClusterConfig,
    nodes: Sequence[str],
    runs: Path,
    *,
    deadline_s: int,
    allow_missing: int = 0,
    json: bool = False,
) -> bool:
    """Keep over reboots what is set on the nodes, and note where in the runs that found it.

    Returns
    -------
    bool
        Whether all nodes have the files; otherwise none has.
    """
    from wulf.node.fleet import change_members

    with change_members.opened(config, nodes, allow_missing=allow_missing) as there:
        what = _look(there)
        if not json:
            _show(what.lasting, files=False)
        with changing(json=json) as say:
            outcome = there.persist(what, runs, deadline_s=deadline_s, watch=say)
    _show_outcome(outcome, json=json)
    return outcome.kept


def _look(there: change_members.Members) -> change_members.SetSettings:
    with staging() as say:
        say("looking at what is set")
        return there.look_at_set()


def _show(what: persist.PersistencePlan, *, files: bool) -> None:
    """Print what keeps which knob where, nodes that agree together."""
    from wulf.node.fleet import persist

    out = console()
    rows: dict[tuple[str, str], list[str]] = {}
    for node, kept in what.nodes.items():
        for knob, place in kept.places.items():
            rows.setdefault((knob, place), []).append(node)
        for knob, why in kept.unpersistable.items():
            rows.setdefault((knob, f"NOT kept: {why}"), []).append(node)
        for note in kept.notes:
            rows.setdefault(("note", note), []).append(node)
    for (knob, place), nodes in rows.items():
        out.print(f"{knob}: {printable(place, 300)} on {fold(nodes)}", markup=False)
    if files:
        contents: dict[str, list[str]] = {}
        for node, kept in what.nodes.items():
            contents.setdefault(persist.readable(kept), []).append(node)
        for text, nodes in contents.items():
            out.print(f"\n{fold(nodes)}:\n{text}", markup=False)


def _show_outcome(outcome: ChangeOutcome, *, json: bool) -> None:
    if json:
        print_json(outcome)
    elif outcome.kept:
        show_notes(outcome)
        show_missing(outcome)
        sys.stdout.write(
            f"kept over reboots by change {outcome.change or '(nothing was needed)'}\n"
            "next: reboot the nodes, then wulf settings verify; wulf rollback takes the files away\n"
        )
    else:
        show(outcome, json=False)
