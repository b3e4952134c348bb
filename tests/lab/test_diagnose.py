"""A node whose link is throttled is named by one command."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack

import pytest

from tests.cli.command import wulf
from tests.lab.test_alternation import RULES
from tests.lab.test_nodes import on
from wulf.base.store import load
from wulf.tools.diagnose import work

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]


def test_a_throttled_node_is_named(lab_cluster, tmp_path):
    # A twentieth of what a busy machine still carries: nobody has to look closely.
    limit = "tc qdisc replace dev host0 root tbf rate 50mbit burst 64kb latency 200ms"
    on(lab_cluster, "node03", limit)
    try:
        words = ["diagnose", "--cluster", "lab", "--budget", "120s", "--json"]
        done = wulf(tmp_path, *words, timeout=600, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    finally:
        on(lab_cluster, "node03", "tc qdisc del dev host0 root")
    assert done.returncode == 3, done.stdout + done.stderr
    large = json.loads(done.stdout)["matrices"][-1]
    assert large["size_bytes"] == 1 << 20 and large["missing"] == 0
    # A busy machine may make another one slow as well; this one comes first.
    worst = max(large["suspects"], key=lambda one: one["slower"])
    assert (worst["kind"], worst["nodes"]) == ("node", ["node03"])
    # What it sends is throttled, not what it receives; where a busy machine left no time for both, that is said.
    ways = worst["sends_bits_per_s"], worst["receives_bits_per_s"]
    assert "were not measured" in done.stderr if None in ways else ways[0] < 0.75 * ways[1]


ADDRESS = "ip -4 -o addr show host0 | sed 's/.*inet //; s,/.*,,'"
#: What is planted: on which node, what undoes it there, and the cause that is to be named.
PLANTED = (
    ("node02", "ip link set host0 mtu 1400", "ip link set host0 mtu 1500", "network.mtu_host"),
    ("node01", RULES.replace("4000", "300"), "nft delete table inet planted", "network.packet_filter"),
    (
        "node01",
        "ip route add {node02}/32 via {node03} dev host0",
        "ip route del {node02}/32",
        "network.asymmetric_route",
    ),
)
#: What a busy host may be named for beside it.
BUSY = {"node.contaminated", "tcp.processor", "network.shared_medium", "cpu.scheduler_tick"}


def test_causes_that_are_planted_are_named(lab_cluster, tmp_path):
    addresses = {node: on(lab_cluster, node, ADDRESS) for node in ("node02", "node03")}
    mtu = on(lab_cluster, "node02", "cat /sys/class/net/host0/mtu")
    with ExitStack() as undo:
        forwards = on(
            lab_cluster, "node03", "sysctl -n net.ipv4.ip_forward; sysctl -qw net.ipv4.ip_forward=1"
        )
        undo.callback(on, lab_cluster, "node03", f"sysctl -qw net.ipv4.ip_forward={forwards}")
        for node, plant, free, _ in PLANTED:
            undo.callback(on, lab_cluster, node, free.replace("1500", mtu).format_map(addresses))
            on(lab_cluster, node, plant.format_map(addresses) if "{node" in plant else plant)
        words = [
            "measure",
            "--run",
            "planted",
            "--cluster",
            "lab",
            "--pairs",
            "node01:node02",
            "--ops",
            "tcp_rr",
        ]
        done = wulf(tmp_path, *words, "--budget", "20s", WULF_LAB_DIR=os.environ["WULF_LAB_DIR"], timeout=200)
    assert (tmp_path / "runs" / "planted").is_dir(), done.stdout + done.stderr
    found = {symptom.id for symptom in work.find(load(tmp_path / "runs" / "planted")).symptoms}
    wanted = {cause for *_, cause in PLANTED}
    assert wanted <= found
    assert found <= wanted | BUSY
