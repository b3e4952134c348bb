"""Files that are there as a whole or not at all, and logs that lose nothing but the line being written."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TextIO, TypeVar, cast

import msgspec

from wulf.base.errors import StoreError
from wulf.base.records import SCHEMA_VERSION, RunHead
from wulf.base.store.migrations import Kind, migrate
from wulf.base.text import printable

LOCK = "lock"
#: What follows from the log of a run, of the kinds that conclude.
RESULT = "result.json"
#: What decoding a file raises that is none of ours: damaged, written by somebody else, or made to do harm.
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_T = TypeVar("_T")
_Head = TypeVar("_Head", bound=RunHead)


def timestamp(timespec: str = "seconds") -> str:
    """Return the time as records hold it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec=timespec)


class Log:
    """An append-only file of JSON lines; what `append` was given is on the disk when it returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab")
        cut_unfinished_line(path)

    def append(self, record: msgspec.Struct) -> None:
        """Write one record.

        Raises
        ------
        StoreError
            The disk refuses.
        """
        try:
            self._file.write(msgspec.json.encode(record) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(
                f"cannot write to {self._path}: {error.strerror}. What was written before is kept; "
                f"free some space and go on with --resume"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def make_directory(path: Path, head: str | None = None) -> None:
    """Make the directory of a new run; where `head` is named, one without that file may be there.

    Raises
    ------
    StoreError
        It is there already, or the disk refuses.
    """
    exists = StoreError(f"{path} exists already: choose another name, or go on with --resume")
    try:
        path.mkdir(parents=True, exist_ok=head is not None)
    except FileExistsError:
        raise exists from None
    except OSError as error:
        raise StoreError(f"cannot make the run directory {path}: {error.strerror}") from error
    if head is not None and (path / head).exists():
        raise exists


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part.

    Raises
    ------
    StoreError
        When it cannot be written; names it.
    """
    if path.is_dir():
        raise StoreError(f"cannot write {path}: it is a directory")
    try:
        _replace(path, content)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def decode_file(path: Path, kind: type[_T]) -> _T:
    """Decode a JSON file; errors name it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    except DAMAGED as error:
        raise StoreError(f"{path} is damaged: {error}") from error


def decode_optional(path: Path, kind: type[_T]) -> _T | None:
    """Decode a JSON file that need not be there; errors name it."""
    return decode_file(path, kind) if path.exists() else None


def has(directory: Path, name: str) -> bool:
    """Whether there is such a file; not in a directory that cannot be looked into."""
    try:
        return (directory / name).is_file()
    except OSError:
        return False


def read_log(path: Path) -> bytes:
    """Return the content of a log; nothing when there is none yet.

    Raises
    ------
    StoreError
        It cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def read_head(path: Path, kind: Kind, type_: type[_T]) -> tuple[_T, int]:
    """Read the head of a run, whatever the version; return the version, too.

    Raises
    ------
    StoreError
        It is of a newer version, or damaged; names the file.
    """
    raw = decode_file(path, dict[str, Any])
    version = check_version(path, raw)
    check_moment(raw.get("created_at", ""), path)
    try:
        return msgspec.convert(migrate(kind, raw, version), type_), version
    except msgspec.DecodeError as error:
        raise StoreError(f"{path} is damaged: {error}") from error


def check_moment(text: object, where: object) -> None:
    """Refuse a time that is none; empty is not said.

    Raises
    ------
    StoreError
        Names the file, or what else the time is of.
    """
    try:
        if text:
            datetime.fromisoformat(str(text))
    except ValueError:
        raise StoreError(f"{where} is damaged: {printable(str(text), 80)!r} is not a time") from None


def read_records(log: Path, kind: Kind, type_: Any, version: int) -> Iterator[Any]:
    """Read the whole lines of a log; a killed writer may have left a part of one.

    Raises
    ------
    StoreError
        A line is damaged; names it.
    """
    decoder = msgspec.json.Decoder(type_)
    for number, line in enumerate(read_log(log).split(b"\n")[:-1], 1):
        try:
            if version == SCHEMA_VERSION:
                yield decoder.decode(line)
            else:
                old = msgspec.json.decode(line, type=dict[str, Any])
                yield msgspec.convert(migrate(kind, old, version), type_)
        except DAMAGED as error:
            raise StoreError(f"{log}, line {number} is damaged: {error}") from error


def check_version(head: Path, raw: dict[str, Any]) -> int:
    """Return the schema version in the head of a run.

    Raises
    ------
    StoreError
        There is none, or it is newer than this program.
    """
    version = raw.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"{head} has no valid schema_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{head.parent} was written by a newer wulf (schema {version}, this one reads up to "
            f"{SCHEMA_VERSION}): upgrade wulf"
        )
    return version


def take_lock(path: Path) -> TextIO:
    """Become the one writer of a directory; the lock is held until the file is closed.

    Raises
    ------
    StoreError
        Another process writes there, which is named; or nobody can.
    """
    try:
        lock = (path / LOCK).open("a+")
    except OSError as error:
        raise StoreError(f"cannot write to {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise StoreError(f"{path} is being written by process {owner}; wait for it or stop it") from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def unfinished_bytes(log: Path) -> int:
    """Return how much of the end of a log is a line that was not finished [B]."""
    content = read_log(log)
    return len(content) - (content.rfind(b"\n") + 1)


def cut_unfinished_line(log: Path) -> None:
    """Take away what a killed writer left of a line."""
    unfinished = unfinished_bytes(log)
    if unfinished:
        os.truncate(log, log.stat().st_size - unfinished)


class RunWriter(Generic[_Head]):
    """The one writer of a run's directory: a head that is replaced, a log that grows. A context manager.

    Raises
    ------
    StoreError
        Another process is writing to the directory, or the disk refuses.
    """

    #: What a run of this kind is called, such as "a tuning run".
    called: ClassVar[str]
    #: Names of the head and the log.
    head_name: ClassVar[str]
    log_name: ClassVar[str]
    #: What they hold: by which name older versions are migrated, and as which type it is read.
    head: ClassVar[tuple[Kind, type[RunHead]]]
    log: ClassVar[tuple[Kind, Any]]

    def __init__(self, path: Path, manifest: _Head) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = take_lock(path)
        self._log = Log(path / self.log_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()
        self._lock.close()

    @classmethod
    def read(cls, path: Path) -> tuple[_Head, list[Any]]:
        """Return the head and the records of a run.

        Raises
        ------
        StoreError
            It is none, of a newer version, or damaged; names the file.
        """
        if not has(path, cls.head_name):
            raise StoreError(
                f"{path} is not {cls.called}: it has no {cls.head_name} ('wulf runs list' shows the runs)"
            )
        manifest, version = read_head(path / cls.head_name, *cls.head)
        return cast("_Head", manifest), list(read_records(path / cls.log_name, *cls.log, version))

    @classmethod
    def create(cls, path: Path, manifest: _Head, *, may_be_there: bool = False) -> Self:
        """Make a new run and open it for writing.

        Parameters
        ----------
        may_be_there
            Its directory may be there, with other things in it: a larger run has made it.

        Raises
        ------
        StoreError
            There is a run already, or the disk refuses.
        """
        make_directory(path, cls.head_name if may_be_there else None)
        write_record(path / cls.head_name, manifest)
        return cls(path, manifest)

    def append(self, record: msgspec.Struct) -> None:
        """Write one record; it is on the disk when this returns."""
        self._log.append(record)

    def conclude(self, result: msgspec.Struct) -> None:
        """Store what follows from the records."""
        write_record(self.path / RESULT, result)

    def update(self, **changed: object) -> None:
        """Replace the head by one with other fields."""
        manifest = msgspec.structs.replace(self.manifest, updated_at=timestamp(), **changed)
        write_record(self.path / self.head_name, manifest)
        self.manifest = manifest

    def resumed(self, plan: msgspec.Struct) -> None:
        """Write down that the run goes on now, by this plan."""
        times = [*self.manifest.resumed_at, timestamp()]
        self.update(status="running", plan=plan, resumed_at=times, message=None)


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Replace a file by a record, as JSON that can be read."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record), indent=2))
