"""What the tracer adds to a call of MPI: calls through it and past it by turns, in one process.

A program of one rank (bench/native/calls.c) makes short batches of calls, as it calls them and by the library's own
functions, in random order, so that what the host does to one it does to the other. Six loops (a collective, messages
to itself in four ways, unsuccessful polls), without threads and with MPI_THREAD_MULTIPLE, with each MPI library here.
Of each launch and loop the median of the differences of neighbouring batches [ns a call]; the figure is the
launches' median, with its interval. Goal: at most 100 ns.

The library's own functions against themselves are shown beside: that must be about zero. So is the CPU time that all
calls took more, of a call: it has in it what only some do, as to write a full window.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import msgspec

from bench.common import Figure, finish
from wulf.base.native import build
from wulf.stats.core import intervals

SOURCE = Path(__file__).parent / "native" / "calls.c"
LAUNCHES = 12
#: Of each loop, in each launch.
BLOCKS = 1500
GOAL_NS = 100.0
LIMIT_BYTES = 4 << 30
THREADS = ("single", "multiple")


class Added(msgspec.Struct, frozen=True):
    """What one launch says of one loop: a call takes so long, and so much more [ns]."""

    loop: str
    bare_ns: float
    added_ns: float
    again_ns: float
    cpu_ns: float


def launch(program: Path, mpirun: str, tracer: Path, threads: str, seed: int) -> list[Added]:
    """Return what one launch says of each loop."""
    more = ["--allow-run-as-root"] if "openmpi" in mpirun else ["-launcher", "fork"]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        given = [f"LD_PRELOAD={tracer}", f"WULF_TRACE={directory}", f"WULF_TRACE_LIMIT={LIMIT_BYTES}"]
        words = [mpirun, *more, "-np", "1", "env", *given, str(program), str(BLOCKS), str(seed), threads]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        recorded = Path(directory, "rank.000000").stat().st_size
    if recorded < 1 << 20:
        raise SystemExit("bench: nothing was recorded")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [msgspec.json.decode(line, type=Added) for line in lines]


def figures_of(name: str, found: dict[str, list[Added]]) -> list[Figure]:
    """Print what is added to a call of each loop; return it as figures."""
    figures = []
    for loop, said in found.items():
        added = intervals.median([one.added_ns for one in said], 0.95)
        bare, again, cpu = (
            intervals.median([getattr(one, field) for one in said], 0.95).value
            for field in ("bare_ns", "again_ns", "cpu_ns")
        )
        print(
            f"{name:17} {loop:20} bare {bare:6.1f} ns a call, traced {added.value:+6.1f} ns; "
            f"control {again:+.2f} ns, CPU time of all calls {cpu:+6.1f} ns"
        )
        figures.append(
            Figure(name=f"{name}/{loop}", value=added.value, goal=GOAL_NS, low=added.low, high=added.high)
        )
    return figures


def main(arguments: list[str]) -> int:
    """Print what is added to a call, and the last line."""
    print(__doc__)
    launches = 6 if "--quick" in arguments else LAUNCHES
    programs = {}
    found: dict[str, dict[str, list[Added]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        for family in ("openmpi", "mpich"):
            if shutil.which(f"mpicc.{family}") is None:
                continue
            library = build.find_mpi(family)[0]
            program = Path(directory) / f"calls-{family}"
            words = [library.compiler, "-w", "-O2", str(SOURCE), "-o", str(program), "-ldl"]
            subprocess.run(words, check=True)
            tracer = build.build_program("libwulf-tracer.so", library).path
            programs[family] = (program, library.mpirun, tracer)
        print(f"{launches} launches of each, {BLOCKS} blocks of every loop; {os.uname().machine}")
        for seed in range(launches):
            for family, (program, mpirun, tracer) in programs.items():
                for threads in THREADS:
                    for said in launch(program, mpirun, tracer, threads, seed + 1):
                        found[f"{family}/{threads}"][said.loop].append(said)
    figures = [figure for name, loops in found.items() for figure in figures_of(name, loops)]
    return finish("tracer-cost", figures)
