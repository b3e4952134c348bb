"""One virtual node: its file system, its start and its end."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wulf.base.errors import LabError
from wulf.base.text import printable
from wulf.node.lab import slurm, system, topology
from wulf.node.lab.vm import image, machine

#: A machine's own disk; and in the lab's directory what all machines have.
DISK = "disk.img"
VM_FILES = "vm"
# Without the post-quantum key exchange: it takes most of a connection's CPU time, and nothing leaves this machine.
_SSHD_CONFIG = """\
KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxStartups 200:30:400
MaxSessions 200
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
"""

#: Starts the node again when it reboots (exit code 133), and plugs the outer ends of its cables in, which are
#: made anew each time.
_SUPERVISOR = """\
#!/bin/sh
# $1 root directory, $2 node name, $3 machine name; run inside the lab's network namespace
await() {
    tries=0
    until ip link show "$1" >/dev/null 2>&1; do
        tries=$((tries + 1)); [ "$tries" -lt 200 ] || exit 1
        sleep 0.05
    done
}
while :; do
    (
        await "vb-$2"
        {limits}
        {plug}
        {cables}
    ) &
    {run}
done
"""
_CONTAINER = """\
systemd-nspawn --quiet --directory="$1" --machine="$3" --network-veth-extra="vb-$2:host0" {veths}{binds}\\
        --register=no --keep-unit --boot --console=pipe --link-journal=no --resolv-conf=off --timezone=off
    [ $? -eq 133 ] || exit"""


def prepare(directory: Path, node: topology.Node, whole: topology.Topology, keys: Path, bridge: str) -> None:
    """Make a node's writable layer and mount it.

    Parameters
    ----------
    directory
        The node's own directory.
    keys
        The lab's directory, with ``key``, ``key.pub``, ``hostkey``, ``hostkey.pub`` and ``shared``; for Slurm what
        `wulf.node.lab.slurm.prepare` made, too.
    bridge
        The switch.
    """
    upper = directory / "upper"
    for part in ("upper", "work", "root"):
        (directory / part).mkdir(parents=True)
    system.hide_host(upper)
    _write_identity(upper / "etc", node, whole)
    _write_ssh(upper, whole, keys)
    plugs = whole.plugs(node.name)
    own = slurm.units(whole, node) if whole.slurm else []
    unit = topology.network_unit(node, [end for _, end in plugs], has_netem=not whole.delayer, vm=whole.vm)
    _write_units(upper / "etc/systemd/system", unit, own)
    if whole.slurm:
        slurm.install(upper, whole, keys)
    supervisor = directory / "supervisor"
    limits = topology.shaping(node.link, f"vb-{node.name}", has_netem=not whole.delayer)
    if node.link.mtu:
        limits.insert(0, f"ip link set dev vb-{node.name} mtu {node.link.mtu}")
    cables = [
        f"await {end.outside()}; ip link set {end.outside()} master {cable.name} up" for cable, end in plugs
    ]
    if whole.vm is not None:
        more = whole.vm.devices(node.name)[1:]
        cables += [f"await {device}; ip link set {device} master {bridge} up" for device in more]
    text = _SUPERVISOR.replace("{run}", _running(directory, node, whole, keys))
    plug = topology.plugging(node.link, node.name, bridge, whole.delayer)
    for part, lines in (("{limits}", limits), ("{plug}", plug), ("{cables}", cables)):
        text = text.replace(part, "\n        ".join(lines or [":"]))
    supervisor.write_text(text)
    supervisor.chmod(0o755)
    if whole.vm is not None:
        image.make_disk(upper, directory / DISK)
    mount(directory)


def _running(directory: Path, node: topology.Node, whole: topology.Topology, keys: Path) -> str:
    """Return the lines of a shell that run a node until it ends."""
    if whole.vm is not None:
        # It boots again by itself when it reboots.
        words = machine.argv(whole.vm, node.name, keys / VM_FILES, directory / DISK)
        return f"{shlex.join(words)}\n    exit"
    ends = [end for _, end in whole.plugs(node.name)]
    veths = "".join(f"--network-veth-extra={end.outside()}:{end.interface} " for end in ends)
    shown = [f"--bind={shared(keys)}:{topology.SHARED}", *(slurm.binds() if whole.slurm else [])]
    binds = " ".join(map(shlex.quote, shown)) + " "
    return _CONTAINER.replace("{veths}", veths).replace("{binds}", binds)


def shared(directory: Path) -> Path:
    """Return where the directory that the nodes of a lab share is, on this machine."""
    return directory / topology.SHARED.lstrip("/")


def mount(directory: Path) -> None:
    """Mount the node's file system; after a reboot of the host it has to be mounted again.

    A machine has a disk, and mounts it by itself.
    """
    if not (directory / DISK).exists() and not system.is_mounted(directory / "root"):
        system.mount_overlay(directory / "upper", directory / "work", directory / "root")


def _write_identity(etc: Path, node: topology.Node, whole: topology.Topology) -> None:
    etc.mkdir(exist_ok=True)
    (etc / "hostname").write_text(node.name + "\n")
    (etc / "hosts").write_text(topology.hosts_file(whole))
    (etc / "machine-id").write_text(os.urandom(16).hex() + "\n")
    (etc / "fstab").write_text("")
    (etc / "resolv.conf").write_text("# A virtual node has no name server: names are in /etc/hosts.\n")


def _write_ssh(upper: Path, whole: topology.Topology, keys: Path) -> None:
    server = upper / "etc/ssh"
    server.mkdir(parents=True)
    os.setxattr(server, "trusted.overlay.opaque", b"y")
    shutil.copy(keys / "hostkey", server / "ssh_host_ed25519_key")
    (server / "sshd_config").write_text(_SSHD_CONFIG)
    home = upper / "root/.ssh"
    home.mkdir(mode=0o700)
    shutil.copy(keys / "key.pub", home / "authorized_keys")
    shutil.copy(keys / "key", home / "id_ed25519")
    (home / "known_hosts").write_text(topology.known_hosts(whole, (keys / "hostkey.pub").read_text()))
    (home / "config").write_text(topology.node_ssh_config())
    for private in (server / "ssh_host_ed25519_key", home / "id_ed25519", home / "config"):
        private.chmod(0o600)


def _write_units(units: Path, network: str, own: Sequence[str]) -> None:
    enabled = enabled_units()
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True)
    for unit in topology.units_to_mask(enabled, own):
        (units / unit).symlink_to("/dev/null")
    for unit in topology.units_to_disable(enabled):
        for link in Path("/etc/systemd/system").glob(f"*.wants/{unit}"):
            hidden = units / link.relative_to("/etc/systemd/system")
            hidden.parent.mkdir(exist_ok=True)
            os.mknod(hidden, 0o020000, os.makedev(0, 0))
    (units / "default.target").symlink_to("/usr/lib/systemd/system/multi-user.target")
    (units / "wulf-lab-network.service").write_text(network)
    (wants / "wulf-lab-network.service").symlink_to("/etc/systemd/system/wulf-lab-network.service")
    for unit in own:
        (wants / unit).symlink_to(f"/usr/lib/systemd/system/{unit}")


def enabled_units() -> list[str]:
    """List the units that the host would start at boot."""
    query = ["list-unit-files", "--state=enabled,enabled-runtime", "--no-legend", "--no-pager"]
    listing = system.run(["systemctl", "--root=/", *query])
    return [line.split()[0] for line in listing.splitlines() if line.split()]


def start(directory: Path, node: topology.Node, namespace: str) -> None:
    """Boot the node; whether it answers is for the caller to find out."""
    machine = group(namespace, node.name)
    cpus = ",".join(str(cpu) for cpu in node.cpus)
    argv = [
        *system.scope_argv(machine, cpus),
        "taskset",
        "--cpu-list",
        cpus,
        "nsenter",
        f"--net={system.NETNS_DIRECTORY / namespace}",
        "env",
        # A node may set its own network's parameters, and nothing else of the host's kernel.
        "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network",
        str(directory / "supervisor"),
        str(directory / "root"),
        node.name,
        machine,
    ]
    system.spawn(argv, directory / "console.log", system.make_cgroups(machine, cpus))


def group(namespace: str, name: str) -> str:
    """Return the name of a node's control group, which is also its name as a machine of this host."""
    return f"{namespace}-{name}"


def processes(directory: Path, name: str, namespace: str) -> list[int]:
    """Return the node's processes; empty when it is off."""
    return system.processes_of(directory / "root", group(namespace, name))


def stop(directory: Path, name: str, namespace: str, whole: topology.Topology) -> None:
    """Pull the plug."""
    system.end_processes(lambda: processes(directory, name, namespace), name)
    # The kernel takes the cables away some time after the last process; booting again needs their names at once.
    taps = whole.vm.devices(name) if whole.vm is not None else [f"vb-{name}"]
    for device in (*taps, *(end.outside() for _, end in whole.plugs(name))):
        subprocess.run(["ip", "-n", namespace, "link", "delete", device], capture_output=True, check=False)
    system.remove_cgroup(group(namespace, name))
    if system.is_mounted(directory / "root"):
        # systemd-nspawn could not remove its own lock; it names it after the root directory.
        root = (directory / "root").stat()
        Path(f"/run/systemd/nspawn/locks/inode-{root.st_dev}:{root.st_ino}").unlink(missing_ok=True)
    for place in ("propagate", "unix-export"):
        leftover = Path("/run/systemd/nspawn") / place / group(namespace, name)
        if system.is_mounted(leftover):
            system.unmount(leftover)
        shutil.rmtree(leftover, ignore_errors=True)


def remove(directory: Path, name: str, namespace: str, whole: topology.Topology) -> None:
    """Pull the plug and take the node's file system away."""
    stop(directory, name, namespace, whole)
    system.unmount(directory / "root")


def console(directory: Path) -> str:
    """Return the end of what the node's console said."""
    try:
        return printable((directory / "console.log").read_bytes()[-1500:])
    except FileNotFoundError:
        return ""


def make_keys(directory: Path) -> None:
    """Make the lab's own key for logging in and the nodes' host key."""
    for name in ("key", "hostkey"):
        try:
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "wulf-lab", "-f", directory / name],
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise LabError(f"cannot make ssh keys in {directory}: {error}") from error
