"""What a change, a trial and a look cost on a node that has confirmed 1,000 changes before, against one that has 10.

The guard is the real one, in a network and file systems of its own on this machine; the earlier changes are written
as it would have left them. A change is what a controller asks for: lock, begin, apply, extend, confirm, unlock; a
trial takes the one before back and makes the next, as a search does it.

Goals: they take at most 1.5, 1.5 and 3 times as long as with 10 (of `status`, the last 50 are looked at one by one).
``--against=REVISION``: a trial, too, on a node with the guard of that revision; ours takes no longer.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

    def __init__(self, pid: int, text: str) -> None:
        self._pid = pid
        self._state = Path(f"/proc/{pid}/root/var/lib/wulf")
        self._changes = 0
        self._trial = "-"
        (self._state / "guard").write_text(text)

    def plant(self, count: int) -> None:
        """Write so many confirmed changes, of which the last leaves everything as it is."""
        for number in range(1, count + 1):
            knob = _KNOBS[number % len(_KNOBS)]
            directory = self._state / "tx" / f"P{number}"
            directory.mkdir(parents=True)
            about = f"number\t{number}\nowner\tbench\nboot\tearlier\nat\t2026-01-01T00:00:00Z\n"
            (directory / "about").write_text(about)
            (directory / "plan").write_text(f"sysctl.{knob}\tsysctl\t-\t{knob}\t1\n")
            (directory / "saved.1").write_text(f"/proc/sys/{knob.replace('.', '/')}\t1\n")
            (directory / "state").write_text("confirmed\n")

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
            [*enter, "sh", "/var/lib/wulf/guard", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"bench: guard {' '.join(words)}: {done.stdout}{done.stderr}")


@contextmanager
def place(count: int, text: str) -> Iterator[Node]:
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


def _has(directory: str, folder: str) -> bool:
    return (Path(directory) / "src/wulf" / folder.replace(".", "/")).is_dir()


def program_of(revision: str) -> str:
    """Return the guard's text of another revision of the project."""
    with tempfile.TemporaryDirectory() as directory:
        tree = subprocess.run(["git", "archive", revision, "src/wulf"], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", directory], input=tree.stdout, check=True)
        packages = [f"wulf.{folder}" for folder in ("node.change", "change") if _has(directory, folder)]
        text = f"from {packages[0]}.guard import program; print(program(), end='')"
        environment = os.environ | {"PYTHONPATH": f"{directory}/src"}
        return subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True
        ).stdout


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    rounds = QUICK_ROUNDS if "--quick" in arguments else ROUNDS
    against = next((word.partition("=")[2] for word in arguments if word.startswith("--against=")), "")
    with place(FEW, program()) as few, place(MANY, program()) as many:

        def arm(node: Node) -> dict[str, float]:
            looked = seconds(lambda: node.guard("status"))
            return {"change": seconds(node.change), "status": looked} | search(node)

        arms = {str(FEW): lambda: arm(few), str(MANY): lambda: arm(many)}
        with place(FEW, program_of(against)) if against else nullcontext(few) as other:
            values = interleave(arms | ({against: lambda: search(other)} if against else {}), rounds)
    show(values, "s", 1.0)
    figures = [
        ratio(f"{what}-{MANY}-by-{FEW}", values[str(MANY)][what], values[str(FEW)][what], goal)
        for what, goal in (("change", 1.5), ("trial", 1.5), ("status", 3.0))
    ]
    if against:
        figures.append(ratio(f"trial-by-{against}", values[str(FEW)]["trial"], values[against]["trial"], 1.0))
    return finish("journal-growth", figures)
