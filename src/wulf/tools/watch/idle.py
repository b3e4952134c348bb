"""Which nodes may be measured: Slurm's idle ones, or those on which nobody does anything."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wulf.node.cluster import slurm_nodes
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.transport import open_transport
from wulf.node.facts import idle


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be measured now, and why others may not."""

    nodes: list[str]
    #: Node → why not.
    busy: dict[str, str]


def find(config: ClusterConfig, nodes: Sequence[str], *, slurm: bool) -> Idle:
    """Return which of the nodes are idle now.

    Raises
    ------
    SchedulerError
        Slurm does not answer.
    """
    busy = _by_slurm(nodes) if slurm else _by_looking(config, nodes)
    return Idle(
        nodes=[node for node in nodes if not busy[node]],
        busy={node: why for node, why in busy.items() if why},
    )


def _by_slurm(nodes: Sequence[str]) -> dict[str, str]:
    waiting = slurm_nodes.waiting_for_nodes()
    if waiting:
        return dict.fromkeys(nodes, f"{waiting} of Slurm's jobs wait for nodes")
    states = slurm_nodes.states()
    return {
        node: "" if states.get(node) == "idle" else f"Slurm says {states.get(node, 'nothing of it')}"
        for node in nodes
    }


def _by_looking(config: ClusterConfig, nodes: Sequence[str]) -> dict[str, str]:
    transport = open_transport(config)
    try:
        return idle.look(transport, nodes)
    finally:
        transport.close()
