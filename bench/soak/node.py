"""The node that is changed again and again: its guard, its state, and the sizes of what could grow."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from bench.faults.node import Site, wait_for
from bench.faults.team import PLANT
from wulf.node.change.guard import program
from wulf.node.lab import Lab

OWNER = "soak"
LEASE_S = 86400
#: A watcher has nothing more to do, and has to go [s].
_RETIRE_S = 30.0
_HERE = Path(__file__).parent
_LOOK, _GAUGES, _PLANT = ((_HERE / name).read_text() for name in ("look.sh", "gauges.sh", "plant.sh"))
_KILL = '/var/lib/wulf/guard "$@" & p=$!; sleep "$AFTER"; kill -9 $p 2>/dev/null; wait $p; true'
#: TuneD writes its own files anew with every profile, with the same in them: their time says nothing.
_REWRITTEN = re.compile(r"file etc/tuned/")


class WrongError(Exception):
    """The node or its guard is not as it must be."""


class Node:
    """A virtual node with the real guard."""

    def __init__(self, raised: Lab, name: str) -> None:
        self._lab = raised
        self.site = Site(raised, name)

    def plant(self) -> None:
        """Give it what is changed."""
        # The other services that are not in use are taken away: they make each look longer.
        tuned = Path("/lib/systemd/system/tuned.service")
        if not tuned.exists():
            raise SystemExit("bench: TuneD is not installed: apt-get install tuned")
        self.site.shell(PLANT)
        self.site.path("etc/systemd/system/tuned.service").write_bytes(tuned.read_bytes())
        self._lab.kill(self.site.name)
        self._lab.start_all(lambda _: None)
        self.site.shell(_PLANT)
        self.site.run(["sh", "-c", "mkdir -p /var/lib/wulf"])
        self._install()

    def _install(self) -> None:
        put = "cat >/var/lib/wulf/guard && chmod 700 /var/lib/wulf /var/lib/wulf/guard"
        self.site.run(["sh", "-c", put], program())

    def bring_journal(self, archive: Path) -> None:
        """Go on with the journal of an earlier session."""
        if archive.exists():
            self.site.run(["tar", "-C", "/var/lib", "-xzf", "-"], archive.read_bytes())
            self._install()

    def keep_journal(self, archive: Path) -> None:
        """Keep the journal for a later session."""
        packed = self.site.run(["tar", "-C", "/var/lib", "-czf", "-", "wulf"])
        new = archive.with_suffix(".new")
        new.write_bytes(packed.stdout)
        new.rename(archive)

    # --- the guard -----------------------------------------------------------------------------------------

    def ask(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
        """Let the guard do something, whatever comes of it."""
        return self.site.run(["/var/lib/wulf/guard", *words], stdin.encode())

    def guard(self, *words: str, stdin: str = "") -> str:
        """Let the guard do something; return what it said.

        Raises
        ------
        WrongError
            It did not do it.
        """
        done = self.ask(*words, stdin=stdin)
        if done.returncode != 0 or done.stderr:
            said = (done.stdout + done.stderr).decode(errors="replace")
            raise WrongError(
                f"guard {' '.join(words)} ended with {done.returncode}: {said[:1500]}\nplan:\n{stdin}"
            )
        return done.stdout.decode(errors="replace")

    def killed(self, after_s: float, *words: str, stdin: str = "") -> None:
        """Let the guard do something, and end it with SIGKILL after a time, if it is still at work then [s]."""
        argv = ["env", f"AFTER={after_s:.3f}", "sh", "-c", _KILL, "kill", *words]
        self.site.run(argv, stdin.encode())

    def kill_watcher(self) -> None:
        """End the guard's watcher, which its keeper starts again."""
        self.site.run(["sh", "-c", 'kill -9 "$(cat /run/wulf/watcher)" 2>/dev/null; true'])

    def state(self, change: str) -> str:
        """Return the state of a change as its journal says it; empty where it is not there."""
        try:
            return self.site.path(f"var/lib/wulf/tx/{change}/state").read_text().split("\t")[0].strip()
        except FileNotFoundError:
            return ""

    def wait_for(self, change: str, state: str, seconds: float) -> None:
        """Wait until a change has a state.

        Raises
        ------
        WrongError
            It never has.
        """
        if not wait_for(lambda: self.state(change) == state, seconds):
            raise WrongError(
                f"{change} is {self.state(change) or 'not there'} after {seconds:.0f} s, not {state}"
            )

    # --- what is compared ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until no guard is at work any more.

        Raises
        ------
        WrongError
            Something stays.
        """
        if not wait_for(lambda: self.site.is_settled() and not self.site.leftovers(), _RETIRE_S):
            raise WrongError(f"something of the guard stays: {self.site.states()} {self.site.leftovers()}")
        # A unit that was read while its file was there is in systemd's memory until it reads all of them again.
        self.site.shell("systemctl daemon-reload")

    def whole_state(self) -> dict[str, str]:
        """Return every setting, fact and file that has to be the same afterwards."""
        found = {name: _timeless(name, value) for name, value in self.site.facts().items()}
        for section in self.site.shell(_LOOK).split("== ")[1:]:
            title, _, text = section.partition("\n")
            found[f"also {title}"] = text
        return found

    def gauges(self) -> dict[str, float]:
        """Return the sizes of what could grow, here and on the node."""
        lines = [line.split() for line in self.site.shell(_GAUGES).splitlines()]
        found = {name: float(value) for name, value in lines}
        found["descriptors-bench"] = float(len(list(Path("/proc/self/fd").iterdir())))
        found["memory-bench-KiB"] = resident_kib()
        return found

    def log(self) -> str:
        """Return the end of the guard's log."""
        done = self.site.run(["tail", "-n", "60", "/var/lib/wulf/log"])
        return done.stdout.decode(errors="replace")


def resident_kib() -> float:
    """Return the anonymous resident memory of this process [KiB]."""
    for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1])
    return 0.0


def _timeless(name: str, value: str) -> str:
    return re.sub(r" \d{10,} ", " ", value) if _REWRITTEN.match(name) else value


def now() -> float:
    """Return a time to take differences of [s]."""
    return time.monotonic()
