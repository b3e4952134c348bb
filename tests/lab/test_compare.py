"""``wulf compare --interleaved`` on virtual nodes: what it changes, finds and puts back."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.cli.command import start, wulf
from tests.lab.test_nodes import on

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

MTU = "cat /sys/class/net/host0/mtu"
COMPARE = ("compare", "--interleaved", "--cluster", "lab", "--pairs", "node01:node02")


@pytest.fixture
def run(lab_cluster, tmp_path):
    def command(*words):
        return wulf(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    return command


def test_a_setting_that_costs_is_found_and_put_back(run, lab_cluster):
    # One segment becomes 45 packets: it cannot be better, and whether it is seen to be worse depends on the machine.
    sides = ("original", "nic.tso_gso=off")
    said = run(*COMPARE, *sides, "--dry-run")
    assert said.returncode == 0, said.stderr
    assert "nic.tso_gso: on on → off off on node[01-02]" in said.stdout
    assert "nothing was changed" in said.stdout

    done = run(*COMPARE, *sides, "--ops", "tcp_rr", "--sizes", "64KiB", "--launches", "10", "--json")
    (found,) = json.loads(done.stdout)
    assert found["design"] == "interleaved"
    assert found["verdict"] in ("worse", "no decision")
    assert done.returncode == (3 if found["verdict"] == "worse" else 0), done.stderr
    assert found["differing_facts"] == {"node[01-02]: nic.tso_gso": ["on on", "off off"]}
    assert found["failures"] == [{}, {}]
    (cell,) = found["cells"]
    assert len(cell["pairs_s"]) == 10
    assert cell["pair"] == ["node01", "node02"]
    assert cell["ratio"]["high"] > 1
    for node in ("node01", "node02"):
        assert "tcp-segmentation-offload: on" in on(lab_cluster, node, "ethtool -k host0")
    assert "nothing is set" in run("settings", "status", "--cluster", "lab").stdout


def test_two_pairs_of_nodes_and_no_settings(run):
    done = run(
        *COMPARE, "original", "pairs=node02:node01", "--launches", "8", "--sizes", "1", "--html", "page.html"
    )
    assert done.returncode in (0, 3), done.stderr
    assert "measured interleaved" in done.stdout
    assert "pairs of nodes" in done.stdout
    assert "written: page.html" in done.stderr


def test_ctrl_c_puts_everything_back_and_keeps_what_was_measured(lab_cluster, tmp_path):
    environment = {"WULF_LAB_DIR": os.environ["WULF_LAB_DIR"]}
    words = (*COMPARE, "original", "nic.mtu=1400", "--sizes", "1", "--launches", "500")
    process = start(tmp_path, *words, **environment)
    deadline = time.monotonic() + 90
    seen = 0
    while seen < 2 and time.monotonic() < deadline:
        seen += on(lab_cluster, "node02", MTU).strip() == "1400"
        time.sleep(0.5)
    assert seen, "the setting was never made"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    for node in ("node01", "node02"):
        assert on(lab_cluster, node, MTU).strip() == "1500"
    assert "interrupted" in err


def test_what_compares_nothing_is_refused(run):
    assert "nothing to compare" in run(*COMPARE, "original", "original").stderr
    assert "at least 8" in run(*COMPARE, "original", "nic.mtu=1400", "--launches", "5").stderr
    no_mpi = run(*COMPARE, "original", "mpi=mpich", "--ops", "tcp_rr")
    assert no_mpi.returncode == 2
    assert "uses MPI" in no_mpi.stderr
