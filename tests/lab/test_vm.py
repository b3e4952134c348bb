"""Nodes that are virtual machines: a real driver's interrupt moderation is planted, found, cut and put back."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on
from wulf import lab
from wulf.lab.vm import image

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.alone]

#: Without MPI, whose start takes longer in virtual time than what is measured.
GOAL = '[[metric]]\nop = "tcp_rr"\nsize = "64B"\n'
USECS = "ethtool -c host0 | sed -n 's/^rx-usecs: *//p'"


@pytest.fixture
def run(spare, tmp_path):
    missing = image.lacking("e1000e")
    if missing:
        pytest.skip("; ".join(missing))

    def command(*words, timeout=300):
        return wulf(tmp_path, *words, timeout=timeout, WULF_LAB_DIR=str(spare.directory))

    return command


def usecs(raised):
    return [on(raised, node, USECS) for node in raised.layout.names()]


def test_moderation_of_a_real_driver_is_found_cut_and_put_back(run, tmp_path):
    up = run("lab", "up", "--vm", "--nodes", "2")
    assert up.returncode == 0, up.stdout + up.stderr
    raised = lab.current()
    assert "driver: e1000e" in on(raised, "node01", "ethtool -i host0")
    planted = run("lab", "plant", "moderation")
    assert planted.stdout == "node[01-02]: interrupts held back for 1 ms\n"
    assert usecs(raised) == ["1000", "1000"]
    audit = json.loads(run("audit", "--cluster", "lab", "--json").stdout)
    assert "nic.interrupt_moderation" in {finding["id"] for finding in audit["findings"]}
    (tmp_path / "goal.toml").write_text(GOAL)
    words = ("--knobs", "nic.rx_usecs=0", "--objective", "goal.toml", "--budget", "3m", "--seed", "1")
    tuned = run("tune", "cut", "--cluster", "lab", *words)
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert usecs(raised) == ["0", "0"]
    back = run("rollback", "--cluster", "lab")
    assert back.returncode == 0, back.stdout + back.stderr
    assert usecs(raised) == ["1000", "1000"]
