"""What the model makes of a trace of collectives on four nodes, against what they took.

Four virtual nodes at 100 Mbit/s, two of which are calibrated. Then programs that do nothing but one collective of one
size, with four ranks, each launch of them traced: the time of the usual one by the model alone, as `wulf program
predict` says it for the network as it is, is held against the median of their own times. Nothing is fitted to them.
The network is slow, so that four ranks on few CPUs wait for it, and not for each other. Goal: median error at most
3 %. What is off by more than 10 % is counted, too.

`--launches=N` (3); `--keep=DIRECTORY` keeps what is measured, `--from=DIRECTORY` judges that again.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.accuracy import option
from bench.common import Figure, finish, measured
from wulf.base import store
from wulf.base.native import build
from wulf.base.trace.reader import read_verified
from wulf.base.trace.summary import run_time
from wulf.base.units import format_time
from wulf.node import lab
from wulf.node.lab import nodes
from wulf.node.lab.topology import Link
from wulf.node.replay import asking, predicting

SOURCE = Path(__file__).parent / "native" / "collectives.c"
LAUNCHES, RANKS, RATE, BUDGET = 3, 4, "100mbit", "4m"
ERROR, FAR = 0.03, 0.10
#: Collective, size [B], how often: about half a second each.
CALLS = (
    ("bcast", 16384, 100),
    ("bcast", 65536, 40),
    ("bcast", 262144, 12),
    ("reduce", 2048, 400),
    ("reduce", 16384, 150),
    ("reduce", 131072, 25),
    ("gather", 4096, 300),
    ("gather", 65536, 40),
    ("gather", 300000, 10),
    ("scatter", 4096, 300),
    ("scatter", 65536, 40),
    ("scatter", 300000, 10),
    ("allreduce", 65536, 60),
    ("allgather", 65536, 30),
    ("alltoall", 16384, 100),
    ("alltoall", 65536, 25),
    ("reduce_scatter", 16384, 80),
)


def measure(directory: Path, launches: int) -> None:
    """Calibrate two of four nodes, and trace all programs."""
    if lab.current() is not None:
        raise SystemExit("bench: a virtual cluster is up: wulf lab down")
    mpi = build.find_mpi("openmpi")[0]
    raised = lab.up(RANKS, Link(rate=RATE))[0]
    try:
        program = nodes.shared(raised.directory) / SOURCE.stem
        subprocess.run([mpi.compiler, "-O2", "-o", program, SOURCE], check=True)
        measured(directory, "calibrated", "--suite", "calibrate", "--budget", BUDGET)
        for name, size, times in CALLS:
            for launch in range(launches):
                words = [f"/shared/{program.name}", name, str(size), str(times)]
                _trace(directory / f"{name}-{size}-{launch}.wtrace", words)
    finally:
        raised.down()


def _trace(trace: Path, words: list[str]) -> None:
    argv = [sys.executable, "-m", "wulf.face.cli.main", "program", "trace", "--cluster", "lab"]
    argv += ["--ranks", str(RANKS), "-o", str(trace), "--", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(words)}: {done.stderr[-1000:]}")


def judge(directory: Path) -> int:
    """Print what each came to, and the last line."""
    run = store.load(directory / "calibrated")
    errors = []
    for name, size, _ in CALLS:
        traces = sorted(directory.glob(f"{name}-{size}-*.wtrace"))
        request = asking.PredictRequest(
            source=traces[0], again=traces[1:], run=run, what_if="bandwidth=x2", engine="auto"
        )
        found = predicting.predict(request, lambda _: None)
        own = [run_time(read_verified(trace)) for trace in traces]
        error = found.base.time.value / statistics.median(own) - 1
        errors.append(abs(error))
        print(
            f"  {name:14s} {size:6d} B: own {format_time(statistics.median(own))} ({format_time(min(own))} to "
            f"{format_time(max(own))}), model {format_time(found.base.time.value)} by {found.engine}: {error:+.1%}"
        )
    far = sum(error > FAR for error in errors) / len(errors)
    return finish(
        "collective-times",
        [
            Figure(name="median-error", value=statistics.median(errors), goal=ERROR),
            Figure(name="off-by-more-than-a-tenth", value=far, goal=0.1),
        ],
    )


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    stored = option(arguments, "from")
    if stored is not None:
        return judge(Path(stored))
    with tempfile.TemporaryDirectory(prefix="wulf-collectives-") as name:
        directory = Path(option(arguments, "keep") or name)
        directory.mkdir(parents=True, exist_ok=True)
        measure(directory, int(option(arguments, "launches") or LAUNCHES))
        return judge(directory)
