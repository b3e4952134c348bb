"""Run the program as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.schemas import require_published


def environment(directory: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
    # A virtual cluster that happens to be up on this machine is none of these tests' business.
    own = {"COLUMNS": "100", "WULF_RUNS": str(directory / "runs"), "WULF_LAB_DIR": str(directory / "no-lab")}
    # Nor is what its user and its site have written down.
    own |= {"XDG_CONFIG_HOME": str(directory / "config"), "WULF_SITE_DIR": str(directory / "site")}
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
    with start(directory, *words, **more) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
    require_published(words, process.returncode, out)
    return subprocess.CompletedProcess(words, process.returncode, out, err)
