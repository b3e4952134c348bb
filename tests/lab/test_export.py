"""Exported settings, used by the programs that they are for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on
from wulf.base import catalogue
from wulf.node.change import steps
from wulf.node.change.export import Chosen
from wulf.node.change.export.ansible import ansible
from wulf.node.change.export.shell import shell
from wulf.node.change.export.tuned import tuned
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

NODES = ["node01", "node02"]
SETTINGS = (
    "net.ipv4.tcp_slow_start_after_idle=0",
    "nic.gro=on",
    "nic.mtu=1400",
    "net.conntrack=notrack",
    "svc.irqbalance=off",
)
#: The links of System V are systemd's and TuneD's business: they differ though nothing of them counts.
SEEN = (
    "sysctl -n net.ipv4.tcp_slow_start_after_idle; ethtool -k host0 | grep ^generic-receive; "
    "cat /sys/class/net/host0/mtu; nft list ruleset; systemctl is-enabled irqbalance; "
    "find /etc ! -path '/etc/tuned*' ! -path /etc/ld.so.cache ! -path '/etc/rc?.d/*' -printf '%p %m %l\\n' | sort"
)
IS_SET = ["0", "generic-receive-offload: on", "1400"]


@pytest.fixture
def chosen(lab_cluster):
    transport = open_transport(inventory.parse(lab_cluster.cluster_toml(), "lab"))
    try:
        records = capture(transport, NODES, "host0", list(catalogue.knobs().values()))
    finally:
        transport.close()
    wanted = steps.parse(SETTINGS)
    return {record.node: Chosen(wanted=wanted, interface="host0", record=record) for record in records}


@pytest.fixture
def before(lab_cluster):
    """What the nodes are like; the test must leave them so."""
    found = {node: on(lab_cluster, node, SEEN) for node in NODES}
    yield found
    for node in NODES:
        changed = set(on(lab_cluster, node, SEEN).splitlines()) ^ set(found[node].splitlines())
        assert not changed, "\n".join(sorted(changed))


def script(cluster, node, text, verb):
    argv = cluster.ssh_argv(node, ["sh", "-s", verb])
    return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("guard", ["without a guard", "with a guard"])
def test_the_shell_script_sets_keeps_and_undoes(lab_cluster, chosen, before, guard, tmp_path):
    """Where there is a guard, it sets at boot what wants a guard; the script takes that back, too."""
    on(lab_cluster, "node01", "rm -rf /var/lib/wulf")
    if guard == "with a guard":
        own = {"WULF_LAB_DIR": os.environ["WULF_LAB_DIR"]}
        for verb in ("settings set tcp_autocorking=0 --nodes node01", "rollback"):
            assert wulf(tmp_path, *verb.split(), "--cluster", "lab", **own).returncode == 0
    (text,) = shell(chosen).values()
    try:
        assert script(lab_cluster, "node01", text, "status").returncode == 1
        applied = script(lab_cluster, "node01", text, "apply")
        assert (applied.returncode, applied.stderr) == (0, "")
        assert script(lab_cluster, "node01", text, "status").returncode == 0
        lab_cluster.reboot("node01")
        on(lab_cluster, "node01", "systemctl is-system-running --wait >/dev/null || true")
        assert on(lab_cluster, "node01", SEEN).splitlines()[:3] == IS_SET
        assert script(lab_cluster, "node01", text, "status").returncode == 0
    finally:
        undone = script(lab_cluster, "node01", text, "undo")
    assert (undone.returncode, undone.stderr) == (0, "")


def test_ansible_changes_nothing_the_second_time_and_undoes(lab_cluster, chosen, before, tmp_path):
    program = Path(sys.executable).parent / "ansible-playbook"
    if not program.exists():
        pytest.skip("ansible-playbook is not installed (ansible-core of the group dev)")
    for name, text in ansible(chosen).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    sockets = tempfile.mkdtemp(prefix="wa-", dir="/tmp")

    def play(*options, playbook="wulf.yml"):
        """Node → counts of the recap."""
        reach = ["--ssh-common-args", f"-F {lab_cluster.ssh_config}"]
        done = subprocess.run(
            [program, "-i", "wulf.ini", *reach, *options, playbook],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={
                "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": str(tmp_path),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_REMOTE_TEMP": "/tmp/.ansible",
                # One connection for a task instead of several: it takes half the time.
                "ANSIBLE_PIPELINING": "1",
                # The names of sockets must be short; in HOME they are not where pytest-xdist has made it.
                "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
            },
        )
        assert done.returncode == 0, done.stdout + done.stderr
        recap = re.findall(r"^(node\d+) .*changed=(\d+) .*failed=(\d+)", done.stdout, re.M)
        assert [node for node, _, failed in recap if failed == "0"] == NODES
        return {node: int(changed) for node, changed, _ in recap}

    try:
        foreseen = play("--check")
        assert {node: on(lab_cluster, node, SEEN) for node in NODES} == before
        first = play()
        assert min(foreseen.values()) > 2
        assert min(first.values()) > 4
        for node in NODES:
            assert on(lab_cluster, node, SEEN).splitlines()[:3] == IS_SET
        assert set(play().values()) == {0}
        on(lab_cluster, "node02", "ip link set host0 mtu 1500")
        assert play("--check") == {"node01": 0, "node02": 1}
        assert play() == {"node01": 0, "node02": 1}
    finally:
        undone = play(playbook="wulf-undo.yml")
        assert min(undone.values()) > 2
        assert set(play(playbook="wulf-undo.yml").values()) == {0}
        shutil.rmtree(sockets)


def test_tuned_applies_and_verifies_the_profile(lab_cluster, chosen, before, tmp_path):
    if not shutil.which("tuned-adm"):
        pytest.skip("TuneD is not installed (package tuned)")
    on(lab_cluster, "node01", "mkdir -p /etc/tuned/wulf; rm -f /etc/tuned/active_profile")
    for name, text in tuned(chosen).items():
        argv = lab_cluster.ssh_argv(
            "node01", ["sh", "-c", f"cat >/etc/tuned/{name}; chmod 755 /etc/tuned/{name}"]
        )
        subprocess.run(argv, input=text, text=True, check=True)
    try:
        on(lab_cluster, "node01", "systemctl start tuned && tuned-adm profile wulf", timeout_s=300)
        assert on(lab_cluster, "node01", "tuned-adm active") == "Current active profile: wulf"
        assert on(lab_cluster, "node01", SEEN).splitlines()[:3] == IS_SET
        assert "notrack" in on(lab_cluster, "node01", "nft list ruleset")
        verified = on(lab_cluster, "node01", "tuned-adm verify", timeout_s=300)
        assert "current system settings match the preset profile" in verified
        on(lab_cluster, "node01", "ip link set host0 mtu 1500")
        failed = on(lab_cluster, "node01", "tuned-adm verify 2>&1 || true", timeout_s=300)
        assert "differ from the preset profile" in failed
    finally:
        on(
            lab_cluster,
            "node01",
            "tuned-adm off; systemctl stop tuned; rm -rf /etc/tuned/wulf",
            timeout_s=300,
        )
