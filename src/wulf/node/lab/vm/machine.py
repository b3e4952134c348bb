"""The words that start a virtual machine.  Pure."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

EMULATOR = "qemu-system-x86_64"
Nic = Literal["igb", "e1000e", "virtio"]
#: What a NIC is called: by QEMU, and by its driver.
DEVICES: dict[Nic, tuple[str, str]] = {
    "igb": ("igb", "igb"),
    "e1000e": ("e1000e", "e1000e"),
    "virtio": ("virtio-net-pci", "virtio_net"),
}
_MEMORY_MIB = 768
#: In virtual time an instruction takes 2 to this power ns.
_SHIFT = 1
_KERNEL_WORDS = (
    "console=ttyS0 quiet net.ifnames=0 random.trust_cpu=on mitigations=off systemd.show_status=0 "
    "systemd.log_level=warning rdinit=/init"
)


class Vm(msgspec.Struct, frozen=True, kw_only=True):
    """What all virtual machines of a lab have in common."""

    nic: Nic
    #: Whether the processor of this machine runs them; else their time is virtual: every instruction takes the same.
    is_kvm: bool = False
    #: Whether each has two NICs, of which its interface is a bond.
    has_bond: bool = False

    def devices(self, node: str) -> list[str]:
        """Return the other ends of a node's cables, which are made when it starts."""
        return [f"vb-{node}", *([f"vc-{node}"] if self.has_bond else [])]


def address(name: str) -> str:
    """Return the hardware address of a node, which is always the same."""
    digest = hashlib.sha256(name.encode()).digest()
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in digest[:3])


def argv(vm: Vm, name: str, common: Path, disk: Path) -> list[str]:
    """Return the command that runs a node.

    Parameters
    ----------
    common
        Directory with ``kernel``, ``initrd`` and ``base.img``.
    disk
        Its own.
    """
    time = ["-accel", "kvm", "-cpu", "host"]
    if not vm.is_kvm:
        time = ["-accel", "tcg,thread=single", "-cpu", "max", "-icount", f"shift={_SHIFT},sleep=on"]
    return [
        EMULATOR,
        *("-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio"),
        *("-name", name, "-machine", "q35", *time, "-smp", "1", "-m", str(_MEMORY_MIB)),
        *("-kernel", str(common / "kernel"), "-initrd", str(common / "initrd")),
        *("-append", _KERNEL_WORDS),
        *_drive("base", common / "base.img", is_read_only=True),
        *_drive("disk", disk, is_read_only=False),
        *("-device", "virtio-rng-pci"),
        *(word for number, device in enumerate(vm.devices(name)) for word in _nic(vm, name, number, device)),
    ]


def _nic(vm: Vm, name: str, number: int, device: str) -> list[str]:
    own = address(f"{name}/{number}" if number else name)
    return [
        *("-netdev", f"tap,id=net{number},ifname={device},script=no,downscript=no"),
        *("-device", f"{DEVICES[vm.nic][0]},netdev=net{number},mac={own}"),
    ]


def _drive(name: str, path: Path, *, is_read_only: bool) -> list[str]:
    mode = "on" if is_read_only else "off"
    file = str(path).replace(",", ",,")
    return [
        *("-drive", f"file={file},if=none,id={name},format=raw,readonly={mode}"),
        *("-device", f"virtio-blk-pci,drive={name}"),
    ]
