"""``wulf settings set``, ``status``, ``rollback`` as a user types them; see also ``make bench NAME=faults``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest

from tests.cli.command import start, wulf
from tests.lab.host import wait_until
from tests.lab.test_nodes import on

pytestmark = [pytest.mark.lab, pytest.mark.root]

KNOB = "sysctl.net.ipv4.tcp_autocorking"
MTU = "cat /sys/class/net/host0/mtu"
CORKING = "cat /proc/sys/net/ipv4/tcp_autocorking"


@pytest.fixture
def run(lab_cluster, tmp_path):
    def command(*words):
        return wulf(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    yield command
    assert command("rollback", "--cluster", "lab").returncode == 0


def values(run, knob):
    found = json.loads(run("settings", "status", "--cluster", "lab", "--json").stdout)
    return {
        node["node"]: [s["now"] for s in node["settings"] if s["knob"] == knob and s["differs"]]
        for node in found
    }


def test_all_nodes_are_set_and_put_back(run, lab_cluster):
    done = run("settings", "set", "--cluster", "lab", "nic.mtu=1400", f"{KNOB}=0")
    assert done.returncode == 0, done.stderr
    assert "nic.mtu: 1500 → 1400 B on node[01-04]" in done.stdout
    assert "confirmed over a new connection" in done.stdout
    assert [on(lab_cluster, node, MTU).strip() for node in lab_cluster.layout.names()] == ["1400"] * 4
    assert values(run, "nic.mtu") == {node: ["1400"] for node in lab_cluster.layout.names()}
    back = run("rollback", "--cluster", "lab")
    assert back.returncode == 0, back.stderr
    assert "put back on node[01-04]" in back.stdout
    assert on(lab_cluster, "node02", MTU).strip() == "1500"
    assert on(lab_cluster, "node02", CORKING).strip() == "1"


@pytest.mark.thorough
def test_going_back_to_a_change_keeps_what_was_before_it(run, lab_cluster):
    assert run("settings", "set", "--cluster", "lab", f"{KNOB}=0").returncode == 0
    second = run("settings", "set", "--cluster", "lab", "nic.mtu=1400")
    change = second.stdout.split("change ")[1].split(";")[0]
    assert run("rollback", "--cluster", "lab", "--to", change).returncode == 0
    assert on(lab_cluster, "node03", MTU).strip() == "1500"
    assert on(lab_cluster, "node03", CORKING).strip() == "0"


@pytest.mark.thorough
def test_a_dry_run_prints_the_commands_and_changes_nothing(run, lab_cluster):
    done = run("settings", "set", "--cluster", "lab", "nic.mtu=1400", "nic.tso_gso=off off", "--dry-run")
    assert (
        "node[01-04]:\n  ip link set dev host0 mtu 1400\n  ethtool -K host0 tso off gso off\n" in done.stdout
    )
    assert on(lab_cluster, "node01", MTU).strip() == "1500"
    assert on(lab_cluster, "node01", "ethtool -k host0 | grep ^tcp-seg").strip().endswith("on")


def test_an_mtu_that_the_path_does_not_carry_is_put_back(run, lab_cluster):
    done = run("settings", "set", "--cluster", "lab", "nic.mtu=9000")
    assert done.returncode == 1
    assert "a packet of 9000 B does not reach" in done.stdout
    assert [on(lab_cluster, node, MTU).strip() for node in lab_cluster.layout.names()] == ["1500"] * 4


@pytest.mark.thorough
def test_a_file_without_addresses_will_do(run, lab_cluster, tmp_path):
    """As `wulf init` writes it where names resolve."""
    text = lab_cluster.cluster_toml()
    head, _, rest = text.partition("[addresses]\n")
    rest = "\n".join(line for line in rest.splitlines() if not line.startswith("node"))
    (tmp_path / "bare.toml").write_text(f"{head}[addresses]\n{rest}\n")
    assert "198.18" not in (tmp_path / "bare.toml").read_text().partition("[addresses]")[2]
    done = run("settings", "set", "--cluster", "bare.toml", "nic.mtu=1400")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note:" not in done.stdout
    refused = run("settings", "set", "--cluster", "bare.toml", "nic.mtu=9000")
    assert refused.returncode == 1
    assert "a packet of 9000 B does not reach" in refused.stdout
    assert on(lab_cluster, "node04", MTU).strip() == "1400"


def test_what_one_node_refuses_no_node_has(run, lab_cluster):
    # The control of congestion is the one of the kernel's modules that is loaded: this one is not.
    done = run("settings", "set", "--cluster", "lab", "tcp_congestion_control=westwood", f"{KNOB}=0")
    assert done.returncode == 1
    assert "does not take 'westwood'" in done.stdout
    assert on(lab_cluster, "node04", CORKING).strip() == "1"
    assert values(run, KNOB) == {node: [] for node in lab_cluster.layout.names()}


#: An ssh that says when a change is to be confirmed, and does not pass it on.
HOLDING = """#!/bin/sh
case "$*" in *" confirm "*)
	: > "{0}/reached"
	while [ ! -e "{0}/over" ]; do sleep 0.2; done
	exit 255 ;;
esac
exec {1} "$@"
"""


def test_a_controller_that_is_killed_leaves_nothing(run, lab_cluster, tmp_path):
    """Killed when all nodes have the change and none has confirmed it."""
    own = tmp_path / "bin"
    own.mkdir()
    (own / "ssh").write_text(HOLDING.format(own, shutil.which("ssh")), encoding="utf-8")
    (own / "ssh").chmod(0o755)
    words = ("settings", "set", "--cluster", "lab", "nic.mtu=1400", "--confirm-within", "20s")
    path = f"{own}:{os.environ['PATH']}"
    process = start(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"], PATH=path)
    try:
        wait_until(lambda: (own / "reached").exists() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    finally:
        (own / "over").touch()
    names = lab_cluster.layout.names()
    wait_until(lambda: [on(lab_cluster, node, MTU).strip() for node in names] == ["1500"] * 4)
    found = json.loads(run("settings", "status", "--cluster", "lab", "--json").stdout)
    assert all(node["journal"][-1]["state"].startswith("undone") for node in found)


def test_ctrl_c_puts_everything_back(run, lab_cluster, tmp_path):
    process = start(
        tmp_path,
        "settings",
        "set",
        "--cluster",
        "lab",
        "nic.mtu=1400",
        WULF_LAB_DIR=os.environ["WULF_LAB_DIR"],
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and on(lab_cluster, "node01", MTU).strip() != "1400":
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode in (0, 130), out + err
    if process.returncode == 130:
        assert "interrupted" in err
        assert "node[01-04]: put back as it was" in out
        assert on(lab_cluster, "node01", MTU).strip() == "1500"


@pytest.mark.thorough
def test_nodes_that_somebody_else_has_are_not_touched(run, lab_cluster):
    assert run("settings", "status", "--cluster", "lab").returncode == 0
    for node in lab_cluster.layout.names():
        on(lab_cluster, node, "/var/lib/wulf/guard lock somebody 60")
    try:
        done = run("settings", "set", "--cluster", "lab", f"{KNOB}=0")
        assert done.returncode == 1
        assert "busy: somebody has this node" in done.stdout
        assert on(lab_cluster, "node01", CORKING).strip() == "1"
        assert "locked by somebody" in run("settings", "status", "--cluster", "lab").stdout
    finally:
        for node in lab_cluster.layout.names():
            on(lab_cluster, node, "/var/lib/wulf/guard unlock somebody")


@pytest.mark.thorough
def test_values_of_a_change_that_nobody_has_confirmed_are_not_called_set(run, lab_cluster):
    plan = f"printf '%s\\tsysctl\\t-\\t%s\\t0\\n' {KNOB} {KNOB.removeprefix('sysctl.')}"
    guard = "/var/lib/wulf/guard"
    assert run("settings", "status", "--cluster", "lab").returncode == 0
    try:
        on(
            lab_cluster,
            "node02",
            f"{guard} lock dead 120 && {plan} | {guard} begin X1 dead 120 && {guard} apply X1 && {guard} unlock dead",
        )
        done = run("settings", "set", "--cluster", "lab", "--nodes", "node02", f"{KNOB}=0")
        assert done.returncode == 1
        assert "node02: change X1 of dead, which nobody has confirmed yet, is open there" in done.stderr
        assert "nothing to do" not in done.stdout
    finally:
        on(lab_cluster, "node02", f"{guard} undo X1")
    assert on(lab_cluster, "node02", CORKING).strip() == "1"


@pytest.mark.thorough
def test_the_exemption_lets_the_cluster_pass_and_goes_without_a_trace(run, lab_cluster):
    rules = (
        "table inet f { chain in { type filter hook input priority 0; policy accept; "
        "ct state invalid drop; tcp dport 9 drop; }; }"
    )
    on(lab_cluster, "node01", f"nft '{rules}'")
    before = on(lab_cluster, "node01", "nft -a list ruleset")
    try:
        done = run("settings", "set", "--cluster", "lab", "net.conntrack=notrack", "--nodes", "node01")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "notrack" in on(lab_cluster, "node01", "nft list ruleset")
        assert run("rollback", "--cluster", "lab").returncode == 0
        assert on(lab_cluster, "node01", "nft -a list ruleset") == before
    finally:
        on(lab_cluster, "node01", "nft delete table inet f")


@pytest.mark.thorough
def test_a_limit_that_the_watcher_restored_is_held_by_nobody_of_it(run, lab_cluster):
    """On a node with systemd, which ends all processes of a unit with it."""
    assert (
        run("settings", "set", "--cluster", "lab", f"{KNOB}=0", "--nodes", "node01").returncode == 0
    )  # brings the guard
    guard = "/var/lib/wulf/guard"
    plan = r"printf 'cpu.cstates_pmqos\tpm_qos\t-\t/run/latency\t%s\n'"
    on(lab_cluster, "node01", f": >/run/latency; {guard} lock me 300")
    on(lab_cluster, "node01", f"{plan} 10 | {guard} begin P me 60 && {guard} apply P && {guard} confirm P")
    on(lab_cluster, "node01", f"{plan} 0 | {guard} begin Q me 8 && {guard} apply Q")
    wait = "i=0; while [ -e /run/wulf/watcher ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done"
    on(lab_cluster, "node01", wait, timeout_s=120)
    gone = "until [ -z \"$(systemctl list-units --no-legend 'wulf-guard*')\" ]; do sleep 0.1; done"
    on(lab_cluster, "node01", gone, timeout_s=120)
    held = on(
        lab_cluster, "node01", "read -r pid us </var/lib/wulf/pm_qos && readlink /proc/$pid/fd/3 && echo $us"
    )
    assert held.split() == ["/run/latency", "10"]
    assert "wulf-latency" in on(
        lab_cluster, "node01", "read -r pid _ </var/lib/wulf/pm_qos; cat /proc/$pid/cgroup"
    )
    assert run("rollback", "--cluster", "lab").returncode == 0
    assert "fd" not in on(lab_cluster, "node01", "cat /var/lib/wulf/pm_qos 2>/dev/null || :")
    assert on(lab_cluster, "node01", "systemctl list-units --no-legend 'wulf-latency*'").strip() == ""
