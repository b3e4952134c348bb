"""A node whose link is throttled is named by one command."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.slow]


def test_a_throttled_node_is_named(lab_cluster, tmp_path):
    limit = "tc qdisc replace dev host0 root tbf rate 300mbit burst 64kb latency 50ms"
    on(lab_cluster, "node03", limit)
    try:
        words = ["diagnose", "--cluster", "lab", "--budget", "60s", "--json"]
        done = wulf(tmp_path, *words, timeout=300, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])
    finally:
        on(lab_cluster, "node03", "tc qdisc del dev host0 root")
    assert done.returncode == 3, done.stdout + done.stderr
    large = json.loads(done.stdout)["matrices"][-1]
    assert large["size_bytes"] == 1 << 20 and large["missing"] == 0
    assert [(one["kind"], one["nodes"]) for one in large["suspects"]] == [("node", ["node03"])]
    assert large["suspects"][0]["slower"] > 0.5
