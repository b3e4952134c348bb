"""Virtual machines of the lab: which files they get, what is loaded first, what starts them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from wulf.node.lab import cluster, topology
from wulf.node.lab.topology import Link
from wulf.node.lab.vm import initrd, machine, packages

LISTING = """\
base-files\t12\tyes\t, \t\tinstalled
bash\t5.2\tyes\tlibc6 (>= 2.36), libtinfo6 (>= 6)\t\tinstalled
libc6\t2.36\t\t, libgcc-s1:amd64 | libgcc1\t\tinstalled
libgcc-s1\t12\t\t, \tlibgcc1 (= 1:12)\tinstalled
libtinfo6\t6.4\t\t, \t\tinstalled
mailer\t1\t\t, \tmail-transport-agent\tinstalled
cron\t3\t\t, mail-transport-agent | nobody, libc6\t\tinstalled
gone\t1\t\t, libc6\t\tconfig-files
editor\t9\t\t, libc6\t\tinstalled
"""
DEPENDENCIES = """\
kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko kernel/fs/mbcache.ko kernel/fs/jbd2/jbd2.ko
kernel/fs/jbd2/jbd2.ko: kernel/lib/crc32c_generic.ko
kernel/lib/crc16.ko:
kernel/lib/crc32c_generic.ko:
kernel/fs/mbcache.ko:
kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko: kernel/drivers/ptp/ptp.ko kernel/drivers/pps/pps_core.ko
kernel/drivers/ptp/ptp.ko: kernel/drivers/pps/pps_core.ko
kernel/drivers/pps/pps_core.ko:
kernel/drivers/char/hw_random/virtio-rng.ko:
"""


def test_packages_are_those_that_are_needed_and_here():
    found = packages.needed(LISTING, ["cron", "not-here", "gone"])
    assert found == {
        "base-files": "12",
        "bash": "5.2",
        "cron": "3",
        "libc6": "2.36",
        "libgcc-s1": "12",
        "libtinfo6": "6.4",
        "mailer": "1",
    }


def test_modules_come_after_those_that_they_need():
    found = initrd.in_order(["e1000e", "ext4", "virtio_rng", "built_in"], DEPENDENCIES)
    assert len(found) == len(set(found)) == 8
    for before, after in (("pps_core", "ptp"), ("ptp", "e1000e"), ("jbd2", "ext4"), ("crc16", "ext4")):
        places = [
            next(n for n, path in enumerate(found) if f"/{name}.ko" in path) for name in (before, after)
        ]
        assert places[0] < places[1]
    assert found[-1].endswith("virtio-rng.ko")


def unpack(packed):
    """Read an archive as the kernel's documentation describes it (initramfs buffer format)."""
    place, found = 0, {}
    while True:
        assert packed[place : place + 6] == b"070701"
        fields = [int(packed[place + 6 + 8 * n : place + 14 + 8 * n], 16) for n in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = packed[place + 110 : place + 110 + length - 1].decode()
        place = (place + 110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, packed[place : place + size])
        place = (place + size + 3) // 4 * 4


def test_an_archive_has_what_was_given():
    found = unpack(initrd.archive({"init": b"\x7fELF", "a.ko": b"12345"}, ["dev"]))
    assert found == {"dev": (0o040755, b""), "init": (0o100755, b"\x7fELF"), "a.ko": (0o100755, b"12345")}


@pytest.mark.parametrize("nic", list(machine.DEVICES))
def test_a_machine_has_its_nic_and_disks(nic):
    words = machine.argv(machine.Vm(nic=nic), "node01", Path("/lab,a/vm"), Path("/d.img"))
    text = " ".join(words)
    assert f"{machine.DEVICES[nic][0]},netdev=net0,mac=52:54:00:" in text
    assert "tap,id=net0,ifname=vb-node01" in text and "-icount" in words
    assert "file=/lab,,a/vm/base.img,if=none,id=base,format=raw,readonly=on" in words
    assert "file=/d.img,if=none,id=disk,format=raw,readonly=off" in words
    kvm = machine.argv(machine.Vm(nic=nic, is_kvm=True), "node01", Path("/c"), Path("/d"))
    assert "kvm" in kvm and "-icount" not in kvm


def test_addresses_of_nodes_differ_and_stay():
    names = [f"node{number:02d}" for number in range(1, 65)]
    found = [machine.address(name) for name in names]
    assert len(set(found)) == 64 and found == [machine.address(name) for name in names]
    assert all(re.fullmatch("52:54:00(:[0-9a-f]{2}){3}", one) for one in found)


def test_a_machine_names_its_own_nic_and_leaves_sys_alone():
    node = topology.plan(2, [0, 1], Link(mtu=9000)).nodes[0]
    unit = topology.network_unit(node, vm=machine.Vm(nic="e1000e"))
    assert "ip link set dev eth0 name host0" in unit and "mtu 9000" in unit and "lab-sys" not in unit
    assert "eth0" not in topology.network_unit(node)


def test_a_machine_with_a_bond_has_two_nics_in_it():
    vm = machine.Vm(nic="e1000e", has_bond=True)
    words = machine.argv(vm, "node01", Path("/c"), Path("/d"))
    assert [
        word.partition("ifname=")[2].partition(",")[0] for word in words if "ifname=" in word
    ] == vm.devices("node01")
    macs = [word.partition("mac=")[2] for word in words if "mac=" in word]
    assert len(set(macs)) == 2 and macs[0] == machine.address("node01")
    unit = topology.network_unit(topology.plan(2, [0, 1], Link()).nodes[0], vm=vm)
    assert "ip link add host0 type bond" in unit and "ip link set dev eth1 master host0" in unit
    assert "name host0" not in unit


@pytest.mark.parametrize("is_kvm", [True, False])
def test_a_machine_that_says_nothing_is_told_and_what_to_do_about_it(tmp_path, is_kvm):
    vm = machine.Vm(nic="e1000e", is_kvm=is_kvm)
    planned = msgspec.structs.replace(topology.plan(1, [0], Link()), vm=vm)
    raised = cluster.Lab(tmp_path, cluster.State(version=1, phase="raising", namespace="n", topology=planned))
    place = tmp_path / "nodes" / "node01"
    place.mkdir(parents=True)
    assert f"its console, {place / 'console.log'}, says nothing" in raised._console("node01")
    assert ("leave out --kvm" in raised._console("node01")) == is_kvm
    (place / "console.log").write_bytes(b"Kernel panic\n")
    assert raised._console("node01").endswith("says:\nKernel panic\n")
