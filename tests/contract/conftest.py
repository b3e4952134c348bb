"""The same contract over every transport: this machine, a real sshd on it, a virtual cluster."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.site import (
    BEHAVIOUR,
    GOOD,
    SshSite,
    Target,
    free_port,
    local_cluster,
    make_key,
    ssh_cluster,
    wait_for,
    write_client_config,
)
from wulf.node.cluster.inventory import parse
from wulf.node.cluster.transport import open_transport


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
        command = behaviour.replace("SITE", str(site))
        allowed.append(f'command="{command}" {make_key(site / f"key_{name}")}')
    for home in ("home", "elsewhere"):
        (site / home).mkdir()
    (site / "authorized").write_text("\n".join(allowed) + "\n")
    port = free_port()
    server = f"""\
        KexAlgorithms curve25519-sha256,ecdh-sha2-nistp256
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
        SetEnv HOME={site}/home
    """  # a person's own .bashrc may say anything, on either stream
    (site / "sshd_config").write_text(server)
    host_key = (site / "host_key.pub").read_text().split()
    (site / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key[0]} {host_key[1]}\n")
    with socket.socket() as silent:
        # Accepts connections (the backlog does) and never says a word, like a host whose sshd hangs.
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        config = write_client_config(site, port, int(silent.getsockname()[1]))
        daemon = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(site / "sshd_config")], stderr=subprocess.DEVNULL
        )
        try:
            wait_for(port)
            yield SshSite(site, config, int(silent.getsockname()[1]))
        finally:
            daemon.terminate()
            daemon.wait()


@pytest.fixture
def ssh(ssh_site: SshSite) -> Iterator[Target]:
    config = ssh_cluster(ssh_site)
    transport = open_transport(config)
    yield Target(transport, list(GOOD), config)
    transport.close()


@pytest.fixture(params=["local", "ssh", pytest.param("lab", marks=[pytest.mark.lab, pytest.mark.thorough])])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "ssh":
        yield request.getfixturevalue("ssh")
        return
    if request.param == "local":
        config = local_cluster()
    else:
        config = parse(request.getfixturevalue("lab_cluster").cluster_toml(), "the lab")
    transport = open_transport(config)
    yield Target(transport, list(config.nodes[:3]), config)
    transport.close()
