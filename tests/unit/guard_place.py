"""A guard at work in a network and file systems of its own, without systemd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wulf.node.change.guard import DONE, program

#: A node's /bin/sh: that of Debian, and another one.
SHELLS = [
    pytest.param(name, marks=marks)
    for name, marks in (("dash", ()), ("bash", pytest.mark.thorough))
    if shutil.which(name)
]
#: What a guard writes into: another one, at work at the same time, must not meet it there.
OWN = ("/var/lib/wulf", "/run", "/etc/systemd/system")
SYSCTL = "net.ipv4.tcp_slow_start_after_idle"
#: A kind of access whose tool takes its time.
SLOW = """
slow_save() { file_save "$1" "$2"; }
slow_put() { sh -c 'sleep 1.5; echo "$2" >"$1"' slow "$2" "$3"; }
slow_restore() { file_restore "$1" "$2"; }
slow_get() { file_get "$1" "$2"; }
"""


def wait(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


#: How long a guard waits for others, and its watcher for nothing, in tests [s].
HURRIED = {"WAIT_S": 10, "WATCH_S": 2, "KEEP_S": 1, "SETTLE_S": 3}


def hurried(text: str) -> str:
    """Return a guard that waits for less: what it does is the same."""
    for name, seconds in HURRIED.items():
        text, found = re.subn(rf"^{name}=\d+", f"{name}={seconds}", text, flags=re.MULTILINE)
        assert found == 1, name
    return text


class Place:
    """A network and file systems of its own, in which a guard is at work."""

    def __init__(self, shell: str, directory: Path) -> None:
        self.directory = directory
        mounts = " && ".join(("mkdir -p /var/lib/wulf", *(f"mount -t tmpfs none {at}" for at in OWN)))
        # /bin/sh is what the node has.
        instead = f"mount --bind {shutil.which(shell)} {Path('/bin/sh').resolve()}"
        start = f"{mounts} && {instead} && touch /run/ready && exec sleep 300"
        self._keeper = subprocess.Popen(
            ["unshare", "--net", "--mount", shutil.which("bash") or "sh", "-c", start]
        )
        root = Path(f"/proc/{self._keeper.pid}/root")
        wait(lambda: (root / "run/ready").exists() and not Path("/run/ready").exists())
        self.state = root / "var/lib/wulf"
        self.run = root / "run/wulf"
        main = 'main "$@"\n'
        (self.state / "guard").write_text(hurried(program()).removesuffix(main) + SLOW + main)

    def argv(self, *words: str) -> list[str]:
        enter = ["nsenter", f"--target={self._keeper.pid}", "--net", "--mount"]
        return [*enter, "sh", "/var/lib/wulf/guard", *words]

    def guard(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    def done(self, *words: str, stdin: str = "") -> str:
        said = self.guard(*words, stdin=stdin)
        assert (said.returncode, said.stderr) == (DONE, ""), said
        return said.stdout

    def set(self, change: str, value: str, deadline_s: int = 30) -> None:
        self.done("begin", change, "me", str(deadline_s), stdin=f"k\tsysctl\t-\t{SYSCTL}\t{value}\n")
        self.done("apply", change)

    def value(self) -> str:
        enter = self.argv()[:4]
        return subprocess.run(
            [*enter, "cat", f"/proc/sys/{SYSCTL.replace('.', '/')}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def enter(self, *argv: str) -> str:
        return subprocess.run(
            [*self.argv()[:4], *argv], capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def rows(self, word: str) -> list[list[str]]:
        """Return what `status` says, lines that begin with a word."""
        lines = [line.split("\t") for line in self.done("status").splitlines()]
        return [line[1:] for line in lines if line[0] == word]

    def shown(self, change: str) -> str:
        """Return the state of a change as `status` shows it."""
        return next((": ".join(row[6:]) for row in self.rows("tx") if row[0] == change), "not there")

    def journal(self, change: str) -> str:
        return (self.state / "tx" / change / "state").read_text().split()[0]

    def kill(self, words: str = "") -> int:
        """End what is at work in here, or of that what has these words in its command line; return how many."""
        inside = Path(f"/proc/{self._keeper.pid}/ns/mnt").readlink()
        killed = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    said = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if (entry / "ns/mnt").readlink() == inside and words in said:
                        os.kill(int(entry.name), signal.SIGKILL)
                        killed += 1
                except OSError:
                    continue
        return killed

    def end(self) -> None:
        self.kill()
        self._keeper.wait()
