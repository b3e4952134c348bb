"""How far apart ten reported latencies are while another process keeps both CPUs busy.

Ten runs of ``wulf measure`` of 1 B between two virtual nodes, with a busy loop on each of their CPUs.
Goal: largest ÷ smallest <= 1.15, or every run is marked as contaminated (then the value printed is the spread
all the same, and the goal is reached because nobody can mistake the figures for the network's).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import common
from wulf import store

SIZE = 1


@contextmanager
def busy() -> Iterator[None]:
    """Keep every CPU of this machine busy with one process each."""
    loops = []
    for cpu in sorted(os.sched_getaffinity(0)):
        loops.append(subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]))
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(runs: Path, name: str) -> tuple[float, float]:
    """One run; return its latency at 1 B [s] and the share of contaminated launches."""
    words = [sys.executable, "-m", "wulf.cli.main", "measure", name, "--cluster", "lab", "--runs", str(runs)]
    words += ["--ops", "mpi_pingpong", "--pairs", ":".join(common.PAIR), "--ladder", "adaptive"]
    words += ["--max-size", str(SIZE), "--budget", "25s"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"bench: wulf measure failed: {done.stderr[-2000:]}")
    run = store.load(runs / name)
    analysis = run.analysis()
    assert analysis is not None
    cell = next(cell for cell in analysis.cells if cell.cell.size_bytes == SIZE)
    marked = sum(point.contaminated for point in cell.launches) / len(cell.launches)
    print(
        f"  {name}: {cell.time.value * 1e6:8.2f} µs, {len(cell.launches)} launches, "
        f"{marked:.0%} contaminated",
        flush=True,
    )
    return cell.time.value, marked


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    count = 3 if "--quick" in arguments else 10
    with common.pair(), tempfile.TemporaryDirectory(prefix="wulf-spread-") as directory:
        quiet = measure(Path(directory), "quiet")
        with busy():
            values = [measure(Path(directory), f"busy{number:02d}") for number in range(1, count + 1)]
    times = [time for time, _ in values]
    spread = max(times) / min(times)
    all_marked = all(marked > 0.5 for _, marked in values)
    print(f"  quiet {quiet[0] * 1e6:.2f} µs; busy: spread {spread:.3f}; all marked: {all_marked}")
    passed = round(spread, 3) <= 1.15 or all_marked
    print(
        f"spread value={spread:.3f}{',all-marked-contaminated' if all_marked else ''} "
        f"goal=1.15-or-all-marked {'pass' if passed else 'short'}"
    )
    return 0 if passed else 1
