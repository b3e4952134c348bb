"""Heat, memory, firmware, NUMA, pause frames, links that flap: facts and findings of what a machine says of itself."""

import pytest

from wulf.base import catalogue
from wulf.node.facts.parse import parse
from wulf.node.fleet.look import judge

KNOBS = list(catalogue.knobs().values())
CPU = "/sys/devices/system/cpu/"
EDAC = "/sys/devices/system/edac/mc/"
NIC = "/sys/class/net/eno1/"
HEAD = (
    "#time.1 0\n 86400.00 345000.00\n#time.2 0\n 86401.00 345004.00\n#stat.1 0\n btime 1764063600\n"
    f"#links 0\n eno1 0000:03:00.0 ixgbe - -\n-\n/proc/1/stat:1 (systemd) S{' 0' * 18} 100 0\n"
    f"{NIC}mtu:1500\n{NIC}device/numa_node:0\n"
    "#lscpu 0\n NUMA node(s):            2\n#date 0\n 1764150000.5\n-\n"
)


def node(text):
    return parse("node01", HEAD + text, "eno1", KNOBS)


def found(text):
    return {one.id: one.found for one in judge([node(text)], "hpc").findings}


def registers(control, express=0x10, size=256):
    """Return what ``od`` prints of a card's registers: a power management capability, then PCI Express."""
    found = bytearray(size)
    found[0x34:0x35] = b"\x40"
    if size > 0x40:
        found[0x40:0x42] = b"\x01\x70"
        found[0x70:0x72] = bytes([express, 0])
        found[0x78:0x7A] = control.to_bytes(2, "little")
    rows = [found[at : at + 16].hex(" ") for at in range(0, size, 16)]
    return "#pci_config.eno1 0\n" + "".join(f"  {row}\n" for row in rows)


#: What a node prints, the finding that comes of it, and its words.
FAULTS = {
    "cpu.throttled": (
        f"{CPU}cpu0/thermal_throttle/core_throttle_count:0\n{CPU}cpu1/thermal_throttle/package_throttle_count:7\n",
        "a core has been throttled 7 times since the boot",
    ),
    "memory.uncorrected": (f"{EDAC}mc0/ue_count:0\n{EDAC}mc1/ue_count:2\n", "2 uncorrected errors"),
    "memory.corrected": (f"{EDAC}mc0/ce_count:30\n{EDAC}mc1/ce_count:1\n", "31 corrected errors"),
    "memory.uneven": (
        f"{EDAC}mc0/dimm0/size:16384\n{EDAC}mc0/dimm1/size:16384\n{EDAC}mc1/dimm0/size:16384\n{EDAC}mc1/dimm1/size:0\n",
        "mc0 2 x 16384 MiB; mc1 1 x 16384 MiB",
    ),
    "node.old_firmware": (
        "/sys/class/dmi/id/bios_date:03/14/2014\n/sys/class/dmi/id/bios_version:1.2\n",
        "11.7 years old",
    ),
    "kernel.old": (
        "#kernel_version 0\n #1 SMP PREEMPT Debian 5.10.70-1 (2021-09-30)\n#kernel 0\n 5.10.0-9-amd64\n",
        "the kernel 5.10.0-9-amd64 was built 4.2 years ago",
    ),
    "nic.driver_out_of_tree": (
        f"{NIC}device/driver/module/taint:OE\n#ethtool-i.eno1 0\n driver: ixgbe\n version: 5.19.9\n"
        "#kernel 0\n 6.1.0\n",
        "eno1: ixgbe 5.19.9, built apart from the kernel 6.1.0",
    ),
    "nic.relaxed_ordering": (
        f"{NIC}speed:25000\n-\n" + registers(0x2910 & ~0x10),
        "eno1 has its writes to memory in strict order",
    ),
    "nic.iommu": (
        f"{NIC}speed:10000\n{NIC}device/iommu_group/type:DMA-FQ\n",
        "addresses of eno1 are translated (DMA-FQ)",
    ),
    "nic.flaps": (f"{NIC}carrier_changes:240\n", "the link of eno1 has changed 240 times"),
    "nic.interrupts_away": (
        "/sys/devices/system/node/node0/cpulist:0-3,8\n#irqs.eno1 0\n 40 41\n"
        "#interrupts.1 0\n 40: 10 8 10 PCI-MSI eno1-0\n 41: 10 5 10 PCI-MSI eno1-1\n"
        "#interrupts.2 0\n 40: 20 8 20 PCI-MSI eno1-0\n 41: 20 5 20 PCI-MSI eno1-1\n",
        "CPU 5 handles interrupts of eno1, which is on NUMA node 0",
    ),
    "nic.pause_frames": (
        "#ethtool-S.eno1.1 0\n NIC statistics:\n      rx_flow_control_xoff: 5\n"
        "#ethtool-S.eno1.2 0\n NIC statistics:\n      rx_flow_control_xoff: 105\n",
        "rx_flow_control_xoff +100",
    ),
    "nic.pacing": (
        f"{NIC}speed:25000\n/proc/sys/net/core/default_qdisc:fq_codel\n",
        "eno1 sends bursts at line rate (default_qdisc is fq_codel)",
    ),
}
#: The same, where all is well.
WELL = {
    "cpu.throttled": f"{CPU}cpu0/thermal_throttle/core_throttle_count:0\n",
    "memory.uncorrected": f"{EDAC}mc0/ue_count:0\n",
    "memory.corrected": f"{EDAC}mc0/ce_count:3\n",
    "memory.uneven": f"{EDAC}mc0/dimm0/size:16384\n{EDAC}mc1/dimm0/size:16384\n",
    "node.old_firmware": "/sys/class/dmi/id/bios_date:03/14/2024\n",
    "kernel.old": "#kernel_version 0\n #63-Ubuntu SMP Wed Mar  5 09:00:00 UTC 2025\n",
    "nic.driver_out_of_tree": f"{NIC}device/driver/module/taint:\n",
    "nic.relaxed_ordering": f"{NIC}speed:25000\n-\n" + registers(0x2910),
    "nic.iommu": f"{NIC}speed:10000\n{NIC}device/iommu_group/type:identity\n",
    "nic.flaps": f"{NIC}carrier_changes:3\n",
    "nic.interrupts_away": FAULTS["nic.interrupts_away"][0].replace("0-3,8", "0-8"),
    "nic.pause_frames": FAULTS["nic.pause_frames"][0].replace("105", "5"),
    "nic.pacing": f"{NIC}speed:25000\n/proc/sys/net/core/default_qdisc:fq\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_what_is_well_is_not(name):
    text, words = FAULTS[name]
    said = found(text)
    assert words in said[name]
    assert name not in found(WELL[name])


@pytest.mark.parametrize("name", FAULTS)
def test_of_what_a_node_does_not_say_nothing_is_said(name):
    assert name not in found("")


def test_a_firmware_without_a_date_that_can_be_has_no_age():
    for text in ("", "31/31/2020", "99/99/99999", "x"):
        assert "node.firmware_age_years" not in node(f"/sys/class/dmi/id/bios_date:{text}\n").facts


@pytest.mark.parametrize(
    "text",
    [
        registers(0, size=64),
        registers(0, express=0x05),
        "#pci_config.eno1 0\n zz\n",
        "#pci_config.eno1 1\n od: /sys/class/net/eno1/device/config: Permission denied\n",
    ],
)
def test_registers_that_cannot_be_read_say_nothing_of_the_order_of_writes(text):
    assert "nic.relaxed_ordering" not in node(f"{NIC}speed:25000\n-\n{text}").facts


@pytest.mark.parametrize("text", ["#1 SMP", "#1 SMP (2020-13-01)", "#1 Xyz  5 09:00:00 2024", ""])
def test_a_kernel_without_a_date_that_can_be_has_no_age(text):
    assert "kernel.age_years" not in node(f"#kernel_version 0\n {text}\n").facts
