"""Raise, look at and take down the virtual cluster."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from wulf.base import text
from wulf.base.errors import LabError
from wulf.node.lab import connect, fabric_faults, leaf_spine, nodes, port_faults, slurm, system, topology
from wulf.node.lab.topology import Fabric, Link, Node, Topology
from wulf.node.lab.vm import image
from wulf.node.lab.vm.machine import Vm

#: Network of the switch that nobody is plugged into where there is a fabric.
FABRIC_PREFIX = 24
BOOT_TIMEOUT_S = 90
#: Machines whose instructions are emulated take longer.
VM_BOOT_TIMEOUT_S = 300
SLURM_TIMEOUT_S = 60
#: A lab raised by a wulf that kept it differently is taken down by the next `up`, and not used.
STATE_VERSION = 6
DEFAULT_DIRECTORY = "/var/lib/wulf/lab"
Progress = Callable[[str], None]


def _silent(_: str) -> None:
    pass


class VirtualNode(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``wulf lab status``."""

    node: str
    address: str
    cpus: list[int]
    mtu: int | None
    rate: str | None
    delay: str | None
    #: What its systemd says: running, degraded, starting … or ``off`` when there are no processes.
    state: str


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a lab between commands."""

    version: int
    phase: Literal["raising", "up"]
    namespace: str
    topology: Topology


class Lab:
    """A virtual cluster that is up (or was left half-way)."""

    def __init__(self, directory: Path, state: State) -> None:
        self.directory = directory
        self.state = state

    @property
    def layout(self) -> Topology:
        """The cluster's layout."""
        return self.state.topology

    @property
    def ssh_config(self) -> Path:
        """The ssh configuration that reaches the nodes by name."""
        return self.directory / "ssh_config"

    @property
    def cluster_file(self) -> Path:
        """The cluster file, for other programs than wulf and for a look."""
        return self.directory / "cluster.toml"

    def cluster_toml(self) -> str:
        """Text of the cluster file."""
        return topology.cluster_toml(self.layout, str(self.ssh_config))

    def ssh_argv(self, node: str, argv: Sequence[str] = ()) -> list[str]:
        """Command line that runs `argv` on a node, or opens a shell there."""
        self._node(node)
        return ["ssh", "-F", str(self.ssh_config), node, *([shlex.join(argv)] if argv else [])]

    def status(self) -> list[VirtualNode]:
        """Ask every node how it is."""
        names = self.layout.names()
        on = [name for name in names if self._processes(name)]
        answers = self._ask(on, ["systemctl", "is-system-running"], timeout_s=10)
        return [
            VirtualNode(
                node=node.name,
                address=node.address,
                cpus=node.cpus,
                mtu=node.link.mtu,
                rate=node.link.rate,
                delay=node.link.delay,
                state=(answers[node.name] or "no answer") if node.name in on else "off",
            )
            for node in self.layout.nodes
        ]

    def kill(self, name: str) -> None:
        """Pull a node's plug: nothing is synchronised or said goodbye to."""
        node = self._node(name)
        with _locked(self.directory):
            nodes.stop(self._directory(node.name), node.name, self.state.namespace, self.layout)

    def start(self, name: str) -> None:
        """Switch a node on and wait until it answers."""
        node = self._node(name)
        with _locked(self.directory):
            if self._processes(name):
                raise LabError(f"{name} is on already")
            self._boot([node])

    def start_all(self, progress: Progress) -> None:
        """Switch on the nodes that are off."""
        with _locked(self.directory):
            off = [node for node in self.layout.nodes if not self._processes(node.name)]
            if off:
                progress(f"switching on {', '.join(node.name for node in off)}")
                self._boot(off)

    def reboot(self, name: str) -> None:
        """Shut a node down in order, and boot it again; what it wrote to its disk is kept."""
        node = self._node(name)
        with _locked(self.directory):
            self._shut_down(node)
            self._boot([node])

    def plant_in_fabric(self, text: str, program: Callable[[str], str]) -> None:
        """Make a fault of a switch (`wulf.node.lab.fabric_faults.parse`); `program` as of `up`."""
        if self.layout.fabric is None:
            raise LabError(
                f"{text}: this virtual cluster has one switch; 'wulf lab up --fabric leaf-spine:2x4' has more"
            )
        fault = fabric_faults.parse(text, self.layout.fabric)
        with _locked(self.directory):
            leaf_spine.plant(self.state.namespace, fault, self.directory / "delay.log", program)

    def plant_at_port(self, text: str) -> None:
        """Make the port that a node is plugged into as a text says (`wulf.node.lab.port_faults.parse`)."""
        port = port_faults.parse(text, self.layout.names())
        inside = ["ip", "netns", "exec", self.state.namespace]
        with _locked(self.directory):
            system.attempt([*inside, "tc", "qdisc", "delete", "dev", f"vb-{port.node}", "root"])
            for argv in port.commands(self._node(port.node).link, has_netem=not self.layout.delayer):
                system.run([*inside, *argv])

    def down(self) -> None:
        """Remove everything; also what a crash has left."""
        with _locked(self.directory):
            _remove(self.directory, self.state)

    def raise_all(self, progress: Progress, program: Callable[[str], str]) -> None:
        """Prepare and boot all nodes; `program` as of `up`."""
        namespace = self.state.namespace
        # A fabric has a bridge of its own for each leaf: this one is then only there.
        prefix = topology.SWITCH.prefixlen if self.layout.fabric is None else FABRIC_PREFIX
        system.make_network(namespace, topology.bridge_of(0), topology.gateway(), prefix)
        for cable in self.layout.cables:
            system.make_bridge(namespace, cable.name)
        leaf_spine.make(namespace, self.layout)
        nodes.make_keys(self.directory)
        self._write_ssh()
        self.cluster_file.write_text(self.cluster_toml())
        nodes.shared(self.directory).mkdir()
        if self.layout.slurm:
            slurm.prepare(self.directory, self.layout)
        if self.layout.vm is not None:
            image.prepare(
                self.directory / nodes.VM_FILES, self.layout.vm, Path(program("wulf-lab-init")), progress
            )
        for node in self.layout.nodes:
            progress(f"preparing {node.name}")
            bridge = topology.bridge_of(node.leaf)
            nodes.prepare(self._directory(node.name), node, self.layout, self.directory, bridge)
        progress(f"booting {text.count(len(self.layout.nodes), 'node')}")
        self._boot(self.layout.nodes)
        if self.layout.slurm:
            progress("waiting for Slurm")
            self._await_slurm()

    def _await_slurm(self) -> None:
        """Return when all nodes can be allocated."""
        head = self.layout.names()[0]
        deadline = time.monotonic() + SLURM_TIMEOUT_S
        while self._ask([head], slurm.READY, timeout_s=15)[head] != str(len(self.layout.nodes)):
            if time.monotonic() > deadline:
                raise LabError(
                    f"not all nodes are idle in Slurm after {SLURM_TIMEOUT_S} s; {self._console(head)}\n"
                    "('journalctl -u slurmctld -u slurmd -u munge' in the nodes says more)"
                )
            time.sleep(0.5)

    def _write_ssh(self) -> None:
        script = self.directory / "connect.py"
        shutil.copy(connect.__file__, script)
        python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
        namespace = system.NETNS_DIRECTORY / self.state.namespace
        command = f"nsenter --net={namespace} {python} -S -E {shlex.quote(str(script))}"
        self.ssh_config.write_text(topology.ssh_config(self.layout, str(self.directory), command))
        public = (self.directory / "hostkey.pub").read_text()
        (self.directory / "known_hosts").write_text(topology.known_hosts(self.layout, public))

    def _boot(self, which: Sequence[Node]) -> None:
        for node in which:
            nodes.mount(self._directory(node.name))
            nodes.start(self._directory(node.name), node, self.state.namespace)
        begin = time.monotonic()
        limit_s = VM_BOOT_TIMEOUT_S if self.layout.vm is not None else BOOT_TIMEOUT_S
        waiting = [node.name for node in which]
        while waiting:
            for name in waiting:
                # The first process needs a moment to get into the node's control group.
                if time.monotonic() > begin + 2 and not self._processes(name):
                    raise LabError(f"{name} stopped while booting; {self._console(name)}")
            answers = self._ask(waiting, ["systemctl", "is-system-running", "--wait"], timeout_s=20)
            waiting = [name for name in waiting if answers[name] not in ("running", "degraded")]
            if waiting and time.monotonic() > begin + limit_s:
                raise LabError(
                    f"{', '.join(waiting)} did not boot within {limit_s} s; {self._console(waiting[0])}"
                )
            time.sleep(0.2 if waiting else 0)

    def _shut_down(self, node: Node) -> None:
        # Not `reboot`: the supervisor would boot it again before the file system could be checked.
        directory = self._directory(node.name)
        if self._processes(node.name):
            self._ask([node.name], ["systemctl", "poweroff"], timeout_s=10)
            deadline = time.monotonic() + (20 if self.layout.vm is None else 90)
            while self._processes(node.name) and time.monotonic() < deadline:
                time.sleep(0.1)
        nodes.stop(directory, node.name, self.state.namespace, self.layout)

    def _ask(self, names: Sequence[str], argv: Sequence[str], timeout_s: float) -> dict[str, str]:
        """Run a command on nodes at once; first word of each answer, empty when there is none."""
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
        processes = {
            name: subprocess.Popen(
                ["ssh", "-F", self.ssh_config, *options, name, shlex.join(argv)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for name in names
        }
        return {name: _answer(process, timeout_s) for name, process in processes.items()}

    def _console(self, name: str) -> str:
        log = self._directory(name) / "console.log"
        said = nodes.console(self._directory(name))
        if said:
            return f"the end of its console, {log}, says:\n{said}"
        has_kvm = self.layout.vm is not None and self.layout.vm.is_kvm
        hint = "; where the KVM of this machine starts no guest, leave out --kvm" if has_kvm else ""
        return f"its console, {log}, says nothing{hint}"

    def _processes(self, name: str) -> list[int]:
        return nodes.processes(self._directory(name), name, self.state.namespace)

    def _directory(self, name: str) -> Path:
        return self.directory / "nodes" / name

    def _node(self, name: str) -> Node:
        for node in self.layout.nodes:
            if node.name == name:
                return node
        raise LabError(f"there is no node {name!r} in the lab; it has {', '.join(self.layout.names())}")


def _answer(process: subprocess.Popen[str], timeout_s: float) -> str:
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ""
    return output.split()[0] if output.split() else ""


def directory() -> Path:
    """Where the lab is kept; ``WULF_LAB_DIR`` names another place, and so another lab."""
    return Path(os.environ.get("WULF_LAB_DIR") or DEFAULT_DIRECTORY).resolve()


def current() -> Lab | None:
    """Return the lab that is up; None when there is none or only the remains of one."""
    lab = remains()
    return lab if lab is not None and lab.state.phase == "up" and _alive(lab) else None


def remains() -> Lab | None:
    """Return the lab in the directory, in whatever state it is."""
    where = directory()
    try:
        state = msgspec.json.decode((where / "state.json").read_bytes(), type=State)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise LabError(f"the virtual cluster in {where} belongs to root: use sudo") from None
    except msgspec.DecodeError as error:
        raise LabError(
            f"{where}/state.json is damaged ({error}): remove it and the lab's directory"
        ) from error
    return Lab(where, state)


def _alive(lab: Lab) -> bool:
    return lab.state.version == STATE_VERSION and system.namespace_exists(lab.state.namespace)


def up(
    count: int = 4,
    link: Link | None = None,
    overrides: dict[str, Link] | None = None,
    progress: Progress = _silent,
    cables: Sequence[tuple[int, int]] | Fabric = (),
    *,
    slurm: bool = False,
    vm: Vm | None = None,
    program: Callable[[str], str] = lambda _: "",
) -> tuple[Lab, bool]:
    """Raise a lab.

    Parameters
    ----------
    cables
        Direct cables between nodes beside the switch: the numbers of the two nodes, from 0. Or a fabric in the place
        of one switch.
    slurm
        Whether the nodes run Slurm.
    vm
        Of nodes that are virtual machines.
    program
        Gives the path of a program of wulf's own by its name: ``wulf-lab-init``, the first one of a virtual machine,
        and where the kernel cannot hold frames back ``wulf-delay``; with nothing such delays are refused.

    Returns
    -------
    tuple of Lab and bool
        The lab, and whether it was up already.

    Raises
    ------
    LabError
        The machine cannot, another lab is up, or a node did not boot. Nothing is left behind.
    """
    switches, direct = (cables, ()) if isinstance(cables, Fabric) else (None, cables)
    cpus = sorted(os.sched_getaffinity(0))
    wanted = topology.plan(count, cpus, link or Link(), overrides, direct, switches)
    isolated = system.enable_cpusets()
    wanted = _within_kernel(msgspec.structs.replace(wanted, isolated=isolated, slurm=slurm, vm=vm), program)
    before = current()
    if before is None:
        return _raised(wanted, progress, program), False
    if before.layout != wanted:
        up_are = (
            f"another virtual cluster is up ({text.count(len(before.layout.nodes), 'node')}, other options)"
        )
        raise LabError(f"{up_are}: 'wulf lab down' takes it down")
    before.start_all(progress)
    return before, True


def _raised(wanted: topology.Topology, progress: Progress, program: Callable[[str], str]) -> Lab:
    """Raise a lab where none is up; what was raised is taken down again where that fails."""
    left = remains()
    if left is not None:
        progress("removing what an earlier lab left behind")
        left.down()
    where = directory()
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(where):
        lab = Lab(
            where,
            State(version=STATE_VERSION, phase="raising", namespace=namespace_of(where), topology=wanted),
        )
        _save(lab)
        try:
            lab.raise_all(progress, program)
            lab.state = msgspec.structs.replace(lab.state, phase="up")
            _save(lab)
        except BaseException as error:
            _undo(where, lab.state, error)
            raise
    return lab


def _within_kernel(wanted: topology.Topology, program: Callable[[str], str]) -> topology.Topology:
    """Return what is to be raised as this kernel can do it; refuse what it cannot before anything is raised."""
    links = [node.link for node in wanted.nodes]
    tbf = ["rate", "1gbit", "burst", "128kb", "latency", "20ms"]
    if any(link.rate for link in links) and not system.kernel_has_qdisc("tbf", tbf):
        raise LabError("--rate needs a kernel with tbf (CONFIG_NET_SCH_TBF), which this one lacks")
    if not any(link.delay for link in links) or system.kernel_has_qdisc("netem", ["delay", "1ms"]):
        return wanted
    delayer = program("wulf-delay")
    if not delayer or not system.TUN.exists():
        raise LabError(
            f"--delay needs a kernel with netem (CONFIG_NET_SCH_NETEM), or {system.TUN} for a program in its place: "
            "this machine has neither"
        )
    return msgspec.structs.replace(wanted, delayer=delayer)


def namespace_of(where: Path) -> str:
    """Name of the lab's namespace: its own for each directory, so that labs do not meet."""
    if str(where) == DEFAULT_DIRECTORY:
        return "wulf-lab"
    return f"wulf-lab-{hashlib.sha256(str(where).encode()).hexdigest()[:6]}"


def _save(lab: Lab) -> None:
    target = lab.directory / "state.json"
    partial = target.with_suffix(".new")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(lab.state)))
    partial.replace(target)


def _undo(where: Path, state: State, cause: BaseException) -> None:
    try:
        _remove(where, state)
    except (LabError, OSError) as error:
        raise LabError(
            f"{cause}\nand what was raised so far could not all be removed ({error}): run 'wulf lab down'"
        ) from cause


def _remove(where: Path, state: State) -> None:
    for node in state.topology.nodes:
        nodes.remove(where / "nodes" / node.name, node.name, state.namespace, state.topology)
    clients = (where / "ssh_config", where / "connect.py")
    system.end_processes(lambda: system.clients_of(*clients), "ssh to the virtual cluster")
    leaf_spine.remove(state.namespace, state.topology)
    if system.namespace_exists(state.namespace):
        system.run(["ip", "netns", "delete", state.namespace])
    system.remove_tree(where)
    if str(where) == DEFAULT_DIRECTORY and not any(where.parent.iterdir()):
        where.parent.rmdir()


@contextmanager
def _locked(where: Path) -> Iterator[None]:
    """One command at a time changes the lab. The lock lies beside its directory, which may go away."""
    path = Path("/run/lock") / f"{namespace_of(where)}.lock"
    path.parent.mkdir(exist_ok=True)  # a bare container has none
    busy = LabError("another 'wulf lab' is changing the virtual cluster: wait for it")
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before may have removed the file after we opened it: then this lock is worth nothing.
            if not os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                raise busy
        except (BlockingIOError, FileNotFoundError):
            raise busy from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
