"""Run the program as a user does."""

from __future__ import annotations

import functools
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from tests.cli import loaded
from tests.schemas import require_published

ROOT = Path(__file__).resolve().parents[2]


#: As pytest has it for the tests themselves (pyproject.toml): no warning reaches a user.
WARNINGS = {"PYTHONWARNINGS": "error"}


def environment(directory: Path, **more: str) -> dict[str, str]:
    # What was built before these tests is in the cache.
    names = ("PATH", "HOME", "LANG", "PYTHONPATH", "XDG_CACHE_HOME")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    # A virtual cluster that happens to be up on this machine is none of these tests' business.
    own = {"COLUMNS": "100", "WULF_RUNS": str(directory / "runs"), "WULF_LAB_DIR": str(directory / "no-lab")}
    # Nor is what its user and its site have written down.
    own |= {"XDG_CONFIG_HOME": str(directory / "config"), "WULF_SITE_DIR": str(directory / "site")}
    return {**kept, **WARNINGS, **own, **more}


def start(directory: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start the program anew: for what is sent to it while it runs, or how it begins."""
    return subprocess.Popen(
        [sys.executable, "-m", "wulf.face.cli.main", *words],
        cwd=directory,
        env=environment(directory, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wulf(directory: Path, *words: str, timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end in a process that is a copy of one that has loaded it: most of a start is loading."""
    with tempfile.TemporaryDirectory() as place:
        said = Path(place, "out"), Path(place, "err")
        process = _loaded().Process(
            target=loaded.run, args=(str(directory), words, environment(directory, **more), *map(str, said))
        )
        with _without_main():
            process.start()
        try:
            process.join(timeout)
            if process.exitcode is None:
                raise subprocess.TimeoutExpired(["wulf", *words], timeout)
        finally:
            process.terminate()
            process.join()
        code, (out, err) = process.exitcode, (file.read_text() for file in said)
    assert code is not None
    require_published(words, code, out)
    return subprocess.CompletedProcess(words, code, out, err)


@functools.cache
def _loaded() -> ForkServerContext:
    """Start the process that is copied: it has loaded the program and never run it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cli.loaded"])
    with _without_main() as patch:
        patch.setenv("PYTHONWARNINGS", WARNINGS["PYTHONWARNINGS"])
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
        forkserver.ensure_running()
    return context


@contextmanager
def _without_main() -> Iterator[pytest.MonkeyPatch]:
    """Keep multiprocessing from importing pytest, which is the main module here, into every process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["__main__"], "__spec__", None)
        patch.delattr(sys.modules["__main__"], "__file__", raising=False)
        yield patch
