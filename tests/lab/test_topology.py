"""Four nodes on a ring of direct cables beside a slow switch: routes over the cables, what they bring, and back."""

from __future__ import annotations

import pytest

import wulf as library
from tests.cli.command import wulf
from tests.conftest import OTHER_LAB
from tests.lab.test_nodes import on
from wulf.base.topology import shapes
from wulf.node import lab
from wulf.node.lab import topology

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.xdist_group(OTHER_LAB)]

NEIGHBOUR, OPPOSITE = ("node01", "node02"), ("node01", "node03")
#: What the switch lets through [B/s].
SWITCH_BYTES_PER_S = 100e6 / 8


@pytest.fixture
def ring(spare):
    """Cables from node01 to node02, and so on round, beside a switch of 100 Mbit/s."""
    raised, _ = lab.up(4, topology.link(rate="100mbit"), cables=shapes.parse("ring:4").edges())
    return raised


@pytest.fixture
def run(ring, spare, tmp_path):
    def command(*words):
        return wulf(tmp_path, *words, "--cluster", "lab", timeout=400, WULF_LAB_DIR=str(spare.directory))

    return command


def way(ring, node, target):
    """The interface over which a node reaches another, and the address that it takes."""
    address = next(one.address for one in ring.layout.nodes if one.name == target)
    words = on(ring, node, f"ip route get {address}").split()
    return words[words.index("dev") + 1], words[words.index("src") + 1]


def state(ring):
    text = "ip -4 route; cd /proc/sys/net/ipv4/conf; grep -H . */forwarding ../ip_forward"
    return {name: on(ring, name, text) for name in ring.layout.names()}


PLAN = """
title = "Long messages, which the switch holds back"

[[experiment]]
op = "tcp_stream"
sizes = ["256KiB"]

[[experiment]]
op = "tcp_rr"
sizes = ["256KiB"]
"""


def measured(run, tmp_path, name):
    """Estimates of both pairs: (operation, pair) → that of its one size."""
    (tmp_path / "plan.toml").write_text(PLAN)
    pairs = ",".join(":".join(pair) for pair in (NEIGHBOUR, OPPOSITE))
    precise = ("--visit", "100ms", "--precision", "20%", "--min-launches", "6", "--max-launches", "6")
    done = run("measure", "--run", name, "--plan", "plan.toml", "--pairs", pairs, *precise, "--budget", "5m")
    assert done.returncode in (0, 3), done.stderr
    cells = library.load(tmp_path / "runs" / name).analysis().cells
    found = {(one.cell.op, one.cell.place): one for one in cells}
    assert len(found) == 4, done.stdout + done.stderr
    return found


def test_neighbours_use_their_cable_others_the_switch_and_rollback_undoes_it(ring, run, tmp_path):
    shown = run("audit", "topology")
    assert shown.returncode == 0, shown.stderr
    assert "4 direct links between 4 of 4 nodes" in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines() if " yes " in line] == [
        "ring:4",
        "mesh:2x2",
        "hypercube:2",
    ]
    original = state(ring)
    before = measured(run, tmp_path, "switch")

    done = run("audit", "topology", "--routes", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 routes over 1 link\n" in done.stdout
    assert "node[01-04]: set, and confirmed over a new connection" in done.stdout
    addresses = {one.name: one.address for one in ring.layout.nodes}
    assert way(ring, "node01", "node02") == ("cable1", addresses["node01"])
    assert way(ring, "node01", "node04")[0].startswith("cable")
    assert way(ring, "node01", "node03") == ("host0", addresses["node01"])
    after = measured(run, tmp_path, "cables")

    stream, answer = after["tcp_stream", NEIGHBOUR], after["tcp_rr", NEIGHBOUR]
    assert before["tcp_stream", NEIGHBOUR].bandwidth.value < 1.2 * SWITCH_BYTES_PER_S
    # Memory against 100 Mbit/s: a factor of ten and more in calm.
    assert stream.bandwidth.value > 2 * SWITCH_BYTES_PER_S
    assert answer.time.value < before["tcp_rr", NEIGHBOUR].time.value
    # Through the switch as before, and no faster than that is.
    assert after["tcp_stream", OPPOSITE].bandwidth.value < 1.2 * SWITCH_BYTES_PER_S

    back = run("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert state(ring) == original


def test_two_links_away_without_the_switch_then_a_reboot_forgets_it(ring, run):
    done = run("audit", "topology", "--routes", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "8 routes over 1 link\n4 routes over 2 links\npackets for others are forwarded by node" in done.stdout
    )
    assert way(ring, "node01", "node03")[0].startswith("cable")
    assert way(ring, "node03", "node01")[0].startswith("cable")
    address = next(one.address for one in ring.layout.nodes if one.name == "node03")
    # One node on the way: the packet came with a time to live of 64.
    assert "ttl=63" in on(ring, "node01", f"ping -n -c 1 {address}")
    status = run("settings", "status")
    assert f"direct.route.{address} = via 198.19." in status.stdout
    ring.reboot("node01")
    assert way(ring, "node01", "node03")[0] == "host0"
    assert way(ring, "node01", "node02")[0] == "host0"
    assert "direct.route." in run("settings", "status", "--nodes", "node01").stdout
    again = run("audit", "topology", "--routes", "2")
    assert again.returncode == 0, again.stdout + again.stderr
    assert way(ring, "node01", "node03")[0].startswith("cable")
    assert run("rollback").returncode == 0
