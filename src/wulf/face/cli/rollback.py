"""``wulf rollback``: back to an earlier state."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_ERROR, EXIT_FINDINGS, UsageError
from wulf.base.nodeset import fold
from wulf.base.text import printable
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json
from wulf.face.cli.set_values import (
    AllowMissingOption,
    ConfirmOption,
    changing,
    deadline,
    show,
    show_missing,
    show_notes,
)
from wulf.face.cli.status import value_lines

if TYPE_CHECKING:
    from wulf.base.records import LeftValue, NodeStatus, Release
    from wulf.node.cluster.inventory import ClusterConfig

_CHANGE = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")


def command(
    change_name: Annotated[
        str | None, typer.Argument(metavar="[CHANGE]", help="With --abandon: this change alone.")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="original, or the change (see 'wulf settings status') that is undone with all later ones.",
        ),
    ] = "original",
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon", help="Show what changes that could not be put back have left behind, by node."
        ),
    ] = False,
    leave_as_is: Annotated[
        bool,
        typer.Option(
            "--leave-as-is", help="With --abandon: leave it like that for good; it is not tried again."
        ),
    ] = False,
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    confirm_within: ConfirmOption = "60s",
    allow_missing: AllowMissingOption = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    json: JsonOption = False,
) -> None:
    """Undo confirmed changes exactly: live values and stored files.

    It is a change like any other: journalled, confirmed over a new connection, all nodes or none. On a terminal it
    shows what will be put back, and asks first. What was stuck is tried again before anything else. A change that
    stays stuck ('wulf settings status' shows it) only blocks changes of the same settings; --abandon shows what it
    has left behind, and with --leave-as-is gives it up, node by node.

    Exit code 3 when --abandon finds something and --leave-as-is is not given.
    """
    from wulf.node.fleet.clusters import cluster as resolve

    _check(change_name, to, abandon=abandon, leave_as_is=leave_as_is)
    config = resolve(cluster)
    chosen = config.select(nodes)
    if abandon:
        _abandon(config, chosen, change_name, leave_as_is=leave_as_is, json=json)
    else:
        ask = sys.stdin.isatty() and not (yes or json)
        _roll_back(config, chosen, to, deadline(confirm_within), allow_missing, ask=ask, json=json)


def _roll_back(
    config: ClusterConfig,
    chosen: Sequence[str],
    to: str,
    deadline_s: int,
    allow_missing: int,
    *,
    ask: bool,
    json: bool,
) -> None:
    """Go back, and say what became of it."""
    from wulf.node.fleet import change_members

    with change_members.opened(config, chosen, allow_missing=allow_missing) as there:
        if ask and not _agreed(there.standing(), to):
            sys.stdout.write("nothing was changed\n")
            return
        with changing(json=json) as say:
            outcome = there.roll_back(to, deadline_s=deadline_s, watch=say)
    if not json and outcome.kept:
        back = [node.node for node in outcome.nodes if node.state == "confirmed"]
        sys.stdout.write(
            f"put back on {fold(back)}, confirmed over a new connection\n"
            if back
            else "nothing to put back\n"
        )
        show_notes(outcome)
        show_missing(outcome)
    else:
        show(outcome, json=json, failed="not rolled back")
    if not outcome.kept:
        raise typer.Exit(EXIT_ERROR)


def _agreed(found: Sequence[NodeStatus], to: str) -> bool:
    """Show what is set and goes, and ask."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for status in found:
        groups.setdefault(tuple(going(status, to)), []).append(status.node)
    for lines, nodes in groups.items():
        console().print(f"{fold(nodes)}:", style="bold", markup=False)
        for line in lines or ("nothing is put back",):
            console().print(f"  {printable(line, 300)}", markup=False)
    return typer.confirm("Put this back?", err=True)


def going(status: NodeStatus, to: str) -> list[str]:
    """Return the lines of what a node does not have any more after it."""
    if status.error:
        return [f"no usable answer: {status.error}"]
    changes = [entry.change for entry in status.journal]
    later = set(changes if to == "original" else changes[changes.index(to) :] if to in changes else [])
    return value_lines([value for value in status.settings if value.change in later])


def _check(change_name: str | None, to: str, *, abandon: bool, leave_as_is: bool) -> None:
    if to != "original" and not _CHANGE.fullmatch(to):
        raise UsageError(
            f"--to {to!r}: 'original' or the name of a change, as 'wulf settings status' lists them"
        )
    if change_name is not None and not abandon:
        raise UsageError(f"{change_name!r}: say --to {change_name} to go back, or --abandon to give it up")
    if change_name is not None and change_name != "history" and not _CHANGE.fullmatch(change_name):
        raise UsageError(f"{change_name!r} is not the name of a change, as 'wulf settings status' lists them")
    if leave_as_is and not abandon:
        raise UsageError("--leave-as-is needs --abandon")
    if abandon and to != "original":
        raise UsageError("--abandon puts nothing back: it takes no --to")


def _abandon(
    config: ClusterConfig, chosen: Sequence[str], change_name: str | None, *, leave_as_is: bool, json: bool
) -> None:
    """Print what stuck changes have left where, give them up if that is wanted, and end with the exit code for it."""
    from wulf.node.fleet import abandonment, change

    with change.open_guards(config) as (_, guards):
        found = abandonment.look(guards, chosen, change_name)
        if leave_as_is:
            found = abandonment.release(guards, found)
    if json:
        print_json(found)
    else:
        show_releases(found, leave_as_is=leave_as_is)
    if any(one.error for one in found):
        raise typer.Exit(EXIT_ERROR)
    if any(not one.released for one in found):
        raise typer.Exit(EXIT_FINDINGS)


def show_releases(found: list[Release], *, leave_as_is: bool) -> None:
    """Print what stuck changes leave, nodes that agree together."""
    out = console()
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        groups.setdefault(tuple(_release_lines(one)), []).append(one.node)
    for (head, *lines), nodes in groups.items():
        out.print(f"{fold(nodes)}: {printable(head, 500)}", markup=False)
        for line in lines:
            out.print(f"  {printable(line, 500)}", markup=False)
    if not found:
        out.print("no change is stuck")
    elif not leave_as_is and any(not one.error for one in found):
        out.print(
            "nothing was done: 'wulf rollback --abandon --leave-as-is' leaves all of this as it is, for good"
        )


def _release_lines(one: Release) -> list[str]:
    if not one.change:
        return [f"no usable answer: {one.error}"]
    if one.error:
        return [f"change {one.change} was not given up: {one.error}"]
    head = f"change {one.change}: {'given up' if one.released else one.state}"
    return [head, *map(_left_line, one.left)] if one.left else [f"{head}; it leaves nothing"]


def _left_line(value: LeftValue) -> str:
    from wulf.base import access

    if value.knob == "-":
        return "its journal no longer says what it changed: check the node"
    name = value.target if value.kind in access.keepers() else value.knob
    return f"{name} stays {value.now} (before: {_before(value)})"


def _before(value: LeftValue) -> str:
    """Return the state before as words; that of a file has its content in it."""
    if value.kind not in ("stored", "mpi_parameter"):
        return value.before
    return {"absent": "absent", "file": "another file", "link": "a link"}.get(
        value.before.partition(":")[0], value.before
    )
