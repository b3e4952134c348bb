"""Time and memory of one whole command: adaptive ladder to 1 MiB, ±2 %, one pair, quiet machine.

``wulf measure --ops mpi_pingpong --precision 2%`` between two virtual nodes, as a user types it; the probe is
built already. Goals: <= 60 s until it ends by itself with every size precise, peak memory of wulf <= 300 MiB.
The figures are the medians of several runs; how many of them reached the precision at every size is printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import common
from wulf.base import store


def one(runs: Path, name: str) -> tuple[float, float, bool]:
    """Run it; return the time [s], the peak memory [MiB] and whether every size is precise."""
    words = [
        sys.executable,
        "-m",
        "wulf.face.cli.main",
        "measure",
        name,
        "--cluster",
        "lab",
        "--runs",
        str(runs),
    ]
    words += ["--ops", "mpi_pingpong", "--precision", "2%", "--pairs", ":".join(common.PAIR)]
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        assert process.stderr is not None
        raise SystemExit(f"bench: wulf measure failed: {process.stderr.read().decode()[-2000:]}")
    run = store.load(runs / name)
    analysis = run.analysis()
    assert analysis is not None
    reached = sum(cell.reached for cell in analysis.cells)
    memory = usage.ru_maxrss / 1024
    print(
        f"  {name}: {took:6.1f} s, {memory:5.0f} MiB, {len(run.launches)} launches, "
        f"{reached}/{len(analysis.cells)} sizes precise, {run.manifest.status}",
        flush=True,
    )
    return took, memory, reached == len(analysis.cells)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    count = 1 if "--quick" in arguments else 5
    with common.pair(), tempfile.TemporaryDirectory(prefix="wulf-ladder-") as directory:
        results = [one(Path(directory), f"run{number}") for number in range(1, count + 1)]
    precise = sum(reached for _, _, reached in results)
    print(f"  precise at every size: {precise} of {count} runs")
    return common.finish(
        "time-to-ladder",
        [
            common.Figure(name="seconds", value=statistics.median(r[0] for r in results), goal=60),
            common.Figure(name="MiB", value=max(r[1] for r in results), goal=300),
            common.Figure(name="runs-not-precise", value=count - precise, goal=count // 2),
        ],
    )
