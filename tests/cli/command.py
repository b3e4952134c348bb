"""Run the program as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def environment(directory: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
    # A virtual cluster that happens to be up on this machine is none of these tests' business.
    own = {"COLUMNS": "100", "WULF_RUNS": str(directory / "runs"), "WULF_LAB_DIR": str(directory / "no-lab")}
    return {**kept, **own, **more}


def start(directory: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "wulf.cli.main", *words],
        cwd=directory,
        env=environment(directory, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wulf(directory: Path, *words: str, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
    process = start(directory, *words, **more)
    out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(words, process.returncode, out, err)
