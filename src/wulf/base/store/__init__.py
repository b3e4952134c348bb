"""The run directory: plain files, one writer, nothing lost but the record being written.

::

    RUN/manifest.json    what, with what, how far; replaced atomically
    RUN/records.jsonl    one JSON line per node and per launch, appended and flushed to disk
    RUN/analysis.json    derived; can be made again at any time
    RUN/lock             held by the one writer

Files and not a database, because homes on clusters are NFS or Lustre, where SQLite's locking is unreliable.
"""

from wulf.base.store.files import LOCK, decode_file, write_atomically
from wulf.base.store.kinds import find_run, opened
from wulf.base.store.runs import (
    ANALYSIS,
    MANIFEST,
    RECORDS,
    Run,
    Writer,
    create,
    is_being_written,
    list_runs,
    load,
    resume,
    save_analysis,
    unreadable_runs,
)

__all__ = [
    "ANALYSIS",
    "LOCK",
    "MANIFEST",
    "RECORDS",
    "Run",
    "Writer",
    "create",
    "decode_file",
    "find_run",
    "is_being_written",
    "list_runs",
    "load",
    "opened",
    "resume",
    "save_analysis",
    "unreadable_runs",
    "write_atomically",
]
