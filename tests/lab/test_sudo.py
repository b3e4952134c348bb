"""Nodes with systemd whose settings are changed by a user who is not root; see also ``tests/contract/test_sudo.py``."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.cli.command import wulf
from tests.conftest import OTHER_LAB
from tests.lab.test_nodes import on
from wulf.node.change.guard import PLACE

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough, pytest.mark.xdist_group(OTHER_LAB)]

USER = "wulftester"
ADD = f"""
echo '{USER}:x:64321:64321::/home/{USER}:/bin/sh' >>/etc/passwd
echo '{USER}:*:19000::::::' >>/etc/shadow
echo '{USER}:x:64321:' >>/etc/group
mkdir -p /home/{USER}/.ssh
cp /root/.ssh/authorized_keys /home/{USER}/.ssh
chown -R 64321:64321 /home/{USER}
umask 337
echo '{USER} ALL = (root) NOPASSWD: ALL' >/etc/sudoers.d/site
"""
REMOVE = f"""
sed -i '/^{USER}:/d' /etc/passwd /etc/shadow /etc/group
rm -rf /home/{USER} /etc/sudoers.d/site {PLACE}
"""
MTU = "cat /sys/class/net/host0/mtu"


@pytest.fixture
def run(lab_cluster, tmp_path):
    if shutil.which("visudo", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("sudo is not installed (apt install sudo)")
    (tmp_path / "cluster.toml").write_text(
        f'{lab_cluster.cluster_toml()}\n[change]\nuser = "{USER}"\nbecome = "sudo"\n'
    )

    def command(*words):
        return wulf(tmp_path, *words, WULF_LAB_DIR=os.environ["WULF_LAB_DIR"])

    for node in lab_cluster.layout.names():
        on(lab_cluster, node, ADD)
    yield command
    assert command("rollback").returncode == 0
    for node in lab_cluster.layout.names():
        on(lab_cluster, node, REMOVE)


def test_another_user_than_the_one_who_measures_changes_all_nodes(run, lab_cluster):
    names = lab_cluster.layout.names()
    done = run("settings", "set", "nic.mtu=1400")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "confirmed over a new connection" in done.stdout
    assert [on(lab_cluster, node, MTU) for node in names] == ["1400"] * len(names)
    assert "nic.mtu = 1400" in run("settings", "status").stdout
    kept = run("settings", "persist")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert run("settings", "verify").returncode == 0
    back = run("rollback")
    assert back.returncode == 0, back.stdout + back.stderr
    assert [on(lab_cluster, node, MTU) for node in names] == ["1500"] * len(names)
    assert (
        on(
            lab_cluster,
            names[0],
            "find /etc -name '*wulf*' ! -name 'wulf-lab*'",
        )
        == ""
    )
