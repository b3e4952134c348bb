"""Gateways: commands passed on by ClusterShell, over a real sshd."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest

from tests.contract.site import SshSite, ssh_cluster
from wulf.node.cluster.transport import ClosableTransport, open_transport


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the gateway use this Python, which has ClusterShell."""
    monkeypatch.setenv("CLUSTERSHELL_GW_PYTHON_EXECUTABLE", sys.executable)


def through(site: SshSite, gateway: str, behind: str) -> ClosableTransport:
    options = f'options = ["-F", "{site.config}"]\ngateways = {{ {gateway} = "{behind}" }}'
    return open_transport(ssh_cluster(site, options))


@pytest.mark.usefixtures("python")
def test_commands_go_through_and_bad_nodes_are_named(ssh_site: SshSite) -> None:
    transport = through(ssh_site, "node01", "node[02-03],down,hangs,nologin")
    try:
        nodes = ["node01", "node02", "node03", "noisy", "down", "hangs", "nologin"]
        results = transport.run(["sh", "-c", "cat; echo err >&2"], nodes, timeout_s=6, stdin=b"a\n\nb\n")
        assert {node: result.status for node, result in results.items()} == {
            "node01": "ok",
            "node02": "ok",
            "node03": "ok",
            "noisy": "ok",
            "down": "unreachable",
            "hangs": "timeout",
            "nologin": "garbage",
        }
        assert {results[node].stdout for node in nodes[:4]} == {b"a\n\nb\n"}
        assert {results[node].stderr for node in nodes[:3]} == {b"err\n"}
        assert results["down"].reason.startswith("down: ssh could not connect: ")
    finally:
        transport.close()


@pytest.mark.usefixtures("python")
def test_files_go_through(ssh_site: SshSite, tmp_path: Path) -> None:
    transport = through(ssh_site, "node01", "node02")
    try:
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(random.Random(3).randbytes(200_000))
        assert (
            transport.put(source, str(target), ["node02"], timeout_s=30, mode=0o640)["node02"].status == "ok"
        )
        assert target.read_bytes() == source.read_bytes()
    finally:
        transport.close()


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("gateway", ["down", "nologin", "silent"])
def test_a_gateway_that_does_not_work(ssh_site: SshSite, gateway: str) -> None:
    transport = through(ssh_site, gateway, "node[02-03]")
    try:
        began = time.monotonic()
        results = transport.run(["echo", "hi"], ["node02", "node03", "node01"], timeout_s=4)
        assert time.monotonic() - began < 30
        assert [result.status for result in results.values()] == ["unreachable", "unreachable", "ok"]
        assert f"its gateway does not work: {gateway}: " in results["node02"].reason
    finally:
        transport.close()


def test_a_gateway_without_clustershell(
    ssh_site: SshSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("CLUSTERSHELL_GW_PYTHON_EXECUTABLE", str(bare))
    transport = through(ssh_site, "node01", "node02")
    try:
        result = transport.run(["true"], ["node02"], timeout_s=5)["node02"]
        assert result.status == "unreachable"
        assert "No module named 'ClusterShell'" in result.reason
    finally:
        transport.close()
