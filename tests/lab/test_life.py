"""Raising and taking down, also when something is killed on the way: nothing may be left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from tests.conftest import OTHER_LAB
from tests.lab.host import Host, wait_until
from wulf.base.errors import LabError
from wulf.node import lab
from wulf.node.lab import system
from wulf.node.lab.topology import Link

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.xdist_group(OTHER_LAB)]


def test_up_status_ssh_down_by_command(spare: Host) -> None:
    up = spare.cli("up", "--nodes", "2")
    assert (up.returncode, up.stderr) == (0, "")
    assert re.search(r"^up: 2 nodes, node01 to node02, in \d+\.\d s$", up.stdout, re.M)
    assert f"cluster file: {spare.directory}/cluster.toml" in up.stdout
    again = spare.cli("up", "--nodes", "2")
    assert (again.returncode, again.stdout) == (0, "already up: 2 nodes, node01 to node02\n")
    other = spare.cli("up", "--nodes", "3")
    assert other.returncode == 1
    assert "another virtual cluster is up (2 nodes" in other.stderr
    ssh = spare.cli("ssh", "node02", "--", "sh", "-c", "hostname; exit 3")
    assert (ssh.returncode, ssh.stdout) == (3, "node02\n")
    assert spare.cli("status", "--json").stdout.count('"running"') == 2
    assert spare.leftovers() != []
    assert spare.cli("down").stdout == "down\n"
    assert spare.leftovers() == []
    assert spare.cli("down").stdout == "no virtual cluster is up\n"


@pytest.mark.thorough
def test_options_of_links_are_in_force(spare: Host) -> None:
    link = "node02:rate=20mbit,mtu=1400"
    assert spare.cli("up", "--nodes", "2", "--mtu", "9000", "--rate", "1gbit", "--link", link).returncode == 0
    assert spare.cli("ssh", "node01", "--", "cat", "/sys/class/net/host0/mtu").stdout == "9000\n"
    assert spare.cli("ssh", "node02", "--", "cat", "/sys/class/net/host0/mtu").stdout == "1400\n"
    assert "rate 1Gbit" in spare.cli("ssh", "node01", "--", "tc", "qdisc", "show", "dev", "host0").stdout
    # 5 MB through 20 Mbit/s take 2 s, less what the bucket lets through at once; a busy machine takes longer.
    began = "S=$(date +%s%N); head -c 5000000 /dev/zero | ssh node02 'cat >/dev/null'; E=$(date +%s%N)"
    took = spare.cli("ssh", "node01", "--", "sh", "-c", f"{began}; echo $(((E - S) / 1000000))")
    assert int(took.stdout) > 1800


def test_delay_is_refused_before_anything_is_raised(spare: Host) -> None:
    if system.kernel_has_qdisc("netem", ["delay", "1ms"]):
        pytest.skip("this kernel has netem")
    with pytest.raises(LabError, match="--delay needs a kernel with netem"):
        lab.up(2, Link(delay="1ms"))
    assert spare.leftovers() == []


@pytest.mark.thorough
def test_delay_is_in_force_on_every_kernel_also_after_a_reboot(spare: Host) -> None:
    # A round trip passes both cables in both directions: 2 × 3 ms + 2 × 2 ms.
    assert spare.cli("up", "--nodes", "2", "--delay", "3ms", "--link", "node02:delay=2ms").returncode == 0
    assert _shortest_round_trip_ms(spare) >= 10
    # Frames that a card would cut up, and in both directions.
    sent = "head -c 3000000 /dev/urandom >/tmp/sent; ssh node02 cat </tmp/sent | cmp - /tmp/sent && echo same"
    assert spare.cli("ssh", "node01", "--", "sh", "-c", sent).stdout == "same\n"
    assert spare.cli("reboot", "node02").returncode == 0
    assert _shortest_round_trip_ms(spare) >= 10


def _shortest_round_trip_ms(spare: Host) -> float:
    said = spare.cli("ssh", "node01", "--", "ping", "-c", "5", "-i", "0.2", "node02").stdout
    found = re.search(r"rtt min/avg/max/mdev = ([0-9.]+)/", said)
    assert found is not None, said
    return float(found[1])


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="kill"),
        pytest.param(signal.SIGINT, id="ctrl-c", marks=pytest.mark.thorough),
        pytest.param(signal.SIGTERM, id="term", marks=pytest.mark.thorough),
    ],
)
def test_up_is_ended_in_the_middle(spare: Host, number: signal.Signals) -> None:
    process = spare.start_up()
    process.send_signal(number)
    process.wait(timeout=90)
    if number == signal.SIGKILL:
        assert spare.leftovers() != []
        assert lab.current() is None
        assert spare.cli("down").returncode == 0
    assert spare.leftovers() == []


@pytest.mark.thorough
def test_up_after_a_crash_begins_anew(spare: Host) -> None:
    process = spare.start_up()
    process.kill()
    process.wait(timeout=90)
    assert spare.cli("up", "--nodes", "2").returncode == 0
    assert spare.cli("ssh", "node01", "--", "ssh", "node02", "hostname").stdout == "node02\n"


@pytest.mark.thorough
@pytest.mark.parametrize("victim", ["supervisor", "systemd-nspawn"])
def test_down_after_its_processes_were_killed(spare: Host, victim: str) -> None:
    raised, _ = lab.up(2)
    session = subprocess.Popen(raised.ssh_argv("node01", ["sleep", "600"]), stdin=subprocess.DEVNULL)
    spare.kill(victim)
    raised.down()
    session.wait(timeout=60)
    assert spare.leftovers() == []


@pytest.mark.thorough
def test_eight_nodes(spare: Host) -> None:
    raised, _ = lab.up(8)
    assert [node.state for node in raised.status()] == ["running"] * 8
    shared = raised.layout.shared_cpus()
    cpus = len(os.sched_getaffinity(0))
    assert len(shared) == (cpus if cpus < 8 else 0)


@pytest.mark.thorough
def test_a_second_command_waits_its_turn(spare: Host) -> None:
    with spare.start_up() as process:
        process.send_signal(signal.SIGSTOP)  # a machine that is busy could end it before the other begins
        try:
            refused = spare.cli("down")
        finally:
            process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=180) == 0
    assert refused.returncode == 1
    assert "another 'wulf lab' is changing the virtual cluster" in refused.stderr
    wait_until(lambda: lab.current() is not None)
