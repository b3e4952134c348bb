"""``wulf init``: look at the nodes and write the cluster file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import EXIT_FINDINGS, TransportError, UsageError
from wulf.base.nodeset import fold, reasons_text
from wulf.base.text import count, printable

if TYPE_CHECKING:
    from wulf.base.contracts import Transport
    from wulf.base.interfaces import Interface
    from wulf.base.records import NodeRecord

RESOLVE_TIMEOUT_S = 30.0


def command(
    nodes: Annotated[str, typer.Option(help="Node set, such as 'node[01-32]' or 'n[1-8],gpu1'.")],
    interface: Annotated[
        str | None,
        typer.Option(help="Interface to measure. Default: the one that the nodes' names resolve to."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path("cluster.toml"),
    ssh_config: Annotated[
        Path | None, typer.Option(help="ssh configuration to use instead of your own (ssh -F).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file when it exists.")] = False,
) -> None:
    """Inspect the nodes and write cluster.toml: interface, addresses, nodes that do not answer.

    Exit code 3 when a node does not answer; the file is written all the same, unless none does.
    """
    import msgspec

    from wulf.base.store import write_atomically
    from wulf.node.cluster import inventory
    from wulf.node.facts import init as choosing
    from wulf.node.fleet import preparation
    from wulf.page.escaping import CleanConsole

    if output.exists() and not force:
        raise UsageError(f"{output} exists: give another name with --output, or --force to replace it")
    config = inventory.from_nodes(
        nodes, interface=interface, ssh_config=str(ssh_config.resolve()) if ssh_config else None
    )
    say = CleanConsole(stderr=True).print
    with preparation.connect(config, list(config.nodes), lambda text: say(text, markup=False)) as (
        transport,
        records,
    ):
        choice = choosing.choose(records, _resolved(transport, records), interface)
        choice.notes.extend(_looked_around(transport, records, choice.interface))
    chosen = msgspec.structs.replace(config, interface=choice.interface, addresses=choice.addresses)
    write_atomically(output, inventory.render(chosen).encode())
    for note in choice.notes:
        sys.stdout.write(f"note: {printable(note)}\n")
    cluster_option = "" if output == Path("cluster.toml") else f" --cluster {output}"
    answered = [record.node for record in records if record.reachable]
    sys.stdout.write(
        f"written: {output} ({count(len(config.nodes), 'node')}: {fold(config.nodes)}; "
        f"interface {choice.interface or 'left open'})\nnext: wulf audit{cluster_option}\n"
    )
    if len(answered) < len(config.nodes):
        raise typer.Exit(EXIT_FINDINGS)


def _looked_around(transport: Transport, records: list[NodeRecord], interface: Interface) -> list[str]:
    """Let each node try what jobs will do with the next one: ssh, ports, names; say what does not work."""
    from wulf.node.facts import init as choosing
    from wulf.node.facts.capture import capture
    from wulf.node.facts.peers import look_around

    if interface is None:
        return []
    up = [record.node for record in records if record.reachable and record.error is None]
    return choosing.seen(look_around(transport, capture(transport, up, interface, []), interface))


def _resolved(transport: Transport, records: list[NodeRecord]) -> dict[str, str]:
    """Ask two nodes what the names of all others mean: a node's own name often means loopback to itself."""
    from wulf.node.facts import init as choosing

    up = [record.node for record in records if record.reachable]
    if not up:
        down = {record.node: record.error or "does not answer" for record in records}
        raise TransportError(f"no node answers: {reasons_text(down)}")
    names = [record.node for record in records]
    resolved: dict[str, str] = {}
    for asked in up[:2]:
        others = [name for name in names if name != asked]
        if others:
            answer = transport.run(choosing.resolve_argv(others), [asked], timeout_s=RESOLVE_TIMEOUT_S)[asked]
            text = answer.stdout.decode("utf-8", "replace")
            resolved |= {k: v for k, v in choosing.read_resolved(text).items() if k not in resolved}
    return resolved
