"""Which nodes there are and how they are reached: from a file, Slurm, a node set, or one machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wulf.base.errors import ConfigError, InventoryError
from wulf.node.cluster import schema
from wulf.node.cluster.config import ClusterConfig, resolve
from wulf.node.cluster.names import expand, in_order
from wulf.node.cluster.pairs import pairs
from wulf.node.cluster.render import render

__all__ = ["ClusterConfig", "from_nodes", "from_slurm", "load", "local", "pairs", "parse", "render"]


def load(path: Path) -> ClusterConfig:
    """Read a cluster file.

    Raises
    ------
    ConfigError
        When the file cannot be read or something in it is wrong; names the file, the key and what is allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; `wulf init --nodes 'node[01-32]'` writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path), base=path.parent)


def parse(text: str, origin: str, base: Path | None = None) -> ClusterConfig:
    """Validate the text of a cluster file; relative paths in it are taken from `base`."""
    document = schema.decode(text, origin)
    try:
        return resolve(document, origin, base or Path())
    except (InventoryError, ConfigError) as error:
        raise ConfigError(f"{origin}: {error}") from error


def from_nodes(spec: str, *, interface: str | None = None, ssh_config: str | None = None) -> ClusterConfig:
    """Make a cluster of a node set, with the defaults for everything else."""
    cluster = schema.ClusterSection(nodes=spec, interface=interface)
    document = schema.Document(cluster=cluster, ssh=schema.SshSection(config=ssh_config))
    return resolve(document, "command line", Path())


def from_slurm(environment: Mapping[str, str], *, interface: str | None = None) -> ClusterConfig:
    """Make a cluster of the Slurm allocation this process runs in.

    Raises
    ------
    InventoryError
        When there is no allocation, or its node list cannot be parsed.
    """
    spec = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    if not spec:
        raise InventoryError(
            "not in a Slurm allocation (SLURM_JOB_NODELIST is not set); use salloc or sbatch, or name nodes"
        )
    try:
        nodes = expand(spec)
    except InventoryError as error:
        raise InventoryError(f"SLURM_JOB_NODELIST: {error}") from error
    job = re.sub(r"[^0-9A-Za-z_.-]", "", environment.get("SLURM_JOB_ID", ""))
    mpi = schema.MpiSection(launcher="srun")
    document = schema.Document(
        cluster=schema.ClusterSection(nodes=in_order(nodes), interface=interface), mpi=mpi
    )
    config = resolve(document, f"Slurm allocation {job}".strip(), Path())
    return msgspec.structs.replace(config, name=f"slurm-{job}" if job else "slurm")


def local() -> ClusterConfig:
    """One machine without ssh: sockets go over loopback, MPI as its library likes (shared memory, as a rule)."""
    nodes = ("local1", "local2")
    return ClusterConfig(
        name="local",
        nodes=nodes,
        transport="local",
        addresses=dict.fromkeys(nodes, "127.0.0.1"),
        origin="this machine",
    )
