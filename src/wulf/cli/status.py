"""``wulf status``: what changes have left on the nodes."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from wulf.cli.facts import NodesOption
from wulf.cli.options import ClusterOption, JsonOption, console
from wulf.cli.options import cluster as resolve
from wulf.errors import EXIT_FINDINGS
from wulf.nodeset import fold
from wulf.procedure import change
from wulf.records import NodeStatus
from wulf.text import printable

#: The last changes, so many.
_SHOWN = 12


def command(
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    log: Annotated[bool, typer.Option("--log", help="Also the last lines of every guard's log.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what wulf has set on the nodes, by which change, and what differs from the original state.

    Also ends what a dead controller or a reboot has left open. Exit code 3 when a node did not answer, a change is
    not at its end, or something could not be put back.
    """
    config = resolve(cluster)
    chosen = list(config.nodes) if nodes is None else config.select(nodes)
    with change.reach(config) as (_, guards):
        found = change.status(guards, chosen)
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n")
    else:
        show(found, log=log)
    if any(status.error or _open(status) for status in found):
        raise typer.Exit(EXIT_FINDINGS)


def show(found: list[NodeStatus], *, log: bool) -> None:
    """Print the states, nodes that agree together."""
    out = console()
    groups: dict[tuple[str, ...], list[str]] = {}
    for status in found:
        groups.setdefault(tuple(_lines(status)), []).append(status.node)
    for lines, nodes in groups.items():
        out.print(f"{fold(nodes)}:", style="bold", markup=False)
        for line in lines:
            out.print(f"  {printable(line, 300)}", markup=False)
    for line in _journal(found):
        out.print(printable(line, 400), markup=False)
    if log:
        for status in found:
            for line in status.log:
                out.print(f"{status.node}: {printable(line, 300)}", markup=False)


def _lines(status: NodeStatus) -> list[str]:
    if status.error:
        return [f"no answer: {status.error}"]
    lines = []
    if status.owner is not None:
        lines.append(f"taken by {status.owner} since {status.owned_s} s, for {status.lease_s} s more at most")
    for value in status.settings:
        if value.kind in ("stored", "unit"):
            state = "in place" if value.differs else "as it was before"
            lines.append(f"{value.target}: {state}")
        elif value.differs:
            kept = "" if value.now == value.wanted else f" (set to {value.wanted})"
            lines.append(f"{value.knob} = {value.now}{kept}")
        else:
            lines.append(f"{value.knob} = {value.now}: as it was before")
    return lines or ["nothing is set"]


def _journal(found: list[NodeStatus]) -> list[str]:
    """Return a line for each of the last changes."""
    groups: dict[tuple[str, str], list[str]] = {}
    for status in found:
        back = _rolled_back(status)
        for entry in status.journal:
            steps = f"{entry.steps} steps" if entry.steps > 1 else "1 step"
            what = f"rollback to {entry.rollback_to}, " if entry.rollback_to is not None else ""
            boot = "" if entry.this_boot else ", before the last boot"
            since = f", rolled back by {back[entry.change]}" if entry.change in back else ""
            text = f"by {entry.owner}, {what}{steps}{boot}: {entry.state}{since}"
            groups.setdefault((entry.change, text), []).append(status.node)
    rows = sorted(groups.items())[-_SHOWN:]
    return ["", "changes:"] * bool(rows) + [
        f"  {name} on {fold(nodes)} {text}" for (name, text), nodes in rows
    ]


def _rolled_back(status: NodeStatus) -> dict[str, str]:
    """Change → the confirmed rollback that took it back."""
    found: dict[str, str] = {}
    for number, entry in enumerate(status.journal):
        if entry.rollback_to is None or not entry.state.startswith("confirmed"):
            continue
        earlier = [one.change for one in status.journal[:number] if one.state.startswith("confirmed")]
        if entry.rollback_to in earlier:
            earlier = earlier[earlier.index(entry.rollback_to) :]
        found |= {change: entry.change for change in earlier if change not in found}
    return found


def _open(status: NodeStatus) -> bool:
    return any(not entry.state.startswith(("confirmed", "undone")) for entry in status.journal)
