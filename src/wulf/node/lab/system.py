"""The kernel's side of the virtual cluster: namespaces, mounts, control groups and processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base.errors import LabError
from wulf.base.signals import undisturbed
from wulf.base.text import last_line

COMMAND_TIMEOUT_S = 30
NETNS_DIRECTORY = Path("/run/netns")
#: Makes network devices that are programs.
TUN = Path("/dev/net/tun")
#: Control group hierarchies in which a node needs a group of its own: v1's systemd hierarchy, hybrid and pure v2.
_CGROUP_ROOTS = (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
_CPUSETS_V1 = Path("/sys/fs/cgroup/cpuset")
_CGROUP_V2 = Path("/sys/fs/cgroup")
#: Directories at the top of the file system that belong to the system; any other one is hidden from nodes.
_SYSTEM_DIRECTORIES = frozenset(
    {"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt", "opt", "proc"}
    | {"root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}
)
#: Directories that begin empty in a node: they hold what is the host's own business.
_EMPTY_DIRECTORIES = {
    "root": 0o700,
    "home": 0o755,
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    "var/log": 0o755,
    "var/lib/wulf": 0o700,
    "mnt": 0o755,
    "media": 0o755,
    "srv": 0o755,
}


def run(argv: Sequence[str], timeout_s: float = COMMAND_TIMEOUT_S, directory: Path | None = None) -> str:
    """Run a command and return its output; LabError with its last words when it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=directory
        )
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{' '.join(argv)} hangs (given up after {timeout_s:g} s)") from None
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {last_line(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout


def attempt(argv: Sequence[str]) -> bool:
    """Run a command that may fail; whether it did not."""
    try:
        run(argv)
    except LabError:
        return False
    return True


def path_of(name: str) -> str | None:
    """Return where a program is; those of the system's administration are not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def missing_programs(programs: Mapping[str, str]) -> list[str]:
    """Say which packages are missing, of programs and the Debian packages that have them."""
    packages = sorted({package for name, package in programs.items() if path_of(name) is None})
    return [f"the package {package}: apt-get install {package}" for package in packages]


def namespace_exists(name: str) -> bool:
    """Whether the named network namespace exists."""
    return (NETNS_DIRECTORY / name).exists()


def make_network(namespace: str, bridge: str, address: str, prefix: int) -> None:
    """Make a namespace with a bridge in it, and no way in or out."""
    run(["ip", "netns", "add", namespace])
    run(["ip", "-n", namespace, "link", "set", "lo", "up"])
    make_bridge(namespace, bridge)
    run(["ip", "-n", namespace, "address", "add", f"{address}/{prefix}", "dev", bridge])


def make_bridge(namespace: str, bridge: str) -> None:
    """Make a bridge: the switch, or a cable, whose two ends come and go with the nodes."""
    run(["ip", "-n", namespace, "link", "add", bridge, "type", "bridge"])
    run(["ip", "-n", namespace, "link", "set", bridge, "up"])


@contextmanager
def _trial() -> Iterator[str]:
    name = f"wulf-try-{os.getpid()}"
    run(["ip", "netns", "add", name])
    try:
        yield name
    finally:
        run(["ip", "netns", "delete", name])


def try_network() -> str:
    """Make a bridge and a cable in a namespace of their own; return why that fails, or nothing."""
    try:
        with _trial() as name:
            run(["ip", "-n", name, "link", "add", "trial0", "type", "bridge"])
            run(["ip", "-n", name, "link", "add", "trial1", "type", "veth", "peer", "name", "trial2"])
    except LabError as error:
        return str(error)
    return ""


def kernel_has_qdisc(kind: str, arguments: Sequence[str]) -> bool:
    """Whether the kernel can do a queueing discipline; tried on a loopback of its own."""
    with _trial() as name:
        try:
            run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", kind, *arguments])
        except LabError:
            return False
    return True


def hide_host(upper: Path) -> None:
    """Fill an overlay's upper layer so that homes, logs and foreign directories of the host are not seen."""
    for name, mode in _EMPTY_DIRECTORIES.items():
        directory = upper / name
        directory.mkdir(parents=True)
        os.setxattr(directory, "trusted.overlay.opaque", b"y")
        directory.chmod(mode)
    for entry in Path("/").iterdir():
        if entry.name not in _SYSTEM_DIRECTORIES:
            os.mknod(upper / entry.name, stat.S_IFCHR, os.makedev(0, 0))


def is_hidden(path: Path) -> bool:
    """Whether nodes do not see what the host has at `path`."""
    first, *_ = path.relative_to("/").parts
    return first not in _SYSTEM_DIRECTORIES or any(
        path.is_relative_to(f"/{one}") for one in _EMPTY_DIRECTORIES
    )


def mount_overlay(upper: Path, work: Path, root: Path) -> None:
    """Mount the host's file system with a writable layer on it."""
    options = f"lowerdir=/,upperdir={upper},workdir={work}"
    run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)])


def is_mounted(path: Path) -> bool:
    """Whether something is mounted at `path`."""
    with Path("/proc/self/mountinfo").open() as mounts:
        return any(line.split()[4] == str(path) for line in mounts)


def unmount(path: Path) -> None:
    """Unmount, waiting a little for the last process to let go."""
    for _ in range(50):
        if not is_mounted(path):
            return
        if subprocess.run(["umount", str(path)], capture_output=True, check=False).returncode != 0:
            time.sleep(0.1)
    run(["umount", "--lazy", str(path)])


def booted_with_systemd() -> bool:
    """Whether process 1 is systemd, which then has to be asked for control groups (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def _has_cpusets_v1() -> bool:
    # In a container the hierarchy may be there to be looked at only.
    return (_CPUSETS_V1 / "cgroup.procs").exists() and os.access(_CPUSETS_V1, os.W_OK)


def enable_cpusets() -> bool:
    """Whether a node can get a CPU set of its own, which an MPI library cannot leave when it binds its ranks."""
    if _has_cpusets_v1():
        return True
    controllers = _CGROUP_V2 / "cgroup.controllers"
    if not controllers.exists() or "cpuset" not in controllers.read_text().split():
        return False
    if not booted_with_systemd():
        try:
            (_CGROUP_V2 / "cgroup.subtree_control").write_text("+cpuset")
        except OSError:
            return False
    return True


def scope_argv(name: str, cpus: str) -> list[str]:
    """Words that run a command in a scope of systemd's, where process 1 is systemd; otherwise none."""
    if not booted_with_systemd():
        return []
    words = ["systemd-run", "--scope", "--quiet", "--collect", f"--unit={name}"]
    return [*words, "--property=Delegate=yes", f"--property=AllowedCPUs={cpus}"]


def make_cgroups(name: str, cpus: str) -> list[Path]:
    """Make control groups of a node's own, so that nodes do not fight over one.

    systemd-nspawn with ``--keep-unit`` makes the node's groups below the group it is started in.
    """
    made = []
    if _has_cpusets_v1():
        group = _CPUSETS_V1 / name
        group.mkdir(exist_ok=True)
        (group / "cpuset.cpus").write_text(cpus)
        (group / "cpuset.mems").write_text((_CPUSETS_V1 / "cpuset.effective_mems").read_text())
        made.append(group)
    if booted_with_systemd():
        return made
    for root in _cgroup_roots():
        group = root / name
        group.mkdir(exist_ok=True)
        if (group / "cpuset.cpus").exists():
            (group / "cpuset.cpus").write_text(cpus)
        made.append(group)
    return made


def _cgroup_roots() -> list[Path]:
    return [root for root in _CGROUP_ROOTS if (root / "cgroup.procs").exists()]


def remove_cgroup(name: str) -> None:
    """Remove a control group and those below it; they are empty once the processes are gone."""
    for root in [*_cgroup_roots(), _CPUSETS_V1]:
        for directory, _, _ in os.walk(root / name, topdown=False):
            for _ in range(20):
                try:
                    Path(directory).rmdir()
                except OSError:
                    time.sleep(0.05)
                else:
                    break


def processes_of(root: Path, group: str) -> list[int]:
    """Return the processes that belong to a node: in its control group, or with its root directory.

    They are found by what they are and not by remembered numbers, so that a number that was given to
    somebody else since is never touched.
    """
    inside = root.stat().st_dev if is_mounted(root) else None
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and _belongs(entry, inside, group)
    ]


def _belongs(process: Path, inside: int | None, group: str) -> bool:
    try:
        if (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return False  # it has ended, and only its parent does not know yet
        if any(_names_group(line, group) for line in (process / "cgroup").read_text().splitlines()):
            return True
        return inside is not None and (process / "root").stat().st_dev == inside
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # it ended while we looked, or is a kernel thread


def _names_group(line: str, group: str) -> bool:
    return not {group, f"{group}.scope"}.isdisjoint(line.rpartition(":")[2].split("/"))


def clients_of(ssh_config: Path, connect: Path) -> list[int]:
    """Return the ssh clients that use a configuration, and the helpers that connect for them.

    They hold connections into the lab's namespace, which would keep it alive.
    """
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
        except (FileNotFoundError, ProcessLookupError):
            continue
        if _is_client([os.fsdecode(word) for word in line.split(b"\0")], str(ssh_config), str(connect)):
            found.append(int(entry.name))
    return found


def _is_client(argv: Sequence[str], ssh_config: str, connect: str) -> bool:
    """Whether a command line is one of ssh with this configuration, or of its helper (ProxyCommand).

    ssh starts the helper by the user's shell, which is there for a moment: ``sh -c 'exec nsenter … connect.py …'``.
    """
    program = Path(argv[0]).name
    if program == "ssh":
        return ssh_config in argv
    if program.startswith(("nsenter", "python")):
        return connect in argv
    match argv:
        case [_, "-c", command, *_]:
            return command.startswith("exec ") and connect in command
    return False


def end_processes(find: Callable[[], list[int]], what: str) -> None:
    """Kill the processes that `find` returns until it returns none."""
    deadline = time.monotonic() + 20
    while pids := find():
        if time.monotonic() > deadline:
            raise LabError(f"processes {pids} of {what} do not end: see 'ps -fp {pids[0]}', then try again")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def remove_tree(path: Path) -> None:
    """Remove a directory, never through a mount."""
    if any(is_mounted(child) for child in [path, *path.glob("nodes/*/root")]):
        raise LabError(f"{path} still has something mounted in it; nothing was removed")
    shutil.rmtree(path, ignore_errors=False)


def spawn(argv: Sequence[str], log: Path, groups: Sequence[Path]) -> None:
    """Start a process in control groups; it outlives this one and is not its child."""
    join = " && ".join(f"echo 0 >{shlex.quote(str(group / 'cgroup.procs'))}" for group in groups) or ":"
    try:
        with undisturbed(), log.open("ab") as output:
            subprocess.run(
                ["/bin/sh", "-c", f'{join} && exec setsid --fork "$@"', "sh", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                check=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(
            f"cannot start {argv[0]} in a control group of its own ({log} may say why): {error}"
        ) from error
