"""A run as one file, and back: ``NAME.tar.gz`` with a directory ``NAME`` and the checksums of all that is in it.

Nothing else is needed to read one: ``tar xzf NAME.tar.gz && cd NAME && sha256sum -c SHA256SUMS``.
One that comes from elsewhere is taken for hostile until it has been checked: `unpack` makes files and directories only
below its own new directory, of bounded size, and lets it appear under its name when all checksums are right and the run
can be read.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO

from wulf.base.errors import StoreError
from wulf.base.store.files import LOCK, take_lock
from wulf.base.store.kinds import kind_of
from wulf.base.store.runs import is_name
from wulf.base.text import count, printable

SUMS = "SHA256SUMS"
ENDING = ".tar.gz"
#: Of what is unpacked: no run of this program comes near it [B].
MOST_BYTES = 16 << 30
MOST_FILES = 200_000
#: No name in a run is longer [characters] or deeper, no header of an archive larger [B], no time later [s].
_LONGEST_NAME, _DEEPEST = 1000, 20
_LARGEST_HEADER = 64 << 10
_LATEST_S = 1 << 40
_CHUNK = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
#: What reading an archive raises that is damaged or none.
_DAMAGED = (
    tarfile.TarError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    ValueError,
    OverflowError,
    RecursionError,
)


def pack(path: Path, target: Path) -> None:
    """Write a run into a file.

    Raises
    ------
    StoreError
        It is not a run, is being written, has links or devices in it, or the file cannot be written.
    """
    kind_of(path)
    if target.exists():
        raise StoreError(f"{target} exists already: choose another name with --output")
    name = path.resolve().name
    # Where nothing can be written nobody writes.
    lock = nullcontext() if os.statvfs(path).f_flag & os.ST_RDONLY else closing(take_lock(path))
    with lock:
        _pack(path, target, name)


def _pack(path: Path, target: Path, name: str) -> None:
    try:
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            sums = "".join(
                f"{_added(archive, path / part, f'{name}/{part}')}  {part}\n" for part in _parts(path)
            )
            info = tarfile.TarInfo(f"{name}/{SUMS}")
            info.size = len(sums.encode())
            info.mtime = path.stat().st_mtime
            archive.addfile(info, io.BytesIO(sums.encode()))
        Path(made).chmod(0o644)
        Path(made).replace(target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from error
    finally:
        Path(made).unlink(missing_ok=True)


def unpack(source: Path, root: Path, name: str | None = None) -> Path:
    """Make a run of a file; return its directory below `root`.

    Parameters
    ----------
    name
        What it is called here; as in the archive when not given.

    Raises
    ------
    StoreError
        The file cannot be read, is damaged or hostile, or there is a run of this name.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=root, prefix=".import-"))
    except OSError as error:
        raise StoreError(f"cannot write to {root}: {error.strerror}") from error
    try:
        found = _taken_apart(source, work)
        target = root / (name or found)
        _require_readable(work, f"{source}: {found}")
        if target.exists():
            raise StoreError(f"{target} exists already: give the run another name with --as")
        work.chmod(0o755)
        work.rename(target)
    except OSError as error:
        raise StoreError(f"cannot import {source}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _require_readable(work: Path, shown: str) -> None:
    try:
        kind_of(work).read(work)
    except StoreError as error:
        raise StoreError(str(error).replace(str(work), shown)) from error


# --- packing ---


def _parts(path: Path) -> Iterator[str]:
    """Yield the files of a run, by their paths in it."""
    for part in sorted(path.rglob("*")):
        name = part.relative_to(path).as_posix()
        if part.is_symlink() or not (part.is_dir() or part.is_file()):
            raise StoreError(f"{part} is neither a file nor a directory, and cannot be archived: remove it")
        if "\n" in name:
            raise StoreError(f"{printable(str(part))}: a name with line breaks cannot be archived")
        if part.is_file() and name not in (LOCK, SUMS):
            yield name


def _added(archive: tarfile.TarFile, path: Path, name: str) -> str:
    """Add a file; return the SHA-256 of what went in."""
    with path.open("rb") as file:
        info = archive.gettarinfo(arcname=name, fileobj=file)
        # Who owned it means nothing elsewhere.
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mode = 0o644
        reader = _Hashing(file)
        archive.addfile(info, reader)
    return reader.digest.hexdigest()


class _Hashing:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        self.digest.update(chunk)
        return chunk


# --- unpacking ---


class _Member(tarfile.TarInfo):
    """A member whose own headers, of which each is read as a whole, are not larger than those of a run."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if not (self.isreg() or self.isdir()) and self.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {count(self.size, 'byte')}")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]


def _taken_apart(source: Path, work: Path) -> str:
    """Write what is in an archive into an empty directory, and check it; return the name of the run."""
    try:
        with source.open("rb") as file, tarfile.open(fileobj=file, mode="r|gz", tarinfo=_Member) as archive:
            names, sums = _extracted(archive, source, work)
    except _DAMAGED as error:
        raise StoreError(
            f"{source} is damaged, or not an archive of a run: {printable(str(error), 200)}"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise StoreError(
                f"cannot write to {work.parent}: {error.strerror}; nothing was imported"
            ) from error
        raise StoreError(f"cannot read {source}: {error.strerror or error}") from error
    if len(names) != 1:
        raise StoreError(
            f"{source} is damaged, or not an archive of a run: at its top are {count(len(names), 'directory')}, "
            "not one"
        )
    wanted = _sums(work / SUMS, source)
    (work / SUMS).unlink()
    del sums[SUMS]
    for part in sorted(wanted.keys() | sums.keys()):
        if wanted.get(part) != sums.get(part):
            what = (
                "is missing"
                if part not in sums
                else "is not in its checksums"
                if part not in wanted
                else "is damaged"
            )
            raise StoreError(f"{source}: {printable(part, 200)} {what}; nothing was imported")
    return names.pop()


def _extracted(archive: tarfile.TarFile, source: Path, work: Path) -> tuple[set[str], dict[str, str]]:
    """Write the files of an archive; return its directories at the top, and the checksum of each file."""
    names: set[str] = set()
    sums: dict[str, str] = {}
    left = MOST_BYTES
    for number, member in enumerate(archive):
        top, part = _place(member, source)
        names.add(top)
        left -= member.size
        if left < 0 or number >= MOST_FILES:
            raise StoreError(
                f"{source} is refused: it has more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB unpacked"
            )
        if member.isdir():
            continue
        if part in sums or not part:
            raise StoreError(
                f"{source} is refused: {printable(member.name, 200)} is in it twice, or does not belong to a run"
            )
        target = work / part
        target.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member)
        assert content is not None
        sums[part] = _written(content, target)
        if 0 <= member.mtime < _LATEST_S:  # else the time at which it was unpacked has to do
            os.utime(target, (member.mtime, member.mtime))
    return names, sums


def _place(member: tarfile.TarInfo, source: Path) -> tuple[str, str]:
    """Return the directory at the top and the path below it; refuse what could write anywhere else."""
    path = PurePosixPath(member.name)
    shown = printable(member.name, 200)
    if not (member.isreg() or member.isdir()):
        raise StoreError(f"{source} is refused: {shown} is a link or a device, which a run never has")
    if len(member.name) > _LONGEST_NAME or len(path.parts) > _DEEPEST:
        raise StoreError(f"{source} is refused: {shown} is longer or deeper than any name in a run")
    if path.is_absolute() or ".." in path.parts or not path.parts or not member.name.isprintable():
        raise StoreError(f"{source} is refused: {shown} would be written outside of the run")
    if not is_name(path.parts[0]):
        raise StoreError(f"{source} is refused: {shown} is not below a directory that has the name of a run")
    return path.parts[0], "/".join(path.parts[1:])


def _written(content: IO[bytes], target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("xb") as file:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _sums(path: Path, source: Path) -> dict[str, str]:
    """Return the checksum of each file, as the archive says it."""
    if not path.is_file():
        raise StoreError(f"{source} is damaged, or not an archive of a run: it has no {SUMS}")
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        said = _LINE.fullmatch(line)
        if said is None:
            raise StoreError(f"{source}: {SUMS}, line {number} is damaged; nothing was imported")
        found[said[2]] = said[1]
    return found
