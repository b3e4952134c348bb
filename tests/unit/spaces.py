"""The processes in namespaces of tests: found and ended all at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path


def space_of(pid: int) -> Path:
    """Return the mount namespace of a process."""
    return Path(f"/proc/{pid}/ns/mnt").readlink()


def inside(spaces: Collection[Path], words: str = "") -> list[int]:
    """Return the processes in some mount namespaces that have these words in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "ns/mnt").readlink() in spaces:
                said = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [int(entry.name)] if words in said else []
    return found


def end(spaces: Collection[Path], words: str = "") -> int:
    """End them, and return how many: they are stopped first, so that none starts another one meanwhile."""
    found = inside(spaces, words)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    return len(found)
