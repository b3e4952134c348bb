"""What a node printed → its facts. Pure; whatever the node prints, every fact has a value or a reason."""

from __future__ import annotations

from collections.abc import Sequence

from wulf.base.catalogue import Knob
from wulf.base.contracts import NodeResult
from wulf.base.records import FactValue, NodeRecord
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.readers import (
    boot_configuration,
    cost,
    expected,
    firewall,
    health,
    knobs,
    machine,
    mpi,
    network,
    nic,
    owners,
    services,
    settings,
    stack,
)
from wulf.node.facts.readers.nic import interface_address
from wulf.node.facts.tree import Tree


def record(result: NodeResult, interface: str | None, catalogue: Sequence[Knob]) -> NodeRecord:
    """Facts of a node from the result of the capture script, or why there are none."""
    if result.status != "ok":
        reached = result.status in ("exit", "garbage")
        reason = (result.reason or result.status) + _where(result)
        return NodeRecord(node=result.node, reachable=reached, error=reason)
    found = parse(result.node, result.stdout.decode("utf-8", "replace"), interface, catalogue)
    if "kernel.release" not in found.facts and "node.hostname" not in found.facts:
        return NodeRecord(
            node=result.node,
            reachable=True,
            error=f"{result.node}: its output does not hold the facts of a node",
        )
    return found


def _where(result: NodeResult) -> str:
    """Which part of the look a node had come to when its time was over."""
    if result.status != "timeout":
        return ""
    begun = cost.sections(Tree(result.stdout.decode("utf-8", "replace")))
    return (
        f": it had come to '{begun[-1][0]}', {begun[-1][1] - begun[0][1]:.0f} s after it began"
        if begun
        else ""
    )


def parse(node: str, text: str, interface: str | None, catalogue: Sequence[Knob]) -> NodeRecord:
    """Facts from what ``capture.sh`` printed.

    Parameters
    ----------
    interface
        The interface that the script was asked about; None when it was not asked about one.
    catalogue
        The knobs whose values are facts, too.
    """
    capture = NodeCapture(Tree(text), interface)
    facts = Facts()
    machine.add(facts, capture)
    health.add(facts, capture)
    nic.add(facts, capture)
    network.add(facts, capture)
    firewall.add(facts, capture)
    services.add(facts, capture)
    settings.add(facts, capture, catalogue)
    boot_configuration.add(facts, capture, catalogue)
    mpi.add(facts, capture)
    knobs.add(facts, capture, catalogue)
    stack.add(facts, capture, catalogue)
    expected.add(facts)
    owners.add(facts, capture, catalogue)
    cost.add(facts, capture)
    return NodeRecord(
        node=node,
        reachable=True,
        facts=facts.values,
        unknown=facts.unknown,
        absent=facts.absent,
        unsupported=facts.unsupported,
    )


def interfaces(facts: dict[str, FactValue]) -> dict[str, list[str]]:
    """Interface → addresses with prefix length, IPv4 first, from the fact ``network.addresses``."""
    result: dict[str, list[str]] = {}
    for word in str(facts.get("network.addresses") or "").split():
        name, _, address = word.partition("=")
        if interface_address(address) is not None:
            result.setdefault(name, []).append(address)
    for found in result.values():
        found.sort(key=lambda address: ":" in address)
    return result
