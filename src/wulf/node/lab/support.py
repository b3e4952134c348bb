"""Whether this machine can run a virtual cluster, and what to do when it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from wulf.node.lab import system
from wulf.node.lab.cluster import directory

#: Program → Debian package that has it.
_PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "systemctl": "systemd",
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "taskset": "util-linux",
    "mount": "mount",
    "dbus-daemon": "dbus",
}
#: The same, of a cluster with Slurm.
_SLURM = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "srun": "slurm-wlm",
    "munged": "munge",
}


def supported(*, slurm: bool = False) -> list[str]:
    """List what is missing, each with how to get it; empty when a virtual cluster can be raised here."""
    programs = _PROGRAMS | _SLURM if slurm else _PROGRAMS
    return [*_missing_rights(), *_missing_programs(programs), *_missing_kernel()]


def _missing_rights() -> list[str]:
    return [] if os.geteuid() == 0 else ["root: run it with sudo"]


def _missing_programs(programs: Mapping[str, str]) -> list[str]:
    missing = system.missing_programs(programs)
    if not Path("/lib/systemd/systemd").exists():
        missing.append("systemd inside the nodes: apt-get install systemd")
    return missing


def _missing_kernel() -> list[str]:
    missing = []
    if not Path("/proc/self/ns/net").exists():
        missing.append("network namespaces: a kernel with CONFIG_NET_NS")
    elif os.geteuid() == 0 and shutil.which("ip"):
        # Tried, because a container or a lean kernel may refuse what the files in /proc promise.
        refusal = system.try_network()
        if refusal:
            missing.append(f"namespaces, bridges and virtual cables (veth): {refusal}")
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        missing.append("overlayfs: a kernel with CONFIG_OVERLAY_FS ('modprobe overlay')")
    elif _file_system_of(directory()) == "overlay":
        missing.append(f"a directory that is not on overlayfs itself: set WULF_LAB_DIR ({directory()} is)")
    return missing


def _file_system_of(path: Path) -> str:
    """Type of the file system that `path` is, or would be, on."""
    best, kind = "", "unknown"
    with Path("/proc/self/mountinfo").open() as mounts:
        for line in mounts:
            fields, _, rest = line.partition(" - ")
            point = fields.split()[4]
            if (str(path) + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                best, kind = point, rest.split()[0]
    return kind
