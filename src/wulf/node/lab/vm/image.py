"""The files of virtual machines: this machine's own as a disk that is only read, a kernel, and each node's own disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base.errors import LabError
from wulf.node.lab import system
from wulf.node.lab.vm import initrd, machine, packages

#: What was made of the same packages and kernel is used again.
CACHE = Path("/var/cache/wulf/lab")
#: Changes when the images are made differently.
_MADE = "2"
_TOOL_S = 300
_KERNEL_PACKAGE = "linux-image-amd64"
#: Of the kernel's modules, those that a node may want; all of them are ten times as much.
_MODULES = (
    "crypto",
    "lib",
    "net",
    "arch/x86/crypto",
    "drivers/block/virtio_blk.ko",
    "drivers/char/hw_random",
    "drivers/dca",
    "drivers/i2c/algos",
    "drivers/net/bonding",
    "drivers/net/ethernet/intel",
    "drivers/net",
    "drivers/pps",
    "drivers/ptp",
    "drivers/virtio",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache.ko",
    "fs/overlayfs",
)
#: Of packages what nobody reads in a node.
_LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/include/")
_DIRECTORIES = {
    "dev": 0o755,
    "proc": 0o755,
    "sys": 0o755,
    "run": 0o755,
    "tmp": 0o1777,
    "root": 0o700,
    "var": 0o755,
}
#: Room of a node's own disk [MiB]; only what is written takes room of this machine.
_DISK_MIB = 1024
_SPARE_MIB = 64


def lacking(nic: machine.Nic) -> list[str]:
    """List what is missing here for virtual machines, each with how to get it."""
    if platform.machine() != "x86_64":
        return [f"an x86-64 processor, which the virtual machines need: this one is {platform.machine()}"]
    tools = {machine.EMULATOR: "qemu-system-x86", "mke2fs": "e2fsprogs", "dpkg-deb": "dpkg", "apt-get": "apt"}
    found = system.missing_programs(tools)
    if not found and nic == "igb" and '"igb"' not in _tool([machine.EMULATOR, "-device", "help"]):
        version = _tool([machine.EMULATOR, "--version"]).split("\n")[0]
        found.append(f"a QEMU that has igb, 8.0 or newer; this is {version}: take --nic e1000e")
    return found


def prepare(directory: Path, vm: machine.Vm, first: Path, say: Callable[[str], None]) -> None:
    """Put ``kernel``, ``initrd`` and ``base.img`` into a directory.

    Parameters
    ----------
    first
        The program that is the first process, ``wulf-lab-init``.

    Raises
    ------
    LabError
        There is no kernel, or an image cannot be made.
    """
    with _alone():
        kept = _kept(vm, first, say)
        directory.mkdir(parents=True, exist_ok=True)
        for file in kept.iterdir():
            _link(file, directory / file.name)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one command at a time look after what is kept; the host's settings are in it, so only root sees it."""
    CACHE.mkdir(parents=True, exist_ok=True, mode=0o700)
    CACHE.chmod(0o700)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kept(vm: machine.Vm, first: Path, say: Callable[[str], None]) -> Path:
    """Return the directory with the files, made where they are not there yet."""
    listing = _tool(["dpkg-query", "--show", "--showformat", packages.FORMAT])
    needed = packages.needed(listing)
    kernel = _kernel(say)
    key = hashlib.sha256(
        repr((_MADE, needed, kernel.name, vm.nic, first.read_bytes(), list(_etc_state()))).encode()
    ).hexdigest()[:16]
    kept = CACHE / key
    if not kept.is_dir():
        say("making a disk of this machine's files")
        _make(kept, needed, kernel, machine.DEVICES[vm.nic][1], first)
        for older in CACHE.iterdir():
            if older.is_dir() and older not in (kept, kernel):
                shutil.rmtree(older)
    return kept


def make_disk(upper: Path, disk: Path) -> None:
    """Make a node's own disk of its writable layer; the layer is gone after it."""
    with tempfile.TemporaryDirectory(dir=disk.parent) as place:
        upper.rename(Path(place) / "upper")
        (Path(place) / "work").mkdir()
        _file_system(Path(place), disk, _DISK_MIB, journal=True)


def _make(kept: Path, needed: Iterable[str], kernel: Path, driver: str, first: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        root, made = Path(place) / "root", Path(place) / "made"
        made.mkdir()
        _lay_out(root, needed)
        version = _add_modules(root, kernel)
        modules = root / "lib/modules" / version
        names = initrd.in_order([*initrd.DISKS, driver], (modules / "modules.dep").read_text())
        files = {f"m{number:02d}.ko": (modules / name).read_bytes() for number, name in enumerate(names)}
        files |= {"init": first.read_bytes(), "modules": "".join(f"/{name}\n" for name in files).encode()}
        (made / "initrd").write_bytes(initrd.archive(files, ("dev", "base", "disk", "root")))
        _link(next(kernel.glob("boot/vmlinuz-*")), made / "kernel")
        size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())
        _file_system(root, made / "base.img", size * 5 // 4 // 2**20 + _SPARE_MIB, journal=False)
        made.rename(kept)


def _lay_out(root: Path, needed: Iterable[str]) -> None:
    """Link the files of packages and the settings of this machine below a directory."""
    for name, mode in _DIRECTORIES.items():
        (root / name).mkdir(parents=True)
        (root / name).chmod(mode)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if (Path("/") / name).is_symlink():
            (root / name).symlink_to((Path("/") / name).readlink())
    for path in _paths(needed):
        _add(root, path)
    shutil.copytree("/etc", root / "etc", symlinks=True, dirs_exist_ok=True)


def _paths(needed: Iterable[str]) -> Iterator[str]:
    """Yield the files of packages, and the links between alternatives, which are no package's."""
    for path in _tool(["dpkg-query", "--listfiles", *needed]).splitlines():
        if path.startswith("/") and not path.startswith((*_LEFT_OUT, "/etc/", "/boot/")):
            yield path
    for directory in ("/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu"):
        for entry in Path(directory).iterdir():
            if entry.is_symlink() and str(entry.readlink()).startswith("/etc/alternatives/"):
                yield str(entry)


def _add(root: Path, path: str) -> None:
    # Where /bin is a link to usr/bin, a file of /bin lies there.
    parent = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - of a text, and without the last part
    source = Path(parent) / os.path.basename(path)  # noqa: PTH119
    target = root / str(source).lstrip("/")
    if source.is_symlink() or source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink() and not target.exists():
            _link(source, target)
    elif source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        shutil.copystat(source, target)
        of = source.stat()
        os.chown(target, of.st_uid, of.st_gid)


def _add_modules(root: Path, kernel: Path) -> str:
    """Copy the kernel's modules, and kmod to load them; returns the kernel's version."""
    (source,) = (kernel / "lib/modules").iterdir()
    target = root / "lib/modules" / source.name
    target.mkdir(parents=True)
    for file in source.glob("modules.*"):
        shutil.copy(file, target)
    for name in _MODULES:
        for path in _of_part(source / "kernel" / name):
            placed = target / path.relative_to(source)
            placed.parent.mkdir(parents=True, exist_ok=True)
            if not placed.exists():
                _link(path, placed)
    kmod = kernel / "kmod"
    if kmod.is_dir():
        shutil.copytree(kmod, root, symlinks=True, dirs_exist_ok=True)
    _tool(["chroot", str(root), "/sbin/depmod", source.name])
    return source.name


def _of_part(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    elif place.name == "net" and place.parent.name == "drivers":
        yield from (file for file in place.glob("*.ko*"))
    else:
        yield from (file for file in place.rglob("*.ko*") if file.is_file())


def _kernel(say: Callable[[str], None]) -> Path:
    """Return a directory with a kernel and its modules: Debian's package, unpacked and not installed."""
    depends = _tool(["apt-cache", "depends", _KERNEL_PACKAGE])
    names = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not names:
        raise LabError(
            f"there is no package {_KERNEL_PACKAGE}in Debian to take a kernel from: run 'apt-get update'"
        )
    kept = CACHE / f"kernel-{names[0]}"
    if not kept.is_dir():
        say(f"fetching the kernel of {names[0]}")
        with tempfile.TemporaryDirectory(dir=CACHE) as place:
            _unpacked(names[0], Path(place) / "kernel")
            if not shutil.which("kmod", path="/usr/bin:/bin"):
                _unpacked("kmod", Path(place) / "kernel/kmod")
            (Path(place) / "kernel").rename(kept)
    return kept


def _unpacked(package: str, target: Path) -> None:
    """Fetch a package from where this machine gets its own, and unpack it."""
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        _tool(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package], Path(place))
        (file,) = Path(place).glob("*.deb")
        target.mkdir(parents=True, exist_ok=True)
        _tool(["dpkg-deb", "--extract", str(file), str(target)])


def _file_system(source: Path, image: Path, mib: int, *, journal: bool) -> None:
    features = [] if journal else ["-O", "^has_journal"]
    _tool(
        ["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", *features, "-d", str(source), str(image), f"{mib}M"]
    )


def _etc_state() -> Iterator[tuple[str, int]]:
    for directory, _, names in os.walk("/etc"):
        for name in sorted(names):
            path = Path(directory) / name
            yield str(path), path.lstat().st_mtime_ns


def _link(source: Path, target: Path) -> None:
    """Have the same file at another place, without room of its own where that is possible."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _tool(argv: Sequence[str], directory: Path | None = None) -> str:
    name, *words = argv
    return system.run([system.path_of(name) or name, *words], timeout_s=_TOOL_S, directory=directory)
