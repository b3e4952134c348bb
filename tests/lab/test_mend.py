"""``wulf mend`` on nodes with mistakes."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.cli.command import start, wulf
from tests.lab.test_nodes import on

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

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
    # With selective acknowledgements, too, long messages took 2 to 3 % longer here: about what is undone.
    on(lab_cluster, "node03", "sysctl -qw net.ipv4.tcp_sack=1")
    said = run("mend", "--cluster", "lab", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "nic.mtu: 1400 → 1500 B on node03" in said.stdout
    assert "nothing was changed" in said.stdout
    assert on(lab_cluster, "node03", MTU).strip() == "1400"

    done = run("mend", "--cluster", "lab", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert [finding["id"] for finding in found["findings"]] == ["same.mtu"]
    assert found["outcome"]["kept"]
    assert found["left"] == []
    assert found["pairs"] == [["node01", "node03"]]
    assert {effect["metric"] for effect in found["effects"]} >= {
        "mpi_pingpong 1 B mean",
        "mpi_pingpong 64 KiB mean",
    }
    assert all(effect["ratio"]["low"] <= effect["ratio"]["value"] for effect in found["effects"])
    assert on(lab_cluster, "node03", MTU).strip() == "1500"
    assert "nic.mtu" in run("settings", "status", "--cluster", "lab").stdout

    again = run("mend", "--cluster", "lab")
    assert again.returncode == 0, again.stderr
    assert "Nothing that is certainly wrong was found" in again.stdout
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


def test_what_cannot_be_measured_is_not_changed(run, lab_cluster):
    on(lab_cluster, "node03", "mount -o remount,ro /tmp; mount -o remount,ro /dev/shm")
    try:
        done = run("mend", "same.mtu", "--cluster", "lab")
    finally:
        on(lab_cluster, "node03", "mount -o remount,rw /tmp; mount -o remount,rw /dev/shm")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "nothing can be measured: 4 of 4 measurements failed with it, 4 without" in done.stdout
    assert "--no-measure" in done.stdout
    assert "still there: MTU differs" in done.stdout
    assert on(lab_cluster, "node03", MTU).strip() == "1400"


def test_a_node_that_is_off_is_named(run, lab_cluster):
    lab_cluster.kill("node02")
    try:
        done = run("mend", "tcp.sack_folklore", "--cluster", "lab", "--no-measure")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "node02: not looked at" in done.stdout
        # Two of four are not more than half of all nodes.
        assert on(lab_cluster, "node03", MTU).strip() == "1400"
        assert on(lab_cluster, "node03", SACK).strip() == "1"
    finally:
        lab_cluster.start("node02")


def test_ctrl_c_after_the_change_says_that_it_is_kept(run, lab_cluster, tmp_path):
    process = start(
        tmp_path,
        *("mend", "--cluster", "lab", "--no-measure", "--nodes", "node03"),
        WULF_LAB_DIR=os.environ["WULF_LAB_DIR"],
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "looking again" in line:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=60)
    assert "node03: set, and confirmed" in out
    assert "wulf rollback" in out
    assert on(lab_cluster, "node03", MTU).strip() == "1500"
    assert on(lab_cluster, "node03", SACK).strip() == "1"
    assert process.returncode in (0, 130), err  # 0: it came too late
    if process.returncode == 130:
        assert "what is left is not known (wulf audit): interrupted" in out
