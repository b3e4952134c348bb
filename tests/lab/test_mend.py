"""``wulf mend`` on nodes with mistakes."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on

pytestmark = [pytest.mark.lab, pytest.mark.root]

MTU = "cat /sys/class/net/host0/mtu"
SACK = "cat /proc/sys/net/ipv4/tcp_sack"


@pytest.fixture
def run(lab_cluster, tmp_path):
    def command(*words):
        return wulf(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    on(lab_cluster, "node03", "ip link set dev host0 mtu 1400; sysctl -qw net.ipv4.tcp_sack=0")
    yield command
    assert command("rollback", "--cluster", "lab").returncode == 0
    on(lab_cluster, "node03", "ip link set dev host0 mtu 1500; sysctl -qw net.ipv4.tcp_sack=1")


def test_what_is_wrong_for_certain_is_set_right_and_measured(run, lab_cluster):
    said = run("mend", "--cluster", "lab", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "nic.mtu: 1400 → 1500 B on node03" in said.stdout
    assert "nothing was changed" in said.stdout
    assert on(lab_cluster, "node03", MTU).strip() == "1400"

    done = run("mend", "--cluster", "lab", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {finding["id"] for finding in found["findings"]} >= {"same.mtu", "tcp.sack_folklore"}
    assert found["outcome"]["kept"]
    assert found["left"] == []
    assert found["pairs"] == [["node03", "node01"]]
    assert {effect["metric"] for effect in found["effects"]} >= {"mpi_pingpong 1 B", "mpi_pingpong 64 KiB"}
    assert not any(effect["verdict"] == "worse" for effect in found["effects"])
    assert on(lab_cluster, "node03", MTU).strip() == "1500"
    assert on(lab_cluster, "node03", SACK).strip() == "1"
    assert "nic.mtu" in run("status", "--cluster", "lab").stdout

    again = run("mend", "--cluster", "lab")
    assert again.returncode == 0, again.stderr
    assert "nothing that is wrong for certain was found" in again.stdout
    # What it was before is not forgotten.
    assert run("rollback", "--cluster", "lab").returncode == 0
    assert on(lab_cluster, "node03", MTU).strip() == "1400"


def test_only_what_is_named_and_no_measurement(run, lab_cluster):
    done = run("mend", "same.mtu", "--cluster", "lab", "--no-measure")
    assert done.returncode == 3, "the other one is left"
    assert "still there" in done.stdout
    assert on(lab_cluster, "node03", MTU).strip() == "1500"
    assert on(lab_cluster, "node03", SACK).strip() == "0"
    wrong = run("mend", "same.mut", "--cluster", "lab")
    assert wrong.returncode == 2
    assert "did you mean" in wrong.stderr
