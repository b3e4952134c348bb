"""Which cluster a name means: a file, the virtual cluster, an allocation, this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from wulf.base import defaults
from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.node.cluster import inventory
from wulf.node.fleet.fields import AnyCluster
from wulf.node.lab import current as current_lab

_FILE = Path("cluster.toml")


def cluster(name: str | None) -> inventory.ClusterConfig:
    """Return the cluster that a user names; the one that is there, when none is named.

    Parameters
    ----------
    name
        A cluster file, ``lab``, ``slurm`` or ``local``.

    Raises
    ------
    UsageError
        No cluster is named and none can be found.
    """
    if name is None:
        name = _default_cluster()
    if not name:
        raise UsageError("--cluster is empty: name a cluster file, 'lab', 'slurm' or 'local'")
    if name == "lab":
        lab = current_lab()
        if lab is None:
            raise UsageError("no virtual cluster is up: 'wulf lab up --nodes 4' raises one")
        return inventory.parse(lab.cluster_toml(), "lab")
    if name == "slurm":
        return _slurm()
    if name == "local":
        return inventory.local()
    return inventory.load(Path(name))


def config_of(named: AnyCluster) -> inventory.ClusterConfig:
    """Return the cluster of a request: a configuration, or what a user names."""
    if isinstance(named, inventory.ClusterConfig):
        return named
    return cluster(None if named is None else str(named))


def distinct(config: inventory.ClusterConfig, nodes: str | None) -> list[str]:
    """Return the nodes that are chosen; those of this machine are one."""
    chosen = config.select(nodes)
    return chosen[:1] if config.transport == "local" else chosen


def _slurm() -> inventory.ClusterConfig:
    """Return the allocation; its nodes have what ./cluster.toml says of them, where that has them all."""
    config = _settings_for(inventory.from_slurm(os.environ))
    if config.mpi.launcher == "srun" and shutil.which("srun") is None:
        raise UsageError(
            f"--cluster slurm: there is no srun in PATH to start MPI jobs on {fold(config.nodes)}: "
            "name a cluster file with --cluster ('wulf init' writes one)"
        )
    return config


def _settings_for(allocation: inventory.ClusterConfig) -> inventory.ClusterConfig:
    if not _FILE.exists():
        return allocation
    whole = inventory.load(_FILE)
    outside = set(whole.nodes) - set(allocation.nodes)
    if len(whole.nodes) - len(outside) < len(allocation.nodes):
        return allocation
    mpi = msgspec.structs.replace(whole.mpi, launcher=whole.mpi.launcher or allocation.mpi.launcher)
    return msgspec.structs.replace(
        whole.without(outside), name=allocation.name, origin=allocation.origin, mpi=mpi
    )


def _default_cluster() -> str:
    if os.environ.get("WULF_CLUSTER"):
        return os.environ["WULF_CLUSTER"]
    if "SLURM_JOB_NODELIST" in os.environ:
        return "slurm"
    if _FILE.exists():
        return str(_FILE)
    if (usual := defaults.cluster()) is not None:
        return usual
    if current_lab() is not None:
        return "lab"
    raise UsageError(
        "which cluster? There is no ./cluster.toml, no Slurm allocation and no virtual cluster.\n"
        "  wulf lab up --nodes 4                     raises a virtual cluster to try things on\n"
        "  wulf init --nodes 'node[01-32]'           writes cluster.toml for your own\n"
        "  wulf measure --cluster local              measures this machine: TCP, UDP, MPI"
    )
