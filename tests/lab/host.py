"""What a lab has put on this machine, seen from outside and without the lab's own code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

#: ``wulf lab`` without the other verbs, whose libraries take seconds to load; errors and signals end it as in
#: `wulf.face.cli.main`.
CLI = """
import sys
from wulf.face.cli.lab import app
from wulf.base.errors import WulfError
from wulf.base.signals import end_gently
end_gently()
try:
    app()
except WulfError as error:
    sys.exit(f"wulf: {error}")
"""


class Host:
    """This machine, with a lab in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.namespaces = set(self._namespaces())
        self.locks = set(self._locks())

    def cli(self, *words: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
        """Run ``wulf lab …``."""
        return subprocess.run(
            self.argv(*words), capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-c", CLI, *words]

    def start_up(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin ``wulf lab up`` and return when its first node's processes are there."""
        process = subprocess.Popen(
            self.argv("up", "--nodes", "2", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: bool(self.processes("systemd-nspawn")))
        return process

    def processes(self, program: str = "") -> list[int]:
        """Processes whose command line names the lab's directory."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
            except OSError:
                continue
            if os.fsencode(self.directory) in line and program.encode() in line:
                found.append(int(entry.name))
        return found

    def kill(self, program: str) -> None:
        """Kill -9 the lab's processes of a program."""
        victims = self.processes(program)
        assert victims
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

    def leftovers(self) -> list[str]:
        """Everything that is here and was not before."""
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return [
            *(f"mount {line}" for line in mounts if str(self.directory) in line),
            *(f"namespace {name}" for name in set(self._namespaces()) - self.namespaces if self._mine(name)),
            *(f"lock {name}" for name in set(self._locks()) - self.locks if self._mine(name)),
            *(f"process {pid}: {_line(pid)}" for pid in self.processes()),
            *(
                f"group {path}"
                for path in Path("/sys/fs/cgroup").glob("*/wulf-lab-*")
                if self._mine(path.name)
            ),
            *([f"directory {self.directory}"] if self.directory.exists() else []),
        ]

    def _mine(self, name: str) -> bool:
        from wulf.node.lab.cluster import namespace_of

        return name.startswith(namespace_of(self.directory))

    @staticmethod
    def _namespaces() -> list[str]:
        return [entry.name for entry in Path("/run/netns").glob("*")]

    @staticmethod
    def _locks() -> list[str]:
        return [entry.name for entry in Path("/run/lock").glob("wulf*")]


def _line(pid: int) -> str:
    try:
        return (
            (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return "gone by now"


def wait_until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    """Return when `condition` holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    pause = 0.02
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause)
        pause = min(2 * pause, 0.5)
