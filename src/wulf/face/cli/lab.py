"""``wulf lab``: a virtual cluster on this machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wulf.base.errors import LabError, UsageError
from wulf.base.nodeset import fold
from wulf.base.request import Option
from wulf.base.text import count
from wulf.face.cli.declared import flat
from wulf.face.cli.help_words import MISTAKE_NAMES, Nic
from wulf.face.cli.options import print_json, show_table

if TYPE_CHECKING:
    from wulf.node import lab
    from wulf.node.lab.topology import Fabric

app = typer.Typer(
    help="A virtual cluster on this machine, to try everything on without touching a real one.\n\n"
    "Nodes are systemd-nspawn containers that run this machine's system, each with a writable layer, or with "
    "--vm virtual machines with their own kernel and NIC driver, in a closed network (198.18.0.0/15): none of their "
    "packets can leave the machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
DEFAULT_NIC: Nic = "e1000e"
NodeArgument = Annotated[str, typer.Argument(metavar="NODE")]


@dataclass(frozen=True)
class Raising:
    """Raise a virtual cluster; do nothing when the same is up already."""

    nodes: Annotated[int | None, Option("Number of nodes. Default: 4, or as many as --cables needs.")] = None
    mtu: Annotated[int | None, Option("MTU of every link [bytes].")] = None
    rate: Annotated[str | None, Option("Speed of every link, such as 1gbit.")] = None
    delay: Annotated[
        str | None,
        Option(
            "One-way delay of every link, such as 50us; a message crosses two links. Uses netem or, where the kernel "
            "lacks it, a program that costs the nodes some CPU time and adds 10 to 20 µs."
        ),
    ] = None
    link: Annotated[
        Sequence[str], Option("One node's link: node03:rate=100mbit,mtu=9000. May be repeated.")
    ] = ()
    cables: Annotated[
        str | None,
        Option(
            "Direct cables between the nodes beside the switch: ring:N, mesh:AxB, torus:AxB, hypercube:D. "
            "--mtu, --rate and --delay do not apply to them.",
            metavar="SHAPE",
        ),
    ] = None
    fabric: Annotated[
        str | None,
        Option(
            "A routed fabric in place of the switch: leaf-spine:2x4 has 2 leaves and 4 spines; the ports of a flow "
            "between leaves decide which spine it takes (ECMP). Plant faults in it: 'wulf lab plant spine3:loss=1%'.",
            metavar="SHAPE",
        ),
    ] = None
    vm: Annotated[
        bool,
        Option(
            "Nodes are virtual machines (QEMU) with a kernel and a NIC driver of their own, booted from this "
            "machine's files: interrupt moderation, rings and offloads are real. Without --kvm they run in virtual "
            "time, in which every instruction takes equally long: slow, but hardly disturbed. Default: 2 nodes."
        ),
    ] = False
    nic: Annotated[
        Nic,
        Option(
            "With --vm: the NIC of every node. igb needs QEMU 8.0; e1000e moderates interrupts from 128 µs up."
        ),
    ] = DEFAULT_NIC
    bond: Annotated[
        bool, Option("With --vm: each node has two NICs, and its interface is a bond of them.")
    ] = False
    kvm: Annotated[bool, Option("With --vm: run them on this machine's processor, in real time.")] = False
    slurm: Annotated[
        bool,
        Option(
            "Run Slurm on the nodes, with its controller on node01; all nodes share the directory /shared and have "
            "wulf in PATH."
        ),
    ] = False

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Names the options.
        """
        if self.vm and (self.slurm or self.cables or self.delay):
            raise UsageError("--vm takes neither --slurm nor --cables nor --delay")
        if (self.kvm or self.bond or self.nic != DEFAULT_NIC) and not self.vm:
            raise UsageError("--nic, --bond and --kvm need --vm")
        if self.fabric is not None and (self.vm or self.cables):
            raise UsageError("--fabric takes neither --vm nor --cables")


@app.command()
@flat
def up(asked: Raising) -> None:
    from wulf.base.native import build
    from wulf.base.topology import shapes
    from wulf.node import lab
    from wulf.node.lab import topology
    from wulf.node.lab.vm import image, machine
    from wulf.page.escaping import CleanConsole

    missing = [*lab.supported(slurm=asked.slurm), *(image.lacking(asked.nic) if asked.vm else [])]
    if missing:
        raise LabError(
            "this machine cannot run a virtual cluster; missing:\n" + "\n".join(f"  {m}" for m in missing)
        )
    switches = topology.parse_fabric(asked.fabric) if asked.fabric is not None else None
    shape = shapes.parse(asked.cables) if asked.cables is not None else None
    usual = max(2 if asked.vm else 4, 2 * switches.leaves if switches is not None else 0)
    begin = time.monotonic()
    with CleanConsole(stderr=True).status("raising the virtual cluster") as status:
        raised, was_up = lab.up(
            asked.nodes if asked.nodes is not None else usual if shape is None else shape.ranks,
            topology.link(asked.mtu, asked.rate, asked.delay),
            dict(topology.parse_override(text) for text in asked.link),
            status.update,
            switches or (shape.edges() if shape is not None else []),
            slurm=asked.slurm,
            vm=machine.Vm(nic=asked.nic, is_kvm=asked.kvm, has_bond=asked.bond) if asked.vm else None,
            program=lambda name: str(build.build_program(name, None).path),
        )
    names = raised.layout.names()
    if was_up:
        sys.stdout.write(f"already up: {count(len(names), 'node')}, {names[0]} to {names[-1]}\n")
        return
    sys.stdout.write(
        f"up: {count(len(names), 'node')}, {names[0]} to {names[-1]}, in {time.monotonic() - begin:.1f} s\n"
    )
    _show_raised(raised, switches, slurm=asked.slurm)


def _show_raised(raised: lab.Lab, switches: Fabric | None, *, slurm: bool) -> None:
    """Say what a new lab has, and what to do with it."""
    from wulf.node.lab.slurm import PARTITION
    from wulf.node.lab.topology import SHARED

    for group in raised.layout.shared_cpus():
        sys.stdout.write(f"note: {', '.join(group)} share a CPU; figures between them are marked\n")
    if switches is not None:
        sys.stdout.write(
            f"{count(switches.leaves, 'leaf', 'leaves')}, {count(switches.spines, 'spine')}: "
            "wulf diagnose paths --cluster lab\n"
        )
    if raised.layout.cables:
        sys.stdout.write(
            f"{count(len(raised.layout.cables), 'direct cable')}: wulf audit topology --cluster lab\n"
        )
    sys.stdout.write(f"cluster file: {raised.cluster_file}\n")
    if slurm:
        first = raised.layout.names()[0]
        sys.stdout.write(f"Slurm: partition {PARTITION}, controller {first}, {SHARED} on all nodes\n")
        inner = shlex.quote(f"cd {SHARED} && wulf measure --submit --time=00:10:00")
        sys.stdout.write(f"next: wulf lab ssh {first} -- sh -c {inner}\n")
        return
    sys.stdout.write("next: wulf measure --cluster lab\n")


@app.command()
def status(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the nodes and their state."""
    from rich.table import Table

    from wulf.node import lab

    current = lab.remains()
    found = current.status() if current is not None else []
    if json:
        print_json(found)
        return
    if current is None:
        sys.stdout.write("no virtual cluster is up ('wulf lab up' raises one)\n")
        return
    if current.state.phase != "up":
        sys.stdout.write("the virtual cluster was left half-way: 'wulf lab down' removes it\n")
    table = Table("node", "address", "CPUs", "link", "state", box=None)
    for node in found:
        options = [f"mtu {node.mtu}" if node.mtu else "", node.rate or "", node.delay or ""]
        table.add_row(
            node.node,
            node.address,
            ",".join(str(cpu) for cpu in node.cpus),
            ", ".join(option for option in options if option) or "default",
            node.state,
        )
    show_table(table)


@app.command(context_settings={"ignore_unknown_options": True})
def ssh(
    node: NodeArgument, command: Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND…]")] = None
) -> None:
    """Open a shell on a node, or run a command there; its exit code is passed on.

    A single word is passed to a shell ('echo a; echo b'); several words are a command and its arguments.
    """
    words = command or []
    argv = _lab().ssh_argv(node, ["sh", "-c", *words] if len(words) == 1 else words)
    sys.stdout.flush()
    os.execvp(argv[0], argv)  # noqa: S606 - ssh takes this process's place, terminal and exit code


@app.command()
def reboot(node: NodeArgument) -> None:
    """Shut a node down cleanly and boot it again; what it wrote to its disk is kept."""
    begin = time.monotonic()
    _lab().reboot(node)
    sys.stdout.write(f"{node} is up again after {time.monotonic() - begin:.1f} s\n")


@app.command()
def kill(node: NodeArgument) -> None:
    """Pull a node's plug."""
    _lab().kill(node)
    sys.stdout.write(f"{node} is off ('wulf lab start {node}' switches it on)\n")


@app.command()
def start(node: NodeArgument) -> None:
    """Switch on a node that is off."""
    _lab().start(node)
    sys.stdout.write(f"{node} is up\n")


@app.command()
def plant(
    mistakes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MISTAKE]...",
            help=f"Of {', '.join(MISTAKE_NAMES)}; default: all that these nodes can have. Or the switch's port "
            "to a node: node01:queue=64KiB (of 100 Mbit/s, or another ,rate=1gbit), node01:none. With a fabric also "
            "a fault of a switch: spine3:loss=1%, spine3:delay=50us, spine3:rate=100mbit, spine3>leaf2:loss=1% (only "
            "what spine3 sends to leaf2); spine3:none removes it.",
        ),
    ] = None,
) -> None:
    """Make mistakes that real administrators make, on some nodes, for 'wulf audit' and 'wulf tune' to find."""
    from wulf.base.native import build
    from wulf.node.lab.fabric_faults import is_fault
    from wulf.node.lab.planted_faults import MISTAKES
    from wulf.node.lab.port_faults import is_port

    current = _lab()
    of_switches = [name for name in mistakes or [] if is_fault(name)]
    for fault in of_switches:
        current.plant_in_fabric(fault, lambda name: str(build.build_program(name, None).path))
        sys.stdout.write(f"{fault}: planted\n")
    of_ports = [name for name in mistakes or [] if is_port(name)]
    for port in of_ports:
        current.plant_at_port(port)
        sys.stdout.write(f"{port}: planted\n")
    mistakes = [name for name in mistakes or [] if name not in (*of_switches, *of_ports)]
    if (of_switches or of_ports) and not mistakes:
        return
    names = current.layout.names()
    has_drivers = current.layout.vm is not None
    usual = [name for name, mistake in MISTAKES.items() if has_drivers or not mistake.of_driver]
    for name in mistakes or usual:
        if name not in MISTAKES:
            raise UsageError(f"there is no mistake {name!r}; there are: {', '.join(MISTAKES)}")
        mistake = MISTAKES[name]
        if name not in usual:
            raise UsageError(
                f"{name} needs the driver of a real NIC: raise virtual machines, 'wulf lab up --vm'"
            )
        nodes = [names[number - 1] for number in mistake.nodes if number <= len(names)]
        for node in nodes:
            argv = current.ssh_argv(node, ["sh", "-c", mistake.script])
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
            if done.returncode != 0:
                raise LabError(f"{node}: {mistake.text}: {done.stderr.strip()}")
        sys.stdout.write(f"{fold(nodes)}: {mistake.text}\n")


@app.command()
def down() -> None:
    """Take the virtual cluster down; nothing is left behind, even after a crash."""
    from wulf.node import lab

    current = lab.remains()
    if current is None:
        sys.stdout.write("no virtual cluster is up\n")
        return
    current.down()
    sys.stdout.write("down\n")


def _lab() -> lab.Lab:
    from wulf.node import lab

    current = lab.current()
    if current is None:
        raise UsageError("no virtual cluster is up: 'wulf lab up' raises one")
    return current
