"""Make programs of ``native`` with cmake: once, also where several processes want them at the same time."""

from __future__ import annotations

import fcntl
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base.errors import BuildError
from wulf.base.text import last_line, printable

_LOG = logging.getLogger("wulf")

#: Less room than this is none: an object file takes more [B].
LEAST_ROOM_BYTES = 1 << 16
BUILD_TIMEOUT_S = 600
#: What the compiler said of all that was built in a directory, beside the programs.
LOG = "build.log"


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Make a directory and have it to oneself: who wants it meanwhile waits.

    Where the file system has no locks, nobody waits; what is made in `directory` must come there by renaming.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _LOG.info("another process builds in %s: waiting for it", directory)
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            _LOG.debug("%s has no locks: %s", directory, error)
        yield


def make(cmake: str, source: Path, directory: Path, targets: Sequence[str], options: Sequence[str]) -> None:
    """Build targets of `source` and move them into `directory`; what was said is added to its `LOG`.

    Raises
    ------
    BuildError
        The compiler refuses, or takes too long; the text holds its last words and the log's place.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="build-", dir=directory))
    except OSError as error:
        raise BuildError(f"a program cannot be built in {directory}: {error.strerror or error}") from error
    log = work / LOG
    configure = [cmake, "-S", str(source), "-B", str(work), "-DCMAKE_BUILD_TYPE=Release", "-DWULF_TESTS=OFF"]
    at_once = str(len(os.sched_getaffinity(0)))
    for argv in (
        [*configure, *options],
        [cmake, "--build", str(work), "--parallel", at_once, "--target", *targets],
    ):
        _logged(argv, log)
    with (directory / LOG).open("ab") as all_said:
        all_said.write(log.read_bytes())
    for target in targets:
        (work / target).replace(directory / target)
    shutil.rmtree(work, ignore_errors=True)


def _logged(argv: Sequence[str], log: Path) -> None:
    _LOG.debug("%s", shlex.join(argv))
    with log.open("ab") as file:
        try:
            done = subprocess.run(
                argv, stdout=file, stderr=subprocess.STDOUT, timeout=BUILD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"building took longer than {BUILD_TIMEOUT_S} s; see {log}") from None
    if done.returncode != 0:
        lines = log.read_bytes().decode("utf-8", "replace").splitlines()
        said = next((line for line in lines if "error" in line.lower()), last_line("\n".join(lines)))
        raise BuildError(
            f"a program cannot be built: {_full(log) or printable(said, 300) or _silent(done)} (whole log: {log})"
        )


def _full(log: Path) -> str:
    """Say that the disk is full, of which compilers and their log may say nothing; empty where it is not."""
    room = shutil.disk_usage(log.parent).free < LEAST_ROOM_BYTES
    return f"no space left on the disk of {log.parent}" if room else ""


def _silent(done: subprocess.CompletedProcess[bytes]) -> str:
    return f"{done.args[0]} ended with exit code {done.returncode} and without a word"
