"""A guard whose node has programs of its own, and for each kind of access a step and what shows its effect."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.unit import ethtool_fake
from tests.unit.guard_place import Place
from tests.unit.test_access import SYSTEMCTL


class Node(Place):
    """A place with programs of its own and a boot that can be another one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        (self.run.parent / "boot_id").write_text("first\n")
        self.inside("mount", "--bind", "/run/boot_id", "/proc/sys/kernel/random/boot_id")
        self.done("lock", "me", "600")

    def inside(self, *words: str, stdin: str = "") -> str:
        argv = [*self.argv()[:4], "env", f"PATH={self.programs}:{os.environ['PATH']}", *words]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        return done.stdout

    def make(self, change: str, *steps: str) -> None:
        """Take steps `KNOB KIND INTERFACE TARGET=VALUE`, not confirmed."""
        plan = "".join(
            "\t".join([*step.partition("=")[0].split(" ", 3), step.partition("=")[2]]) + "\n"
            for step in steps
        )
        self.done("begin", change, "me", "600", stdin=plan)
        self.done("apply", change)

    def keep(self, change: str, *steps: str) -> None:
        self.make(change, *steps)
        self.done("confirm", change)

    def roll_back(self, change: str, to: str = "original") -> None:
        self.done("rollback", change, "me", "600", to)
        self.done("apply", change)
        self.done("confirm", change)

    def boot_anew(self) -> None:
        """End the watcher, forget what is in memory, and have another boot."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for role in ("watcher", "keeper", "spare"):
                with suppress(
                    FileNotFoundError, ProcessLookupError
                ):  # it has ended: there is nothing to keep
                    os.kill(int((self.run / role).read_text()), number)
        shutil.rmtree(self.run)
        (self.run.parent / "boot_id").write_text("second\n")

    def log(self) -> str:
        return (self.state / "log").read_text()

    def differs(self) -> dict[str, str]:
        rows = [line.split("\t") for line in self.done("status").splitlines() if line.startswith("set\t")]
        return {row[1]: row[6] for row in rows}


def write(node: Node, name: str, text: str) -> Path:
    path = node.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


#: As TuneD answers: only a daemon that runs says what is in force.
TUNED_ADM = """\
#!/bin/sh
cd "$PLACE" || exit
case $1 in
active) if [ ! -e runs ]; then echo "It seems that tuned daemon is not running, preset profile is not activated."
    [ ! -s active_profile ] || echo "Preset profile: $(cat active_profile)"
    elif [ -s active_profile ]; then echo "Current active profile: $(cat active_profile)"
    else echo "No current active profile."; fi ;;
profile) echo "$2" >active_profile; touch runs ;;
off) [ -e runs ] || { echo "Not supported in no_daemon mode."; exit 1; }; : >active_profile ;;
esac
"""


def tuned(node: Node, before: str) -> tuple[str, Callable[[], str]]:
    node.program("tuned-adm", TUNED_ADM)
    write(node, "runs", "")
    file = write(node, "active_profile", before)
    return f"svc.tuned tuned - {file}=network-latency", file.read_text


def tuned_profile(node: Node) -> tuple[str, Callable[[], str]]:
    return tuned(node, "balanced\n")


def stored(node: Node) -> tuple[str, Callable[[], str]]:
    file = write(node, "x.conf", "before\n")
    return f"{file} stored - {file}=file:644:bmV3Cg==", file.read_text


def unit(node: Node) -> tuple[str, Callable[[], str]]:
    node.program("systemctl", SYSTEMCTL)
    write(node, "irqbalance.service.active", "active\n")
    enabled = write(node, "irqbalance.service.enabled", "enabled\n")
    return "irqbalance.service unit - irqbalance.service=disabled", enabled.read_text


def mpi_parameter(node: Node) -> tuple[str, Callable[[], str]]:
    node.program("ompi_info", f'#!/bin/sh\n[ -z "$HOME" ] || echo "path:sysconfdir:{node.directory}"\n')
    file = write(node, "openmpi-mca-params.conf", "btl_tcp_links = 2\n")
    return "ompi.btl_tcp_links mpi_parameter - btl_tcp_links=4", file.read_text


LASTING = {"tuned": tuned_profile, "stored": stored, "unit": unit, "mpi_parameter": mpi_parameter}


def nic(node: Node, *words: str) -> str:
    if words:
        node.inside("ethtool", *words)
    return node.inside("ethtool", "-c", "eth0")


def ethtool(node: Node) -> Path:
    """Give the node a card, and return the file of its state."""
    node.program("ethtool", ethtool_fake.PROGRAM)
    return write(node, ethtool_fake.FILE, ethtool_fake.text(ethtool_fake.CARD))


def rules(node: Node) -> str:
    return node.inside("nft", "-nn", "list", "ruleset")


def veth(node: Node) -> None:
    node.inside("ip", "link", "add", "eth0", "mtu", "1500", "type", "veth", "peer", "name", "peer0")


def link(node: Node) -> tuple[str, Callable[[], str]]:
    node.inside("mount", "-t", "sysfs", "sysfs", "/sys")  # that of the own network
    veth(node)
    return "nic.mtu link eth0 mtu=1400", lambda: node.inside("ip", "-o", "link", "show", "eth0")


def route(node: Node) -> tuple[str, Callable[[], str]]:
    link(node)
    for words in ("link set eth0 up", "link set peer0 up", "addr add 10.9.0.1/24 dev eth0"):
        node.inside("ip", *words.split())
    return "route.rto_min route eth0 rto_min=5", lambda: node.inside(
        "ip", "-4", "route", "show", "dev", "eth0"
    )


def turbo(node: Node) -> tuple[str, Callable[[], str]]:
    file = write(node, "boost", "1\n")
    return f"cpu.turbo turbo - {node.directory}/no_turbo {file}=0", file.read_text


def idle_states(node: Node) -> tuple[str, Callable[[], str]]:
    files = [write(node, f"cpu0/state{number}/disable", f"{number % 2}\n") for number in range(3)]
    step = f"cpu.cstates_disable idle_states - {node.directory}/cpu*/state*/disable=disabled: state2"
    return step, lambda: " ".join(file.read_text() for file in files)
