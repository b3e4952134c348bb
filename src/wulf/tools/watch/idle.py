"""Which nodes may be measured: Slurm's idle ones, or those on which nobody does anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from wulf.base.errors import SchedulerError
from wulf.base.nodeset import fold
from wulf.node.cluster import slurm_nodes
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.transport import open_transport
from wulf.node.facts import idle
from wulf.node.fleet import allocation

Scheduler = Literal["auto", "slurm", "none"]
#: Added to the budget, for what comes before and after the measuring [s].
_BESIDE_S = 180.0
_OF_A_JOB = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST")


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be measured now, and why others may not."""

    nodes: list[str]
    #: Node → why not.
    busy: dict[str, str]


def by_slurm(config: ClusterConfig, how: Scheduler) -> bool:
    """Whether Slurm is to be asked for nodes: it has these, and this is not one of its jobs."""
    if how == "none" or allocation.current() is not None:
        return False
    if how == "slurm":
        return True
    if shutil.which("sinfo") is None:
        return False
    try:
        return set(config.nodes) <= set(slurm_nodes.states())
    except SchedulerError:
        return False


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


@contextmanager
def held(nodes: Sequence[str], budget_s: float, options: Sequence[str], *, slurm: bool) -> Iterator[None]:
    """Have the nodes to oneself, where Slurm gives them away: this process then is as if in a job of these nodes.

    Raises
    ------
    SchedulerError
        They are not idle any more.
    """
    if not slurm:
        yield
        return
    with slurm_nodes.allocation(nodes, budget_s + _BESIDE_S, options) as (job, folded):
        before = {name: os.environ.get(name) for name in _OF_A_JOB}
        os.environ.update(zip(_OF_A_JOB, (job, folded or fold(nodes)), strict=True))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
