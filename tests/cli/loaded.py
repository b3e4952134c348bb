"""The program, loaded: the processes of `tests.cli.command` are copies of one that has imported this."""

from __future__ import annotations

import atexit
import os
import pkgutil
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import wulf
from wulf.base import user_files
from wulf.face.cli import main

#: What the program and its libraries load with their first use, which takes longer than what most tests ask for.
_FIRST_USED = ("altair", "scipy.ndimage", "scipy.optimize", "scipy.stats", "rich.live", "typer._adapters")

for _name in _FIRST_USED:
    with suppress(ModuleNotFoundError):  # another version of a library is slower, not wrong
        import_module(_name)
for _module in pkgutil.walk_packages(wulf.__path__, "wulf."):
    import_module(_module.name)


def run(directory: str, words: tuple[str, ...], variables: dict[str, str], out: str, err: str) -> None:
    """Be the program: its directory, its environment, its output, and nothing else of the tests."""
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    os.dup2(sys.stdin.fileno(), 0)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["wulf", *words]
    user_files.sources.cache_clear()  # those of the environment that it has now
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main.run()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
