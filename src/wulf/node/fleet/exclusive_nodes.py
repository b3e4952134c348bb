"""Have idle nodes of Slurm to oneself for a while."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from wulf.base.errors import SchedulerError
from wulf.base.nodeset import fold
from wulf.node.cluster import slurm_nodes
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation

Scheduler = Literal["auto", "slurm", "none"]
_OF_A_JOB = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST")


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


@contextmanager
def held(nodes: Sequence[str], limit_s: float, options: Sequence[str], *, slurm: bool) -> Iterator[None]:
    """Have the nodes to oneself, where Slurm gives them away: this process then is as if in a job of these nodes.

    Raises
    ------
    SchedulerError
        They are not idle any more.
    """
    if not slurm:
        yield
        return
    with slurm_nodes.allocation(nodes, limit_s, options) as (job, folded):
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
