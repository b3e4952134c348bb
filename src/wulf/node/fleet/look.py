"""Look at a cluster, or read an earlier look back, and judge what was seen."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import msgspec

from wulf.base import catalogue
from wulf.base.checks.evaluate import evaluate
from wulf.base.contracts import NodeResult
from wulf.base.errors import ConfigError, InventoryError, TransportError, UsageError
from wulf.base.interfaces import Interface, interface_of
from wulf.base.nodeset import fold, reasons_text
from wulf.base.profile import Profile
from wulf.base.records import Audit, NodeRecord
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.names import check_node_name, expand
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture
from wulf.node.facts.parse import parse
from wulf.node.facts.peers import look_around
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.fields import AnyCluster

_HEAD = "wulf-facts.json"
_TREES = "nodes/"
_VERSION = 1


class _Readable(Protocol):
    """What is left of a file here."""

    def read(self, size: int, /) -> bytes: ...


#: Text of nodes becomes a tenth or a twentieth when it is compressed; what grows more is no such text.
_EXPANSION = 100
#: However small a file is, it may become so much [B].
_EXPANDED_BYTES = 64 << 20
#: First bytes of a compressed file → what reads it.
_COMPRESSED: dict[bytes, Callable[[BinaryIO], _Readable]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZ": bz2.BZ2File,
    b"\xfd7": lzma.LZMAFile,
}
_BROKEN = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)

#: Gets how many nodes are done, of how many, and which are not.
Progress = Callable[[int, int, Collection[str]], None]


class Head(msgspec.Struct, kw_only=True):
    """What a saved look says of itself."""

    version: int
    created_at: str
    interface: Interface
    #: Node → what is known of it beyond its tree: peers, or why it did not answer.
    records: list[NodeRecord]


def look(
    config: ClusterConfig,
    nodes: Sequence[str],
    *,
    save: Path | None = None,
    peers: bool = True,
    progress: Progress | None = None,
) -> list[NodeRecord]:
    """Take the facts of all nodes, once; store what they printed in `save` when it is given.

    Raises
    ------
    TransportError
        When no node answers.
    """
    knobs = list(catalogue.knobs().values())
    transport = open_transport(config)
    missing = dict.fromkeys(nodes)

    def show() -> None:
        if progress is not None:
            progress(len(nodes) - len(missing), len(nodes), missing)

    try:
        show()
        with _archive(save) as keep:

            def taken(result: NodeResult) -> None:
                missing.pop(result.node, None)
                show()
                if result.status == "ok":
                    keep(result.node, result.stdout)

            records = capture(transport, nodes, config.interface, knobs, taken=taken)
            if all(not record.reachable or record.error for record in records):
                raise TransportError(
                    f"no node answers: {reasons_text({one.node: str(one.error) for one in records})}"
                )
            if peers:
                records = look_around(transport, records, config.interface)
            keep.head(config.interface, records)
    finally:
        transport.close()
    return records


def read(path: Path) -> tuple[list[NodeRecord], Interface]:
    """Return the facts in a saved look, parsed anew, and the interface it was about.

    Raises
    ------
    ConfigError
        When the file is not a saved look; names it.
    """
    knobs = list(catalogue.knobs().values())
    try:
        with _opened(path) as archive:
            texts = {}
            head = None
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None and member.name == _HEAD:
                    head = msgspec.json.decode(file.read(), type=Head)
                    head.records = [_checked(record) for record in head.records]
                elif file is not None and member.name.startswith(_TREES):
                    node = member.name.removeprefix(_TREES).removesuffix(".tree")
                    texts[check_node_name(node)] = file.read()
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}") from None
    except (*_BROKEN, msgspec.DecodeError, ValueError, RecursionError, InventoryError) as error:
        raise ConfigError(
            f"{path} does not hold facts saved with 'wulf audit facts --save': {error}"
        ) from None
    if head is None:
        raise ConfigError(
            f"{path} does not hold facts saved with 'wulf audit facts --save': it has no {_HEAD}"
        )
    if head.version != _VERSION:
        raise ConfigError(f"{path} is of version {head.version}; this wulf reads version {_VERSION}")
    records = []
    for record in head.records:
        if record.node in texts:
            text = texts[record.node].decode("utf-8", "replace")
            again = parse(record.node, text, interface_of(head.interface, record.node), knobs)
            records.append(
                msgspec.structs.replace(
                    again, facts=again.facts | record.facts, unknown=again.unknown | record.unknown
                )
            )
        else:
            records.append(record)
    return records, head.interface


def _checked(record: NodeRecord) -> NodeRecord:
    check_node_name(record.node)
    return record


class _Limited:
    """A file of which no more is read than a look can have."""

    def __init__(self, file: _Readable, limit: int) -> None:
        self._file = file
        self._left = self._limit = limit

    def read(self, size: int) -> bytes:
        """Read as other files do.

        Raises
        ------
        ValueError
            There is more than the limit.
        """
        chunk = self._file.read(min(size, self._left + 1))
        self._left -= len(chunk)
        if self._left < 0:
            raise ValueError(f"it becomes more than {self._limit >> 20} MiB when it is unpacked")
        return chunk


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a saved look for reading once, from its beginning to its end."""
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        unpacked = _COMPRESSED[start](file) if start in _COMPRESSED else file
        limit = max(_EXPANDED_BYTES, _EXPANSION * path.stat().st_size)
        with tarfile.open(fileobj=_Limited(unpacked, limit), mode="r|") as archive:  # type: ignore[call-overload]
            yield archive


def taken(
    cluster: AnyCluster,
    nodes: str | None,
    saved: Path | str | None = None,
    save: Path | None = None,
    progress: Progress | None = None,
) -> list[NodeRecord]:
    """Take the facts of the nodes that are named, or read them back from a saved look.

    Raises
    ------
    TransportError
        No node answers, or had answered.
    UsageError
        A saved look was named beside a cluster, or has not the nodes.
    """
    if saved is None:
        config = config_of(cluster)
        return look(config, config.select(nodes), save=save, progress=progress)
    if cluster is not None:
        raise UsageError("--from reads saved facts: it takes no --cluster")
    if save is not None:
        raise UsageError("--save stores new facts, --from reads stored ones: give one of them")
    records = _chosen(read(Path(saved))[0], nodes, saved)
    if all(record.error for record in records):
        raise TransportError(f"no node in {saved} had answered")
    return records


def _chosen(records: list[NodeRecord], nodes: str | None, saved: Path | str) -> list[NodeRecord]:
    if nodes is None:
        return records
    known = {record.node: record for record in records}
    wanted = expand(nodes)
    strange = [node for node in wanted if node not in known]
    if strange:
        raise UsageError(f"--nodes: {fold(strange)} is not in {saved}, which has {fold(known)}")
    return [known[node] for node in wanted]


def judge(records: Sequence[NodeRecord], profile: Profile) -> Audit:
    """Evaluate the whole catalogue."""
    return evaluate(
        records,
        catalogue.checks().values(),
        catalogue.knobs().values(),
        catalogue.consistencies().values(),
        profile,
    )


class _Keeper:
    """Takes what nodes printed; writes it when there is a file."""

    def __init__(self, archive: tarfile.TarFile | None) -> None:
        self._archive = archive

    def __call__(self, node: str, text: bytes) -> None:
        self._add(f"{_TREES}{node}.tree", text)

    def head(self, interface: Interface, records: Sequence[NodeRecord]) -> None:
        """Write what the trees do not hold."""
        outside = ("path.", "names.", "clock.")
        kept = [
            msgspec.structs.replace(
                record,
                facts={name: value for name, value in record.facts.items() if name.startswith(outside)},
                unknown={name: why for name, why in record.unknown.items() if name.startswith(outside)},
                absent={},
                unsupported={},
            )
            for record in records
        ]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = Head(version=_VERSION, created_at=now, interface=interface, records=kept)
        self._add(_HEAD, msgspec.json.encode(head))

    def _add(self, name: str, content: bytes) -> None:
        if self._archive is not None:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), int(time.time()), 0o600
            self._archive.addfile(member, io.BytesIO(content))


@contextmanager
def _archive(path: Path | None) -> Iterator[_Keeper]:
    """Open the file for a look; it appears under its name only when it is whole."""
    if path is None:
        yield _Keeper(None)
        return
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a directory")
    part = None
    try:
        # A new file, of a name that nobody knows before: in a directory of many users a link may lie in wait. What
        # nodes print of themselves is nobody else's business: only its owner may read it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            mode: Literal["w:gz", "w"] = "w:gz" if path.suffix in (".gz", ".tgz") else "w"
            with tarfile.open(fileobj=file, mode=mode) as archive:
                yield _Keeper(archive)
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
