"""The first file system of a virtual machine: its first process, and the modules that find its disks.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: What reads the disks.
DISKS = ("virtio_pci", "virtio_blk", "virtio_rng", "ext4", "crc32c_generic", "overlay")
_TRAILER = "TRAILER!!!"
_DIRECTORY, _FILE = 0o040755, 0o100755


def in_order(wanted: Iterable[str], dependencies: str) -> list[str]:
    """Return paths of modules, each after those that it needs.

    Parameters
    ----------
    wanted
        Names; those that the kernel has within itself are not in the list, and left out.
    dependencies
        Text of ``modules.dep``.
    """
    needs: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in dependencies.splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
        paths[_name(path)] = path
    ordered: dict[str, None] = {}
    for name in wanted:
        if name in paths:
            # depmod lists what a module needs with what is to be loaded first at the end.
            for path in [*reversed(needs[paths[name]]), paths[name]]:
                ordered.setdefault(path)
    return list(ordered)


def _name(path: str) -> str:
    return path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def archive(files: Mapping[str, bytes], directories: Sequence[str]) -> bytes:
    """Return an archive as the kernel unpacks it (cpio, format newc)."""
    entries = [(name, _DIRECTORY, b"") for name in directories]
    entries += [(name, _FILE, data) for name, data in files.items()]
    packed = bytearray()
    for number, (name, mode, data) in enumerate([*entries, (_TRAILER, 0, b"")], 1):
        head = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        packed += b"070701" + "".join(f"{field:08x}" for field in head).encode() + name.encode() + b"\0"
        packed += b"\0" * (-len(packed) % 4) + data
        packed += b"\0" * (-len(packed) % 4)
    return bytes(packed)
