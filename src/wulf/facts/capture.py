"""Run the capture scripts on nodes. The scripts only read; nothing is installed or left behind."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from wulf.errors import UsageError
from wulf.facts.context import Snapshot, read_snapshot
from wulf.facts.parse import record
from wulf.ports import NodeResult, Transport
from wulf.records import NodeRecord
from wulf.text import printable


def capture(
    transport: Transport, nodes: Sequence[str], interface: str | None, *, timeout_s: float = 60.0
) -> list[NodeRecord]:
    """Facts of every node, in the order of `nodes`; a node that does not answer says why."""
    results = _run("capture.sh", transport, nodes, interface, timeout_s)
    return [record(results[node], interface) for node in nodes]


def snapshot(
    transport: Transport, nodes: Sequence[str], interface: str | None, *, timeout_s: float = 20.0
) -> list[Snapshot]:
    """Counters of every node now; two of them around a launch give its context (`wulf.facts.context`)."""
    results = _run("context.sh", transport, nodes, interface, timeout_s)
    return [read_snapshot(results[node]) for node in nodes]


def _run(
    script: str, transport: Transport, nodes: Sequence[str], interface: str | None, timeout_s: float
) -> dict[str, NodeResult]:
    # The name becomes part of paths under /sys on the node.
    if interface is not None and ("/" in interface or interface.startswith((".", "-")) or not interface):
        raise UsageError(f"'{printable(interface, 40)}' is not the name of an interface")
    text = resources.files("wulf.facts").joinpath(script).read_bytes()
    arguments = [interface] if interface is not None else []
    return transport.run(["sh", "-s", "--", *arguments], nodes, timeout_s=timeout_s, stdin=text)
