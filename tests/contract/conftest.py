"""The same contract over every transport: this machine, a real sshd on 127.0.0.1, and a virtual cluster if one is up."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wulf.cluster.inventory import ClusterConfig, parse
from wulf.cluster.transport import ClosableTransport, open_transport

GOOD = ("node01", "node02", "node03")

#: What the sshd does with a node's key instead of running the command: nodes that misbehave.
BEHAVIOUR = {
    "noisy": "echo Welcome to noisy; echo beware >&2; exec /bin/sh -c \\\"$SSH_ORIGINAL_COMMAND\\\"",
    "nologin": "echo This account is currently not available.; exit 1",
    "flood": "exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "hangs": "exec sleep 600",
    "dash": "exec dash -c \\\"$SSH_ORIGINAL_COMMAND\\\"",
    "bash": "exec bash -c \\\"$SSH_ORIGINAL_COMMAND\\\"",
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


@pytest.fixture(scope="session")
def ssh_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshSite]:
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if sshd is None:
        pytest.skip("sshd is not installed (apt install openssh-server)")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    site = tmp_path_factory.mktemp("sshd")
    make_key(site / "host_key")
    allowed = [make_key(site / "key")]
    for name, behaviour in BEHAVIOUR.items():
        allowed.append(f'command="{behaviour}" {make_key(site / f"key_{name}")}')
    (site / "authorized").write_text("\n".join(allowed) + "\n")
    port = free_port()
    server = f"""\
        Port {port}
        ListenAddress 127.0.0.1
        HostKey {site}/host_key
        AuthorizedKeysFile {site}/authorized
        PidFile {site}/pid
        StrictModes no
        UsePAM no
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        PermitRootLogin prohibit-password
        MaxStartups 100
    """
    (site / "sshd_config").write_text(server)
    host_key = (site / "host_key.pub").read_text().split()
    (site / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key[0]} {host_key[1]}\n")
    with socket.socket() as silent:
        # Accepts connections (the backlog does) and never says a word, like a host whose sshd hangs.
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        config = write_client_config(site, port, int(silent.getsockname()[1]))
        daemon = subprocess.Popen([sshd, "-D", "-e", "-f", str(site / "sshd_config")], stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            yield SshSite(site, config, int(silent.getsockname()[1]))
        finally:
            daemon.terminate()
            daemon.wait()


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
        nodes = "{','.join([*GOOD, *BEHAVIOUR, 'silent', 'down'])}"
        [ssh]
        config = "{site.config}"
        connect_timeout_s = 5
        {extra}
    """
    return parse(text, "test")


@pytest.fixture
def ssh(ssh_site: SshSite) -> Iterator[Target]:
    config = ssh_cluster(ssh_site)
    transport = open_transport(config)
    yield Target(transport, list(GOOD), config)
    transport.close()


@pytest.fixture(params=["local", "ssh", "lab"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "ssh":
        yield request.getfixturevalue("ssh")
        return
    config = local_cluster() if request.param == "local" else lab_cluster()
    transport = open_transport(config)
    yield Target(transport, list(config.nodes[:3]), config)
    transport.close()


def local_cluster() -> ClusterConfig:
    return parse('[cluster]\nnodes = "node[01-03]"\ntransport = "local"\n', "test")


def lab_cluster() -> ClusterConfig:
    """The virtual cluster that is up, if there is one."""
    try:
        from wulf.lab import current
    except ImportError:
        pytest.skip("this version has no lab")
    lab = current()
    if lab is None:
        pytest.skip("no virtual cluster is up (wulf lab up)")
    return parse(lab.cluster_toml(), "the lab")


def running(text: str) -> list[int]:
    """Processes of this machine whose command line contains `text` (they are seen from outside a node, too)."""
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


def gone(text: str, within_s: float) -> bool:
    """Whether no process has `text` on its command line any more, at the latest after `within_s` [s]."""
    deadline = time.monotonic() + within_s
    while running(text):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
