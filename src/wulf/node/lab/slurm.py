"""Slurm in a virtual cluster: munge and slurmd on every node, slurmctld on the first, a directory that all share."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from importlib import resources
from pathlib import Path

from wulf.node.lab import system, topology
from wulf.node.lab.topology import Node, Topology

PARTITION = "lab"
#: Prints how many nodes can be allocated.
READY = ("sh", "-c", "sinfo --noheader --Node --states=idle | wc -l")
_KEY_BYTES = 1024
#: What Slurm and munge keep between boots, which of the host's would be another cluster's: path → owner.
_OWN_DIRECTORIES = {
    "etc/munge": "munge",
    "etc/slurm": "root",
    "var/lib/munge": "munge",
    "var/log/munge": "munge",
    "var/lib/slurm": "slurm",
    "var/lib/slurm/slurmctld": "slurm",
    "var/lib/slurm/slurmd": "slurm",
}


def prepare(directory: Path, whole: Topology) -> None:
    """Make what all nodes have in common: munge's key, and a cluster file for the nodes in their shared directory."""
    key = directory / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(_KEY_BYTES))
    (directory / topology.SHARED.lstrip("/") / "cluster.toml").write_text(topology.cluster_toml(whole, None))


def install(upper: Path, whole: Topology, directory: Path) -> None:
    """Write a node's key and configuration into its writable layer, and the ``wulf`` of this process into its PATH."""
    for path, owner in _OWN_DIRECTORIES.items():
        made = upper / path
        made.mkdir(parents=True, exist_ok=True)
        os.setxattr(made, "trusted.overlay.opaque", b"y")
        made.chmod(0o755 if owner != "munge" else 0o700)
        shutil.chown(made, owner, pwd.getpwnam(owner).pw_gid)
    key = upper / "etc/munge/munge.key"
    shutil.copy(directory / "munge.key", key)
    key.chmod(0o600)
    shutil.chown(key, "munge", pwd.getpwnam("munge").pw_gid)
    (upper / "etc/slurm/slurm.conf").write_text(configuration(whole))
    program = upper / "usr/local/bin/wulf"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m wulf.start "$@"\n')
    program.chmod(0o755)


def units(whole: Topology, node: Node) -> list[str]:
    """Return the services of a node."""
    head = ["slurmctld.service"] if node == whole.nodes[0] else []
    return ["munge.service", "slurmd.service", *head]


def binds() -> list[str]:
    """Return the options of systemd-nspawn that show a node the program that runs here."""
    places = {Path(place).resolve() for place in (sys.prefix, sys.base_prefix, _sources())}
    hidden = sorted(str(place) for place in places if system.is_hidden(place))
    return [f"--bind-ro={place}" for place in hidden]


def _sources() -> Path:
    """Return the directory of this package: of a checkout the whole, with the probe's sources."""
    package = Path(str(resources.files("wulf"))).resolve()
    checkout = package.parents[1]
    return checkout if (checkout / "native").is_dir() else package


def configuration(whole: Topology) -> str:
    """Return ``slurm.conf``.

    Processes are tracked by their parents: a control group of a node is not Slurm's to divide. A node has the CPUs
    that the lab gave it, whatever its kernel shows of the host's.
    """
    head = whole.nodes[0]
    lines = [
        "ClusterName=lab",
        f"SlurmctldHost={head.name}({head.address})",
        "SlurmUser=slurm",
        "AuthType=auth/munge",
        "MpiDefault=none",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerType=sched/builtin",
        "AccountingStorageType=accounting_storage/none",
        "JobCompType=jobcomp/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MailProg=/bin/true",
        "StateSaveLocation=/var/lib/slurm/slurmctld",
        "SlurmdSpoolDir=/var/lib/slurm/slurmd",
        "SlurmdParameters=config_overrides",
        # A node that was switched off and on again is used again.
        "ReturnToService=2",
        "KillWait=30",
        *(
            f"NodeName={node.name} NodeAddr={node.address} CPUs={len(node.cpus)} State=UNKNOWN"
            for node in whole.nodes
        ),
        f"PartitionName={PARTITION} Nodes=ALL Default=YES DefaultTime=00:30:00 MaxTime=1-00:00:00 State=UP",
    ]
    return "\n".join(lines) + "\n"
