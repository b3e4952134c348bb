from __future__ import annotations

from pathlib import Path

import pytest

from wulf.base import catalogue
from wulf.node.facts.parse import parse

LAB = (Path(__file__).parents[1] / "golden" / "lab-node.tree").read_text()
KNOBS = list(catalogue.knobs().values())


def owners(*lines):
    facts = parse("node01", LAB + "-\n" + "\n".join(lines) + "\n", "host0", KNOBS).facts
    return {name.removeprefix("owner."): value for name, value in facts.items() if name.startswith("owner.")}


def running(unit):
    """The lab node's units, and one more that runs."""
    text = LAB.replace("#units 0\n", f"#units 0\n {unit} loaded active running X\n", 1)
    assert text != LAB
    return text


def owners_in(text, *lines):
    facts = parse("node01", text + "-\n" + "\n".join(lines) + "\n", "host0", KNOBS).facts
    return {name.removeprefix("owner."): value for name, value in facts.items() if name.startswith("owner.")}


def test_nobody_owns_anything_on_a_plain_node():
    assert owners() == {}


def test_the_active_profile_of_tuned_owns_what_it_sets():
    lines = [
        "/etc/tuned/active_profile:fast",
        "/etc/tuned/fast/tuned.conf:[main]",
        "/etc/tuned/fast/tuned.conf:include=base",
        "/etc/tuned/fast/tuned.conf:[cpu]",
        "/etc/tuned/fast/tuned.conf:governor=performance",
        "/usr/lib/tuned/base/tuned.conf:[sysctl]",
        "/usr/lib/tuned/base/tuned.conf:net.core.busy_read=50",
        "/usr/lib/tuned/base/tuned.conf:[net]",
        "/usr/lib/tuned/base/tuned.conf:features=gro off",
    ]
    found = owners_in(running("tuned.service"), *lines)
    assert found["cpu.governor"] == "TuneD (profile fast, [cpu])"
    assert found["sysctl.net.core.busy_read"] == "TuneD (profile base, [sysctl])"
    assert {"nic.gro", "nic.lro", "nic.tso_gso"} <= found.keys()
    # Installed but not running, it sets nothing.
    assert owners(*lines) == {}


@pytest.mark.parametrize(
    ("unit", "knob"),
    [
        ("irqbalance.service", "irq.affinity"),
        ("firewalld.service", "net.conntrack"),
        ("power-profiles-daemon.service", "cpu.epp"),
    ],
)
def test_a_daemon_owns_what_it_sets_again_and_again(unit, knob):
    assert owners_in(running(unit))[knob] == unit.removesuffix(".service")


def test_network_manager_owns_what_the_connection_of_the_interface_sets():
    file = "/etc/NetworkManager/system-connections/cluster.nmconnection"
    lines = [f"{file}:interface-name=host0", f"{file}:mtu=9000", f"{file}:coalesce-rx-usecs=3"]
    found = owners_in(running("NetworkManager.service"), *lines)
    assert found == {"nic.mtu": f"NetworkManager ({file})", "nic.rx_usecs": f"NetworkManager ({file})"}
    other = [line.replace("host0", "eth7") for line in lines]
    assert owners_in(running("NetworkManager.service"), *other) == {}


def test_a_file_that_a_tool_manages_is_the_tools():
    name = "/etc/sysctl.d/50-site.conf"
    lines = [f"{name}:net.ipv4.tcp_autocorking=0"]
    marks = ["#managed 0", f" {name}:# Ansible managed: do not edit"]
    text = LAB.replace("#managed 0", "#managed_before 0")
    found = owners_in(text, *lines, *marks)
    assert found == {"sysctl.net.ipv4.tcp_autocorking": f"Ansible ({name})"}
    assert owners(*lines) == {}


def test_cloud_init_owns_the_mtu_it_sets():
    name = "/etc/netplan/50-cloud-init.yaml"
    lines = [f"{name}:{line}" for line in ("network:", "  ethernets:", "    host0:", "      mtu: 9000")]
    marks = ["#managed 0", f" {name}:# This file is generated from information provided by cloud-init."]
    text = LAB.replace("#managed 0", "#managed_before 0")
    assert owners_in(text, *lines, *marks) == {"nic.mtu": f"cloud-init ({name})"}
