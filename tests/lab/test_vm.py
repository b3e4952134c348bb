"""Nodes that are virtual machines: a real driver's moderation is planted and named; a reboot keeps the disk."""

from __future__ import annotations

import json
import time

import pytest

from tests.cli.command import wulf
from tests.conftest import MACHINES
from tests.lab.test_nodes import on
from wulf.node import lab
from wulf.node.lab.vm import image

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.xdist_group(MACHINES)]

USECS = "ethtool -c host0 | sed -n 's/^rx-usecs: *//p'"


@pytest.fixture
def run(spare, tmp_path):
    missing = image.lacking("e1000e")
    if missing:
        pytest.skip("; ".join(missing))

    def command(*words):
        return wulf(tmp_path, *words, timeout=300, WULF_LAB_DIR=str(spare.directory))

    return command


def test_moderation_of_a_real_driver_is_named_and_a_disk_is_kept(run):
    """That the tuner finds it by experiment, cuts it and puts it back is `bench vm-lab`."""
    up = run("lab", "up", "--vm", "--nodes", "2")
    assert up.returncode == 0, up.stdout + up.stderr
    raised = lab.current()

    def usecs():
        return [on(raised, node, USECS) for node in raised.layout.names()]

    assert "driver: e1000e" in on(raised, "node01", "ethtool -i host0")
    planted = run("lab", "plant", "moderation")
    assert planted.stdout == "node[01-02]: interrupts held back for 1 ms\n"
    assert usecs() == ["1000", "1000"]
    done = run("audit", "--cluster", "lab", "--json")
    assert done.stdout, done.stderr
    audit = json.loads(done.stdout)
    assert "nic.interrupt_moderation" in {finding["id"] for finding in audit["findings"]}

    # What a node wrote to its disk is there after a reboot, what was set live is not.
    on(raised, "node02", "echo kept >/etc/kept; sync")
    raised.reboot("node02")
    assert on(raised, "node02", "cat /etc/kept") == "kept"
    assert usecs() == ["1000", "3"]


def test_cards_of_a_bond_are_set_and_put_back_together(run):
    up = run("lab", "up", "--vm", "--bond", "--nodes", "2")
    assert up.returncode == 0, up.stdout + up.stderr
    raised = lab.current()
    both = "for n in eth0 eth1; do ethtool -c $n | sed -n 's/^rx-usecs: *//p'; done"
    before = on(raised, "node01", both).split()
    made = run("settings", "set", "--cluster", "lab", "nic.rx_usecs=50")
    assert made.returncode == 0, made.stdout + made.stderr
    assert on(raised, "node01", both).split() == ["50", "50"]
    kept = run("settings", "persist", "--cluster", "lab")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    lines = on(raised, "node01", "grep '^keep nic' /etc/wulf/settings.sh").splitlines()
    assert [line.split()[4] for line in lines] == ["eth0", "eth1"]
    back = run("rollback", "--to", "original", "--cluster", "lab", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert on(raised, "node01", both).split() == before


def test_a_deadline_comes_when_it_is_due_although_the_clock_is_stepped(run):
    """Only a machine of its own has a clock of its own, so nowhere else can it be set."""
    up = run("lab", "up", "--vm", "--nodes", "2")
    assert up.returncode == 0, up.stdout + up.stderr
    raised = lab.current()
    made = run("settings", "set", "--cluster", "lab", "sysctl.net.ipv4.tcp_autocorking=0")
    assert made.returncode == 0, made.stdout + made.stderr
    guard, key = "/var/lib/wulf/guard", "net.ipv4.tcp_slow_start_after_idle"
    plan = f"sysctl.{key}\\tsysctl\\t-\\t{key}\\t0\\n"

    def held(change: str) -> tuple[str, str]:
        said = on(raised, "node01", f"cut -f1 /var/lib/wulf/tx/{change}/state; sysctl -n {key}")
        state, value = said.split()
        return state, value

    for change, stepped in (("forward", "+400 days"), ("back", "-800 days")):
        on(
            raised,
            "node01",
            f"{guard} lock me 600; printf '{plan}' | {guard} begin {change} me 20 && {guard} apply {change}",
        )
        begin = time.monotonic()
        on(raised, "node01", f"date -s '{stepped}'")
        time.sleep(8)
        assert held(change) == ("applied", "0")
        while held(change) != ("undone", "1"):
            assert time.monotonic() < begin + 60
            time.sleep(1)
        assert time.monotonic() > begin + 15
