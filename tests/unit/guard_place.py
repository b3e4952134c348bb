"""A guard at work in a network and file systems of its own, without systemd."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.unit import spaces
from wulf.base.native import build
from wulf.node.change.guard import DONE

#: What a guard writes into: another one, at work at the same time, must not meet it there.
OWN = ("/var/lib/wulf", "/run", "/etc/systemd/system")
SYSCTL = "net.ipv4.tcp_slow_start_after_idle"
#: A systemd whose units are files, and which takes its time where it is told so.
SLOW = """\
#!/bin/sh
cd "$PLACE" || exit
while case $1 in --*) true ;; *) false ;; esac; do shift; done
case $1 in
is-enabled) cat "$2.enabled" ;;
enable | disable) sh -c 'sleep "$(cat slow)"; echo "$1d" >"$2.enabled"' slow "$1" "$2" ;;
esac
"""


def wait(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class Place:
    """A network and file systems of its own, in which a guard is at work."""

    def __init__(self, directory: Path, name: str = "wulf-guard") -> None:
        self.directory = directory
        self.programs = directory / "bin"
        self.programs.mkdir()
        mounts = " && ".join(("mkdir -p /var/lib/wulf", *(f"mount -t tmpfs none {at}" for at in OWN)))
        start = (
            f"{mounts} && mount --bind {self.programs} /usr/local/sbin && touch /run/ready && exec sleep 300"
        )
        self._keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", start])
        root = Path(f"/proc/{self._keeper.pid}/root")
        wait(lambda: (root / "run/ready").exists() and not Path("/run/ready").exists())
        self.state = root / "var/lib/wulf"
        self.run = root / "run/wulf"
        shutil.copy(build.build_program(name, None).path, self.state / "guard")
        (self.state / "guard").chmod(0o700)

    def program(self, name: str, text: str) -> None:
        """Put a program before the node's own; it knows this directory as PLACE, as guards hand on no variables."""
        first, rest = text.split("\n", 1)
        known = f"PLACE={self.directory}; export PLACE"
        if "python" in first:
            known = f"import os; os.environ['PLACE'] = {str(self.directory)!r}"
        (self.programs / name).write_text(f"{first}\n{known}\n{rest}")
        (self.programs / name).chmod(0o755)

    def slowly(self, seconds: float) -> tuple[str, Path]:
        """Plant a unit that takes so long to be disabled; return the step that does it, and the file that says so."""
        self.program("systemctl", SLOW)
        (self.directory / "slow").write_text(f"{seconds}\n")
        file = self.directory / "slow.service.enabled"
        file.write_text("enabled\n")
        return "s\tunit\t-\tslow.service\tdisabled\n", file

    def argv(self, *words: str) -> list[str]:
        enter = ["nsenter", f"--target={self._keeper.pid}", "--net", "--mount"]
        return [*enter, "/var/lib/wulf/guard", *words]

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
        return spaces.end({spaces.space_of(self._keeper.pid)}, words)

    def end(self) -> None:
        self.kill()
        self._keeper.wait()
