"""``wulf settings status``: what changes have left on the nodes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS
from wulf.base.nodeset import fold, fold_reasons
from wulf.base.text import count, printable
from wulf.face.cli.facts import NodesOption
from wulf.face.cli.options import ClusterOption, JsonOption, console, print_json

if TYPE_CHECKING:
    from wulf.base.records import NodeStatus, SetValue
    from wulf.node.cluster.inventory import ClusterConfig

#: The last lines of changes, so many.
_SHOWN = 12
#: So many changes that were undone, one after the other, become a line.
_FEWEST_FOLDED = 3


def command(
    cluster: ClusterOption = None,
    nodes: NodesOption = None,
    log: Annotated[
        bool, typer.Option("--log", help="Also show the last lines of every guard's log.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what wulf has set on the nodes, by which change, and what differs from the original state.

    Exit code 3 when a node gave no usable answer, a change is unfinished, something could not be put back, a
    confirmed setting does not hold, or a node was missing from a change.
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
        lines.append(f"locked by {status.owner} since {status.owned_s} s, {_lease(status.lease_s or 0)}")
    earlier = {entry.change for entry in status.journal if not entry.this_boot}
    lines += value_lines(status.settings, earlier)
    return [*(lines or ["nothing is set"]), *_behind_lines(status)]


def _lease(left_s: int) -> str:
    return f"for {left_s} s more at most" if left_s > 0 else f"which ran out {-left_s} s ago"


def _behind_lines(status: NodeStatus) -> list[str]:
    return [f"missed a change; refused until: {' && '.join(status.behind)}"] if status.behind else []


def _with_behind(config: ClusterConfig, found: Sequence[NodeStatus]) -> list[NodeStatus]:
    """Add what brings nodes level that were missing from a change."""
    import msgspec

    from wulf.node.fleet import missed_changes

    told = missed_changes.behind(config, [status.node for status in found])
    return [
        msgspec.structs.replace(status, behind=missed_changes.commands(config, told[status.node]))
        if status.node in told
        else status
        for status in found
    ]


def value_lines(values: Sequence[SetValue], earlier: Collection[str] = ()) -> list[str]:
    """Return what is set on a node, and whether it is as confirmed; `earlier` are the changes of an earlier boot."""
    often = Counter(value.knob for value in values)
    # Of a bond each card has the setting.
    return [_value_line(one, earlier, f" on {one.interface}" * (often[one.knob] > 1)) for one in values]


def _value_line(value: SetValue, earlier: Collection[str], where: str) -> str:
    from wulf.base import access
    from wulf.node.change.answers import confirmed

    name = value.target if value.kind in access.keepers() else f"{value.knob}{where}"
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
    undone: set[str] = set()
    for status in found:
        back = _rolled_back(status)
        undone |= {entry.change for entry in status.journal if entry.state.startswith("undone")}
        for entry in status.journal:
            steps = count(entry.steps, "step")
            what = f"rollback to {entry.rollback_to}, " if entry.rollback_to is not None else ""
            boot = "" if entry.this_boot else ", before the last boot"
            since = f", rolled back by {back[entry.change]}" if entry.change in back else ""
            text = f"by {entry.owner}, {what}{steps}{boot}: {entry.state}{since}"
            groups.setdefault((entry.change, text), []).append(status.node)
    rows = [(name, fold(nodes), text) for (name, text), nodes in sorted(groups.items())]
    lines = [line for _, line in _folded(rows, undone)][-_SHOWN:]
    return ["", "changes:"] * bool(lines) + lines


def _folded(rows: Sequence[tuple[str, str, str]], undone: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (change, line): of changes in a row that were all undone, as a search makes them, one line."""
    for alike, group in itertools.groupby(rows, lambda row: row[1:] if row[0] in undone else row):
        names = [name for name, _, _ in group]
        _, nodes, text = alike if len(alike) == 3 else ("", *alike)
        if len(names) < _FEWEST_FOLDED:
            yield from ((name, f"  {name} on {nodes} {text}") for name in names)
        else:
            yield (
                names[-1],
                f"  {names[0]} to {names[-1]} on {nodes}, {count(len(names), 'change')}, each {text}",
            )


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
