"""Faults planted in virtual nodes are found on the right node; see also ``make bench NAME=audit-planted``."""

from __future__ import annotations

import json
import os
import tarfile
import time

import pytest

from bench import audit_planted
from tests.cli.command import wulf
from tests.conftest import OTHER_LAB
from tests.tiers import mostly_thorough
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport

pytestmark = [
    pytest.mark.lab,
    pytest.mark.root,
    pytest.mark.xdist_group(OTHER_LAB),
    pytest.mark.usefixtures("lab_cluster"),
]

#: What the host does to one of its CPUs is seen by the nodes on that one alone; what earlier tests sent is in counters.
TRIED = (
    "smaller MTU on one node",
    "300-rule firewall on one node",
    "a file that contradicts the live value",
    "ethtool is missing",
    "a name that means another address",
)


def run(directory, *words):
    return wulf(directory, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])


@pytest.fixture(scope="module")
def cluster(raised_lab):
    config = inventory.parse(raised_lab.cluster_toml(), "lab")
    transport = open_transport(config)
    yield audit_planted.Cluster(config, transport)
    transport.close()


@pytest.mark.parametrize("title", mostly_thorough(TRIED, TRIED[0], TRIED[2]))
def test_a_planted_fault_is_found_on_its_node_and_nothing_else_is(cluster, title):
    fault = next(fault for fault in audit_planted.FAULTS if fault.title == title)
    found, others = audit_planted.try_fault(cluster, fault)
    assert found
    assert not others


def test_all_nodes_alike(cluster):
    findings = [finding for finding in cluster.first.findings if finding.id not in audit_planted.MOMENT]
    some = [finding for finding in findings if set(finding.nodes) != set(audit_planted.NODES)]
    assert [f"{finding.nodes}: {finding.id}: {finding.found}" for finding in some] == []


@pytest.mark.thorough
def test_a_look_leaves_nothing_behind_and_is_quick(cluster, lab_cluster, tmp_path):
    config = inventory.parse(lab_cluster.cluster_toml(), "lab")
    transport = open_transport(config)
    find = [
        "sh",
        "-c",
        "find / -xdev -newer /tmp/wulf-mark -type f ! -path '/proc/*' ! -path '/sys/*' "
        "! -path '/run/*' ! -path '/var/log/*' ! -path '/var/lib/systemd/*' ! -path '*/wulf-mark' 2>/dev/null",
    ]
    try:
        transport.run(["touch", "/tmp/wulf-mark"], ["node01"], timeout_s=20)
        time.sleep(0.1)
        done = run(
            tmp_path,
            "audit",
            "facts",
            "--cluster",
            "lab",
            "--nodes",
            "node01",
            "--save",
            "look.tar",
            "nic.name",
        )
        assert done.returncode == 0, done.stderr
        left = transport.run(find, ["node01"], timeout_s=60)["node01"]
        assert left.stdout.decode().split() == []
    finally:
        transport.run(["rm", "-f", "/tmp/wulf-mark"], ["node01"], timeout_s=20)
        transport.close()
    with tarfile.open(tmp_path / "look.tar") as archive:
        assert sorted(archive.getnames()) == ["nodes/node01.tree", "wulf-facts.json"]


def test_a_saved_look_says_the_same(cluster, tmp_path):
    live = run(tmp_path, "audit", "facts", "--cluster", "lab", "--save", "look.tar", "--json")
    assert live.returncode == 0, live.stderr
    again = run(tmp_path, "audit", "facts", "--from", "look.tar", "--json")
    assert json.loads(again.stdout) == json.loads(live.stdout)
    assert run(tmp_path, "audit", "--from", "look.tar", "--fail-on", "fail").returncode == 0
    one = run(tmp_path, "audit", "--from", "look.tar", "--nodes", "node[02-03]", "--json")
    assert json.loads(one.stdout)["nodes"] == ["node02", "node03"]
    strange = run(tmp_path, "audit", "--from", "look.tar", "--nodes", "node[04-05]")
    assert strange.returncode == 2
    assert "node05 is not in look.tar, which has node[01-04]" in strange.stderr


@pytest.mark.thorough
def test_knobs_are_read_and_folded(cluster, tmp_path):
    done = run(tmp_path, "settings", "get", "nic.mtu", "rx_usecs", "hpl.N", "--cluster", "lab")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "node[01-04]: nic.mtu: 1500 B"
    assert lines[1].startswith("node[01-04]: nic.rx_usecs: unsupported: ")
    assert lines[2].startswith("node[01-04]: hpl.N: absent: it belongs to a job")


def test_findings_set_the_exit_code(cluster, tmp_path):
    live = ["audit", "--cluster", "lab", "--profile", "hpc", "--junit", "a.xml", "--html", "a.html"]
    clean = run(tmp_path, *live, "--fail-on", "fail")
    assert clean.returncode == 0, clean.stdout
    assert (tmp_path / "a.xml").is_file() and (tmp_path / "a.html").is_file()
    assert run(tmp_path, "audit", "facts", "--cluster", "lab", "--save", "look.tar").returncode == 0
    saved = ["audit", "--from", "look.tar"]
    assert run(tmp_path, *saved, "--profile", "hpc", "--fail-on", "info").returncode == 3
    markdown = run(tmp_path, *saved, "--markdown")
    assert markdown.stdout.startswith("# ")
    assert "looked at with the profile" in markdown.stdout
