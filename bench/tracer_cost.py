"""What the tracer adds to a call of MPI: a program of one rank whose loops are calls, bare and traced by turns.

Five loops (a collective, messages to itself in three ways, looks in vain), each the median of 41 batches of 20,000
calls; launches in random order, with each MPI library here. The figures are the medians of the differences [ns];
one record goes with each call but the look in vain, two with a call of two requests. Goal: at most 100 ns.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path

from bench.common import Figure, finish
from wulf.probe import build
from wulf.stats import intervals

SOURCE = Path(__file__).parent / "native" / "calls.c"
LAUNCHES = 12
GOAL_NS = 100.0
LIMIT_BYTES = 4 << 30


def launch(program: Path, mpirun: str, library: Path | None, directory: Path) -> dict[str, float]:
    """Return what a call takes in each loop [ns]."""
    given = [f"LD_PRELOAD={library}", f"WULF_TRACE={directory}", f"WULF_TRACE_LIMIT={LIMIT_BYTES}"]
    more = ["--allow-run-as-root"] if "openmpi" in mpirun else ["-launcher", "fork"]
    words = [mpirun, *more, "-np", "1", *(["env", *given] if library else []), str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def compared(library: build.MpiLibrary, directory: Path, launches: int) -> list[Figure]:
    """Measure both by turns; return what is added to a call of each loop [ns]."""
    program = directory / f"calls-{library.family}"
    subprocess.run([library.compiler, "-w", "-O2", str(SOURCE), "-o", str(program)], check=True)
    tracer = build.build_program("libwulf-tracer.so", library).path
    order = random.Random(library.family)
    pairs = []
    for _ in range(launches):
        turns: list[Path | None] = [None, tracer]
        order.shuffle(turns)
        pairs.append({turn: launch(program, library.mpirun, turn, directory) for turn in turns})
    figures = []
    for name in pairs[0][None]:
        added = intervals.median([pair[tracer][name] - pair[None][name] for pair in pairs], 0.95)
        bare = intervals.median([pair[None][name] for pair in pairs], 0.95)
        print(
            f"{library.family:8} {name:20} bare {bare.value:7.1f} ns a call, traced {added.value:+6.1f} ns "
            + ("(no interval)" if added.low is None else f"({added.low:.1f} to {added.high:.1f})")
        )
        figures.append(
            Figure(
                name=f"{library.family}/{name}",
                value=added.value,
                goal=GOAL_NS,
                low=added.low,
                high=added.high,
            )
        )
    return figures


def main(arguments: list[str]) -> int:
    """Print what is added to a call, and the last line."""
    launches = int(arguments[0]) if arguments else LAUNCHES
    figures = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        for library in build.find_mpi():
            if library.family in ("openmpi", "mpich"):
                figures += compared(library, Path(directory), launches)
    return finish("tracer-cost", figures)
