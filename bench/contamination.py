"""Planted loads on the CPU of one rank: how many launches beside them are marked, and how many without them.

Two virtual nodes with a CPU each. Runs without a load and with each load (10, 50 and 100 % of a core) follow each other
in random order; in every launch both ranks say how they were scheduled. A machine that does something else has no clean
launches: there the marks without a planted load are true ones.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import common
from bench.worlds.line import Count, bounds
from wulf.base import store
from wulf.base.records import Launch

OPS = ("mpi_pingpong", "tcp_rr", "mpi_allreduce")
LOADS = (0.0, 0.1, 0.5, 1.0)
#: Takes a share of a CPU, in turns of 20 ms.
BUSY = """
import sys, time
share = float(sys.argv[1])
while True:
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.02 * share:
        pass
    if share < 1:
        time.sleep(0.02 * (1 - share))
"""


@contextmanager
def load(share: float, cpu: int) -> Iterator[None]:
    """Keep a CPU busy for a share of the time."""
    if share == 0:
        yield
        return
    process = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", BUSY, str(share)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def launches(runs: Path, name: str) -> list[Launch]:
    """Make one run; return its launches that measured."""
    ladder = ("--ladder", "short", "--max-size", "1024")
    common.measured(runs, name, "--ops", ",".join(OPS), *ladder, "--budget", "40s")
    made = [result.launch for result in store.load(runs / name).results]
    return [launch for launch in made if launch.status == "ok" and launch.purpose == "measure"]


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    rounds = 1 if "--quick" in arguments else 6
    order = random.Random(1)
    found: dict[float, list[Launch]] = defaultdict(list)
    with common.pair(), tempfile.TemporaryDirectory(prefix="wulf-contamination-") as directory:
        runs = Path(directory)
        found[0.0] += launches(runs, "first")
        probe = found[0.0][0].probe
        if probe is None or len(probe.cpus) < len(common.PAIR):
            raise SystemExit("bench: ranks do not say which CPUs they have")
        for number in range(rounds):
            for share in order.sample(LOADS, len(LOADS)):
                with load(share, order.choice(probe.cpus)[0]):
                    found[share] += launches(runs, f"load{share:.0%}-{number}".replace("%", ""))
    figures = []
    for share in LOADS:
        figures += figures_of(share, found[share])
    return common.finish("contamination", figures)


def figures_of(share: float, made: list[Launch]) -> list[common.Figure]:
    """Show what was marked beside a load, and return the share of launches that are wrong about it."""
    by_op: dict[str, list[bool]] = defaultdict(list)
    for launch in made:
        by_op[launch.op].append(bool(launch.contamination))
    for op, marked in by_op.items():
        print(f"  {share:5.0%} of a core, {op}: {sum(marked)} of {len(marked)} launches are marked")
    marked = [one for each in by_op.values() for one in each]
    wrong = sum(marked) if share == 0 else len(marked) - sum(marked)
    low, high = bounds(Count(hits=wrong, of=len(marked)))
    name = "marked without a load" if share == 0 else f"missed at {share:.0%}"
    goal = 0.02 if share == 0 else 0.05
    return [common.Figure(name=name, value=wrong / len(marked), goal=goal, low=low, high=high)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
