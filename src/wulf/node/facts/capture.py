"""Run the capture scripts on nodes. The scripts only read; nothing is installed or left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources

from wulf.base.catalogue import Knob, parameters, paths
from wulf.base.contracts import NodeResult, Transport
from wulf.base.errors import UsageError
from wulf.base.interfaces import Interface, by_interface, interface_of
from wulf.base.records import NodeRecord
from wulf.base.text import printable
from wulf.node.facts.context import Snapshot, read_snapshot
from wulf.node.facts.parse import record

#: How long a look at a node may take [s]: at an emulated one it took 33 s alone and 50 s beside other work.
LOOK_S = 120.0


def capture(
    transport: Transport,
    nodes: Sequence[str],
    interface: Interface,
    catalogue: Sequence[Knob],
    *,
    timeout_s: float = LOOK_S,
    taken: Callable[[NodeResult], None] | None = None,
) -> list[NodeRecord]:
    """Facts of every node, in the order of `nodes`; a node that does not answer says why.

    Parameters
    ----------
    catalogue
        The knobs whose values are wanted.
    taken
        Gets what each node printed, as soon as it has come.
    """
    found: dict[str, NodeRecord] = {}

    def take(result: NodeResult) -> None:
        if taken is not None:
            taken(result)
        found[result.node] = record(result, interface_of(interface, result.node), catalogue)

    script = scripts("capture.sh")
    for name, named in by_interface(interface, nodes).items():
        arguments = [_checked(name), *paths(catalogue), *parameters(catalogue)]
        transport.run(["sh", "-s", "--", *arguments], named, timeout_s=timeout_s, stdin=script, each=take)
    return [found[node] for node in nodes]


def snapshot(
    transport: Transport, nodes: Sequence[str], interface: Interface, *, timeout_s: float = 20.0
) -> list[Snapshot]:
    """Counters of every node now; two of them around a launch give its context (`wulf.node.facts.context`)."""
    script = scripts("energy.sh", "context.sh")
    results: dict[str, NodeResult] = {}
    for name, named in by_interface(interface, nodes).items():
        arguments = [_checked(name)] if name is not None else []
        results |= transport.run(["sh", "-s", "--", *arguments], named, timeout_s=timeout_s, stdin=script)
    return [read_snapshot(results[node]) for node in nodes]


def scripts(*names: str) -> bytes:
    """Return scripts of this folder, one after the other, for a shell on a node."""
    return b"".join(resources.files("wulf.node.facts").joinpath(name).read_bytes() for name in names)


def _checked(interface: str | None) -> str:
    """Return the interface's name, which becomes part of paths under /sys on the node."""
    if interface is None:
        return ""
    if "/" in interface or interface.startswith((".", "-")) or not interface:
        raise UsageError(f"'{printable(interface, 40)}' is not the name of an interface")
    return interface
