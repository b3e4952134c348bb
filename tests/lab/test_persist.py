"""Settings that are kept hold after a reboot, and a rollback leaves no trace of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap

import pytest

from tests.lab.test_nodes import on
from wulf.base import catalogue
from wulf.node.change import apply, configuration_files, steps
from wulf.node.change.guard import Guards
from wulf.node.change.persist import marker, persist
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

NODE = "node03"
#: What the tests change, and all that tells of files and services.
WATCHED = (
    "nic.mtu",
    "nic.gro",
    "net.conntrack",
    "svc.irqbalance",
    "service.irqbalance",
    "sysctl.net.ipv4.tcp_slow_start_after_idle",
    "keep.files",
    "keep.sysctls",
    "settings.contradicted",
    "settings.unkept",
    "system.failed",
)
FILES = "find /etc ! -path '/etc/ld.so.cache' -printf '%p %m %u %g %l\\n' | sort"

#: Services of this module's tests: their names, whether each starts at boot, whether it runs now.
SERVICES = (
    "for service in nftables irqbalance; do "
    "echo $service $(systemctl is-enabled $service) $(systemctl is-active $service); done"
)
AT_BOOT = {"enabled": "enable", "disabled": "disable"}
NOW = {"active": "start", "inactive": "stop"}


class Node:
    """One node with its guard."""

    def __init__(self, cluster, transport):
        self.cluster = cluster
        self.transport = transport
        self.guards = Guards(transport, "test")

    def run(self, script):
        return on(self.cluster, NODE, script)

    def facts(self):
        self.run("systemctl is-system-running --wait >/dev/null || true")
        return capture(self.transport, [NODE], "host0", list(catalogue.knobs().values()))[0]

    def seen(self):
        record = self.facts()
        return {name: record.facts.get(name) for name in WATCHED}

    def set(self, *words):
        """Set, keep, and return what was set and where it is kept."""
        wanted = steps.parse(words)
        done = apply.change(self.guards, {NODE: steps.plan(wanted, "host0")}, deadline_s=60)
        assert done.kept, done.reason
        found = persist(wanted, "host0", self.facts(), done.change)
        kept = apply.change(self.guards, {NODE: found.steps}, deadline_s=60)
        assert kept.kept, kept.reason
        return found

    def roll_back(self):
        done = apply.rollback(self.guards, [NODE], "original", deadline_s=60)
        assert done.kept, done.reason

    def reboot(self):
        self.cluster.reboot(NODE)
        self.run("systemctl is-system-running --wait >/dev/null || true")


@pytest.fixture
def node(lab_cluster):
    config = inventory.parse(lab_cluster.cluster_toml(), "lab")
    transport = open_transport(config)
    found = Node(lab_cluster, transport)
    services = found.run(SERVICES)
    try:
        yield found
    finally:
        apply.rollback(found.guards, [NODE], "original", deadline_s=60)
        found.run("rm -rf /var/lib/wulf /etc/wulf")  # a file that somebody else has edited stays
        for service, at_boot, now in (line.split() for line in services.splitlines()):
            found.run(f"systemctl {AT_BOOT[at_boot]} {service} 2>&1; systemctl {NOW[now]} {service} 2>&1")
        transport.close()


def test_all_kinds_hold_after_a_reboot_and_go_without_a_trace(node):
    node.run("systemctl enable nftables irqbalance 2>&1")
    node.reboot()
    before, files = node.seen(), node.run(FILES)
    found = node.set(
        "net.ipv4.tcp_slow_start_after_idle=0",
        "nic.gro=on",
        "nic.mtu=1400",
        "net.conntrack=notrack",
        "svc.irqbalance=off",
    )
    assert found.unpersistable == {}
    assert set(found.places) == {
        "sysctl.net.ipv4.tcp_slow_start_after_idle",
        "nic.gro",
        "nic.mtu",
        "net.conntrack",
        "svc.irqbalance",
    }
    kept = node.seen()
    node.reboot()
    assert node.seen() == kept
    assert {name: kept[name] for name in WATCHED[:6]} == {
        "nic.mtu": "1400",
        "nic.gro": "on",
        "net.conntrack": "notrack",
        "svc.irqbalance": "off",
        "service.irqbalance": "off",
        "sysctl.net.ipv4.tcp_slow_start_after_idle": "0",
    }
    assert kept["settings.unkept"] == kept["settings.contradicted"] == "none"
    assert node.run("systemctl is-active wulf-settings") == "active"
    node.roll_back()
    assert node.run(FILES) == files
    assert node.seen() == before
    node.reboot()
    assert node.seen() == before


def test_the_exemption_outlives_every_reload_of_the_packet_filter(node):
    node.run("systemctl enable --now nftables 2>&1")
    node.set("net.conntrack=notrack")
    for verb in ("reload", "restart", "reload"):
        node.run(f"systemctl {verb} nftables")
        rules = node.run("nft list ruleset")
        assert rules.count("notrack") == 2
        assert rules.count('accept comment "wulf"') == 2
    node.roll_back()
    node.run("systemctl reload nftables")
    assert "wulf" not in node.run("nft list ruleset")


def test_keeping_fewer_settings_takes_the_files_of_the_others_away(node):
    node.set("net.ipv4.tcp_slow_start_after_idle=0", "nic.gro=on")
    node.set("net.ipv4.tcp_slow_start_after_idle=0")
    assert node.facts().facts["keep.files"] == "/etc/sysctl.d/90-wulf.conf"
    assert node.run("ls /etc/wulf") == ""
    node.roll_back()
    assert "No such file" in node.run("ls /etc/wulf 2>&1 || true")
    assert node.facts().facts["keep.files"] == "none"


def test_a_setting_that_fails_at_boot_is_seen_and_keeps_no_other_from_being_set(node):
    node.set("nic.gro=on", "nic.mtu=1400")
    node.run(
        "sed -i 's/^keep nic nic.gro .*/keep nic nic.gro ethtool host0 feature.nonsense on/' /etc/wulf/settings.sh"
    )
    node.reboot()
    record = node.facts()
    assert record.facts["nic.mtu"] == "1400"
    assert "wulf-settings" in record.facts["system.failed"]
    assert "nic.gro=on" in node.run("journalctl -u wulf-settings --no-pager")
    # What somebody else has edited stays; the rest is put back.
    node.roll_back()
    assert "wulf-settings" not in (node.facts().facts.get("system.failed") or "")


LINK_TEST = """
set -e
mount -t sysfs none /sys
mount -t tmpfs none /run
mkdir -p /etc/systemd/network
mount -t tmpfs none /etc/systemd/network
ip link add eth7 address 02:00:00:00:00:07 type veth peer name eth8
cp "$1" /etc/systemd/network/99-default.link
udevadm test-builtin net_setup_link /sys/class/net/eth7 2>&1
echo ====
cp "$2" /etc/systemd/network/10-wulf-eth7.link
udevadm test-builtin net_setup_link /sys/class/net/eth7 2>&1
cat /sys/class/net/eth7/mtu
ethtool -k eth7
"""


def test_udev_itself_reads_the_link_file_and_keeps_the_name(tmp_path):
    if os.geteuid() != 0 or not shutil.which("udevadm"):
        pytest.skip("udevadm (package udev) is not installed, or this is not root")
    before = ["NamePolicy=keep kernel database onboard slot path", "MACAddressPolicy=persistent"]
    words = (
        "nic.gro=on nic.mtu=1400 nic.rx_usecs=0 nic.rings=512,max nic.channels=combined,1 nic.pause=off,off "
        "nic.tso_gso=off,on nic.lro=off nic.rx_frames=1 nic.adaptive_rx=off"
    )
    wanted = steps.parse([word.replace(",", " ") for word in words.split()])
    lines = [line for knob_setting in wanted for line in configuration_files.link_lines(knob_setting, 252)]
    assert len(lines) >= 12
    text = configuration_files.link("02:00:00:00:00:07", "99-default.link", before, lines, marker("test"))
    # A virtual interface has no permanent address.
    (tmp_path / "own").write_text(text.replace("PermanentMACAddress", "MACAddress"))
    (tmp_path / "default").write_text("\n".join(["[Match]", "OriginalName=*", "[Link]", *before, ""]))
    done = subprocess.run(
        [
            "unshare",
            "-mn",
            "sh",
            "-c",
            textwrap.dedent(LINK_TEST),
            "sh",
            tmp_path / "default",
            tmp_path / "own",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("====\n")
    assert "ID_NET_NAME=eth7\n" in first
    assert "ID_NET_NAME=eth7\n" in second
    assert "ID_NET_LINK_FILE=/etc/systemd/network/10-wulf-eth7.link\n" in second
    assert "10-wulf-eth7.link:" not in second  # what systemd says of a line that it does not know
    assert "\n1400\n" in second
    assert "generic-receive-offload: on" in second
