"""What a change, a trial and a look cost on a node that has confirmed 1,000 changes before, against one that has 10.

The guard is the real one, in a network and file systems of its own on this machine. A change is what a controller asks
for: lock, begin, apply, extend, confirm, unlock; a trial takes the one before back and makes the next, as in a search.

Goals: they take at most 1.5, 1.5 and 3 times as long as with 10 (of `status`, the last 50 are looked at one by one).
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.common import finish, interleave, ratio, show
from wulf.node.change.guard import program

FEW, MANY = 10, 1000
ROUNDS, QUICK_ROUNDS = 15, 5
LIMIT_S = 300.0
#: The last 50 are kept one by one, and up to ten more.
SETTLED = 60
TRIALS = 4
_KNOBS = ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_sack")
_PLACE = (
    "mkdir -p /var/lib/wulf && mount -t tmpfs none /var/lib/wulf && mount -t tmpfs none /run && "
    "mount -t tmpfs none /etc/systemd/system && "
    "echo up && exec cat"
)


class Node:
    """A place with a guard and its journal."""

    def __init__(self, pid: int, text: bytes) -> None:
        self._pid = pid
        self._state = Path(f"/proc/{pid}/root/var/lib/wulf")
        self._changes = 0
        self._trial = "-"
        (self._state / "guard").write_bytes(text)
        (self._state / "guard").chmod(0o700)

    def plant(self, count: int) -> None:
        """Make so many confirmed changes, of which the last leaves everything as it is."""
        self.guard("lock", "bench", "3600")
        for number in range(1, count + 1):
            knob = _KNOBS[number % len(_KNOBS)]
            plan = f"sysctl.{knob}\tsysctl\t-\t{knob}\t1\n"
            self.guard("swap", "-", f"P{number}", "bench", "600", stdin=plan)
            self.guard("confirm", f"P{number}")
        self.guard("unlock", "bench")

    def kept(self) -> int:
        """Return how many changes are kept one by one."""
        return len(list((self._state / "tx").iterdir()))

    def change(self) -> None:
        """Make a change as a controller does."""
        self._changes += 1
        name, knob = f"C{self._changes}", _KNOBS[0]
        plan = f"sysctl.{knob}\tsysctl\t-\t{knob}\t{self._changes % 2}\n"
        self.guard("lock", "bench", "600")
        self.guard("begin", name, "bench", "300", stdin=plan)
        for words in (("apply", name), ("extend", name, "300"), ("confirm", name), ("unlock", "bench")):
            self.guard(*words)

    def start_search(self) -> None:
        """Make the first of its trials, which starts the guard's watcher."""
        self.guard("lock", "bench", "600")
        self.trial()

    def trial(self) -> None:
        """Make the next trial of a search."""
        self._changes += 1
        before, self._trial = self._trial, f"T{self._changes}"
        plan = f"sysctl.{_KNOBS[0]}\tsysctl\t-\t{_KNOBS[0]}\t{self._changes % 2}\n"
        self.guard("swap", before, self._trial, "bench", "300", stdin=plan)

    def end_search(self) -> None:
        """Take the last trial back."""
        self.guard("undo", self._trial)
        self.guard("unlock", "bench")
        self._trial = "-"

    def guard(self, *words: str, stdin: str = "") -> None:
        """Let the guard do something."""
        enter = ["nsenter", f"--target={self._pid}", "--net", "--mount"]
        done = subprocess.run(
            [*enter, "/var/lib/wulf/guard", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"bench: guard {' '.join(words)}: {done.stdout}{done.stderr}")


@contextmanager
def place(count: int, text: bytes) -> Iterator[Node]:
    """Make a node that has confirmed so many changes, the last of them just now."""
    keeper = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", _PLACE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != b"up\n":
            raise SystemExit("bench: no namespaces of its own here (this takes root)")
        node = Node(keeper.pid, text)
        node.plant(count)
        node.change()
        while node.kept() > SETTLED:  # what a version before has left is condensed by and by
            node.change()
        yield node
    finally:
        keeper.kill()
        keeper.wait()


def seconds(do: Callable[[], None]) -> float:
    """Return how long it takes."""
    begin = time.monotonic()
    do()
    return time.monotonic() - begin


def search(node: Node) -> dict[str, float]:
    """Return how long a trial takes, in the middle of a search [s]."""
    node.start_search()
    taken = [seconds(node.trial) for _ in range(TRIALS)]
    node.end_search()
    return {"trial": statistics.median(taken)}


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    rounds = QUICK_ROUNDS if "--quick" in arguments else ROUNDS
    with place(FEW, program()) as few, place(MANY, program()) as many:

        def arm(node: Node) -> dict[str, float]:
            looked = seconds(lambda: node.guard("status"))
            return {"change": seconds(node.change), "status": looked} | search(node)

        arms = {str(FEW): lambda: arm(few), str(MANY): lambda: arm(many)}
        values = interleave(arms, rounds)
    show(values, "s", 1.0)
    figures = [
        ratio(f"{what}-{MANY}-by-{FEW}", values[str(MANY)][what], values[str(FEW)][what], goal)
        for what, goal in (("change", 1.5), ("trial", 1.5), ("status", 3.0))
    ]
    return finish("journal-growth", figures)
