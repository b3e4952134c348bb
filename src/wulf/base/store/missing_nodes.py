"""Which nodes were missing from a change: kept on the controller until they are as the others.

One file for all clusters of a user, in ``$XDG_STATE_HOME/wulf`` (``~/.local/state/wulf``).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from wulf.base.errors import StoreError
from wulf.base.records import Missed
from wulf.base.store.files import decode_file, write_atomically

#: Cluster → node → what it missed.
_Book = dict[str, dict[str, Missed]]


def missed(cluster: str) -> dict[str, Missed]:
    """Return node → what it missed, of one cluster.

    Raises
    ------
    StoreError
        The file is there and cannot be read.
    """
    return _read(_path()).get(cluster, {})


def update(cluster: str, change: Callable[[dict[str, Missed]], dict[str, Missed]]) -> None:
    """Replace what the nodes of a cluster have missed by what `change` makes of it.

    Raises
    ------
    StoreError
        The file cannot be read or written.
    """
    path = _path()
    if not path.exists() and not change({}):
        return
    with _alone(path):
        book = _read(path)
        book[cluster] = change(book.get(cluster, {}))
        left = {name: nodes for name, nodes in book.items() if nodes}
        write_atomically(path, msgspec.json.format(msgspec.json.encode(left), indent=1))


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "wulf" / "missed.json"


def _read(path: Path) -> _Book:
    return decode_file(path, _Book) if path.exists() else {}


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock").open("w")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
