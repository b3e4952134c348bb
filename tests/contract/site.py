"""Nodes to try transports on: their names, how they misbehave, and what runs on them."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from wulf.node.cluster.inventory import ClusterConfig, parse
from wulf.node.cluster.transport import ClosableTransport

GOOD = ("node01", "node02", "node03")

#: What the sshd does with a node's key instead of running the command: nodes that misbehave. SITE is its directory.
BEHAVIOUR = {
    "noisy": 'echo Welcome to noisy; echo beware >&2; exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"',
    "nologin": "echo This account is currently not available.; exit 1",
    "flood": "exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "hangs": "exec sleep 600",
    "dash": 'exec dash -c \\"$SSH_ORIGINAL_COMMAND\\"',
    "bash": 'exec bash -c \\"$SSH_ORIGINAL_COMMAND\\"',
    "athome": 'export HOME=SITE/home; exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"',
    "lacking": 'export HOME=SITE/home LACKS=mpi; exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"',
    "elsewhere": 'export HOME=SITE/elsewhere; exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"',
}


@dataclass(frozen=True)
class Target:
    """A transport and nodes that work."""

    transport: ClosableTransport
    nodes: list[str]
    config: ClusterConfig


@dataclass(frozen=True)
class SshSite:
    """An sshd of our own, and the configuration that reaches it under many names."""

    directory: Path
    config: Path
    silent_port: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


def wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"sshd did not come up on port {port}")


def write_client_config(site: Path, port: int, silent_port: int) -> Path:
    lines = [f"Host silent\n  Port {silent_port}", f"Host down\n  Port {free_port()}"]
    lines += [f"Host {name}\n  IdentityFile {site}/key_{name}" for name in BEHAVIOUR]
    lines.append(
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
        f"  IdentityFile {site}/key\n  IdentityAgent none\n  UserKnownHostsFile {site}/known_hosts\n"
        "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes"
    )
    config = site / "ssh_config"
    config.write_text("\n".join(lines) + "\n")
    return config


def ssh_cluster(site: SshSite, extra: str = "") -> ClusterConfig:
    text = f"""
        [cluster]
        nodes = "{",".join([*GOOD, *BEHAVIOUR, "silent", "down"])}"
        [ssh]
        config = "{site.config}"
        connect_timeout_s = 5
        {extra}
    """
    return parse(text, "test")


def local_cluster() -> ClusterConfig:
    return parse('[cluster]\nnodes = "node[01-03]"\ntransport = "local"\n', "test")


def running(text: str) -> list[int]:
    """Processes whose command line contains `text`, those of virtual nodes among them."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if text.encode() in command:
            found.append(int(entry.name))
    return found


def gone(text: str) -> bool:
    """Whether no process has `text` on its command line any more, far sooner than it would end by itself."""
    deadline = time.monotonic() + 30
    while running(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
