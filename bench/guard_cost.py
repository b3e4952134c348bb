"""What a trial costs on a node: the change before is undone, and the next one made, as a search does it.

The guard is the real one, in a network and file systems of its own on this machine, its journal on tmpfs: no time of a
disk is in it. The change is of a sysctl, which takes no tool. Processes are those that begin anywhere on this machine
meanwhile, as /proc/stat counts them, so that others at work make them more, never fewer: the least of some trials is
told. The time to enter the namespaces and to start a program there that does nothing (``true``) is taken off.

Goals: a trial takes at most 5 ms and 5 processes; the three processes that watch have at most 2 MiB together (their
own memory, and their share of what is mapped).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.common import Figure, finish, show
from tests.unit.guard_place import SYSCTL, Place

TRIALS, QUICK_TRIALS = 200, 40
GOAL_MS, GOAL_PROCESSES, GOAL_KIB = 5.0, 5.0, 2048.0
ROLES = ("watcher", "keeper", "spare")


def main(arguments: list[str]) -> int:
    """Make trials, and count."""
    if os.geteuid() != 0:
        raise SystemExit("bench: namespaces of its own take root")
    with TemporaryDirectory() as directory:
        place = Place(Path(directory))
        try:
            return _measure(place, QUICK_TRIALS if "--quick" in arguments else TRIALS)
        finally:
            place.end()


def _measure(place: Place, trials: int) -> int:
    place.done("lock", "bench", "600")
    _trial(place, 0)
    idle = [_cost(lambda: place.enter("true")) for _ in range(trials)]
    taken = [_cost(partial(_trial, place, number)) for number in range(1, trials + 1)]
    resident = sum(_share_kib(int((place.run / role).read_text())) for role in ROLES)
    place.done("undo", f"T{trials}")
    enter_ms = statistics.median(ms for ms, _ in idle)
    trial_ms, trial_processes = statistics.median(ms for ms, _ in taken), min(count for _, count in taken)
    # Both are entered with nsenter, which becomes the program: its start is in both.
    arms = {"true": {"time": [ms for ms, _ in idle]}, "trial": {"time": [ms for ms, _ in taken]}}
    show(arms, "ms", 1.0)
    figures = [
        Figure(name="trial ms", value=trial_ms - enter_ms, goal=GOAL_MS),
        Figure(name="trial processes", value=float(trial_processes), goal=GOAL_PROCESSES),
        Figure(name="watchers KiB", value=resident, goal=GOAL_KIB),
    ]
    return finish("guard-cost", figures)


def _trial(place: Place, number: int) -> None:
    step = f"k\tsysctl\t-\t{SYSCTL}\t{number % 2}\n"
    place.done("swap", f"T{number - 1}" if number else "-", f"T{number}", "bench", "300", stdin=step)


def _cost(do: Callable[[], object]) -> tuple[float, int]:
    before, begin = _started(), time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1000, _started() - before


def _started() -> int:
    """Return how many processes have begun on this machine."""
    lines = Path("/proc/stat").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("processes ")).split()[1])


def _share_kib(pid: int) -> float:
    """Return the resident memory of a process, its share of what others have mapped, too [KiB]."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("Pss:")).split()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
