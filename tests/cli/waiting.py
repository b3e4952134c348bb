"""Wait for something that a program does, instead of sleeping and hoping."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

#: So long nothing lasts here, whatever else runs on this machine: it hangs.
HANGS_S = 120.0


def wait_until(
    happened: Callable[[], object], what: str, process: subprocess.Popen[str] | None = None
) -> None:
    """Look again and again until it is so; fail when that takes too long, or when the program has ended before."""
    end = time.monotonic() + HANGS_S
    while not happened():
        assert process is None or process.poll() is None, f"{what}: the program has ended before"
        assert time.monotonic() < end, f"{what}: not within {HANGS_S:g} s"
        time.sleep(0.02)


def wait_for_launches(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until a run's records have so many launches."""
    log = run / "records.jsonl"
    wait_until(
        lambda: log.exists() and log.read_bytes().count(b'"launch"') >= count, f"{count} launches", process
    )
