"""``wulf settings status``: what changes have left on the nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.text import printable
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json

if TYPE_CHECKING:
    from wulf.base.records import NodeStatus, SetValue
    from wulf.node.cluster.inventory import ClusterConfig

#: The last changes, so many.
_SHOWN = 12


def command(
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    log: Annotated[bool, typer.Option("--log", help="Also the last lines of every guard's log.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what wulf has set on the nodes, by which change, and what differs from the original state.

    Exit code 3 when a node gave no answer that can be read, a change is not at its end, something could not be put
    back, a confirmed setting does not hold, or a node was missing from a change.
    """
    from wulf.node.fleet import change
    from wulf.node.fleet.clusters import cluster as resolve

    config = resolve(cluster)
    chosen = config.select(nodes)
    with change.open_guards(config) as (_, guards):
        found = _with_behind(config, change.status(guards, chosen))
    if json:
        print_json(found)
    else:
        show(found, log=log)
    if any(needs_a_look(status) for status in found):
        raise typer.Exit(EXIT_FINDINGS)


def show(found: list[NodeStatus], *, log: bool) -> None:
    """Print the states, nodes that agree together."""
    out = console()
    groups: dict[tuple[str, ...], list[str]] = {}
    unanswered = {status.node: status.error for status in found if status.error}
    reasons = {node: reason for nodes, reason in fold_reasons(unanswered) for node in nodes}
    for status in found:
        groups.setdefault(tuple(_lines(status, reasons.get(status.node, ""))), []).append(status.node)
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


def _lines(status: NodeStatus, reason: str = "") -> list[str]:
    if status.error:
        return [f"no usable answer: {reason}", *_behind_lines(status)]
    lines = []
    if status.owner is not None:
        lines.append(
            f"locked by {status.owner} since {status.owned_s} s, for {status.lease_s} s more at most"
        )
    earlier = {entry.change for entry in status.journal if not entry.this_boot}
    lines += [_value_line(value, earlier) for value in status.settings]
    return [*(lines or ["nothing is set"]), *_behind_lines(status)]


def _behind_lines(status: NodeStatus) -> list[str]:
    return [f"missed a change; refused until: {' && '.join(status.behind)}"] if status.behind else []


def _with_behind(config: ClusterConfig, found: Sequence[NodeStatus]) -> list[NodeStatus]:
    """Add what brings nodes level that were missing from a change."""
    import msgspec

    from wulf.node.fleet import level

    told = level.behind(config, [status.node for status in found])
    return [
        msgspec.structs.replace(status, behind=level.commands(config, told[status.node]))
        if status.node in told
        else status
        for status in found
    ]


def _value_line(value: SetValue, earlier: Collection[str]) -> str:
    """Return what is set, and whether it is as confirmed; `earlier` are the changes of an earlier boot."""
    from wulf.base import access
    from wulf.node.change.answers import confirmed

    name = value.target if value.kind in access.keepers() else value.knob
    if not value.holds:
        boot = ", before the last boot" if value.change in earlier else ""
        return f"{name} does NOT hold: {value.now} now, {confirmed(value)} confirmed{boot}"
    if value.kind in access.keepers():
        return f"{name}: {'in place' if value.differs else 'as it was before'}"
    if not value.differs:
        return f"{name} = {value.now}: as it was before"
    kept = "" if value.now == value.wanted else f" (set to {value.wanted})"
    return f"{name} = {value.now}{kept}"


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


def needs_a_look(status: NodeStatus) -> bool:
    """Whether somebody should look at the node: no answer, something is open, does not hold, or was missed."""
    return (
        bool(status.error or status.behind)
        or _open(status)
        or any(not value.holds for value in status.settings)
    )


def _open(status: NodeStatus) -> bool:
    return any(not entry.state.startswith(("confirmed", "undone", "abandoned")) for entry in status.journal)
