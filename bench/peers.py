"""SimGrid's SMPI beside the replay: the same work from the same traces, on the same network, in the same script.

A 2-D stencil with a small reduction in every iteration, exported as SMPI's time-independent traces and platform:
64 ranks five times, 256 ranks once. Ratio of the wall-clock times (goal: SMPI takes at least 20 times as long), and
how far the two predictions are apart. Then three programs at which others fail: a task farm that receives from anybody,
a collective of two of four ranks, and scan, gatherv and alltoallv. The replay must take all of them; what SMPI does
with the exports is printed.

SMPI: Debian's libsimgrid-dev; without it the three programs are replayed all the same.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.common import Figure, finish
from wulf.errors import TraceError
from wulf.predict.network import Link, Network, Piece
from wulf.procedure import replaying
from wulf.procedure.trace_export import export
from wulf.wtrace.layout import ANY, Flag, Kind
from wulf.wtrace.writer import StreamWriter, write_container

#: Gigabit Ethernet, tuned.
LINK = Link(15_000, 65_536, (Piece(0, 4_000, 0.2),), (Piece(0, 4_500, 0.2),), (Piece(0, 0.0, 8.5),))
NETWORK = Network(LINK, None)
ITERATIONS = 50
#: Side of the grid of ranks, and how often.
GRIDS = ((8, 5), (16, 1))
QUICK = ((4, 2),)
SLOWER = 20.0
LIMIT_S = 200.0

Fill = Callable[[int, StreamWriter], None]


def made(path: Path, ranks: int, fill: Fill) -> Path:
    """Write a trace of so many ranks."""
    streams = []
    for rank in range(ranks):
        stream = StreamWriter(rank, ranks)
        fill(rank, stream)
        streams.append(stream.finish(1))
    write_container(path, {"command": path.stem}, streams)
    return path


def stencil(side: int, iterations: int) -> Fill:
    """Four neighbours on a torus, 4 KiB each way, 200 µs of computing, and a reduction of 8 B."""

    def fill(rank: int, stream: StreamWriter) -> None:
        x, y = rank % side, rank // side
        beside = [
            ((x + dx) % side) + ((y + dy) % side) * side for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        for step in range(iterations):
            stream.add(
                Kind.IRECV,
                peer=beside[0],
                request=1,
                bytes=4096,
                compute_ns=200_000 + 97 * ((rank + step) % 13),
            )
            for request, peer in enumerate(beside[1:], 2):
                stream.add(Kind.IRECV, peer=peer, request=request, bytes=4096)
            for request, peer in enumerate(beside, 5):
                stream.add(Kind.ISEND, peer=peer, request=request, bytes=4096)
            for request in range(1, 9):
                stream.add(Kind.WAIT, peer=beside[(request - 1) % 4], request=request)
            stream.add(Kind.ALLREDUCE, bytes=8)

    return fill


def farm(rank: int, stream: StreamWriter) -> None:
    """A master that gives each of three workers four tasks, whoever comes first."""
    tasks = 4
    if rank > 0:
        for _ in range(tasks):
            stream.add(Kind.RECV, peer=0, tag=1, bytes=64)
            stream.add(Kind.SEND, peer=0, tag=2, bytes=1024, compute_ns=100_000 * rank)
        return
    for worker in (1, 2, 3):
        stream.add(Kind.SEND, peer=worker, tag=1, bytes=64)
    for done in range(3 * tasks):
        worker = done % 3 + 1
        stream.add(Kind.IRECV, peer=ANY, tag=2, bytes=4096, request=1, flags=Flag.WILD)
        stream.add(Kind.WAIT, peer=worker, tag=2, request=1)
        if done < 3 * (tasks - 1):
            stream.add(Kind.SEND, peer=worker, tag=1, bytes=64)


def some(rank: int, stream: StreamWriter) -> None:
    """An allreduce of ranks 1 and 3."""
    if rank in (1, 3):
        stream.communicator(2, [1, 3], rank=rank // 2)
        stream.add(Kind.ALLREDUCE, comm=2, bytes=8)
    stream.add(Kind.BARRIER)


def variants(rank: int, stream: StreamWriter) -> None:
    """Scan, gatherv and alltoallv."""
    sizes = b"".join((1000 * (one + 1)).to_bytes(8, "little") for one in range(4))
    stream.add(Kind.SCAN, bytes=8)
    stream.add(Kind.GATHERV, peer=0, bytes=100 * (rank + 1))
    stream.add(Kind.ALLTOALLV, bytes=10_000, payload=sizes)


FAILURES: dict[str, Fill] = {
    "task farm with MPI_ANY_SOURCE": farm,
    "allreduce of 2 of 4 ranks": some,
    "scan, gatherv, alltoallv": variants,
}


def smpi(trace: Path, ranks: int) -> tuple[float, float] | str:
    """Return SMPI's prediction and what it takes for it [s], or why there is none."""
    with tempfile.TemporaryDirectory() as name:
        export(trace, "smpi", Path(name), NETWORK)
        argv = ["smpirun", "-np", str(ranks), "-hostfile", f"{trace.stem}.hosts"]
        argv += ["-platform", f"{trace.stem}.platform.xml", "-replay", f"{trace.stem}.traces"]
        begin = time.perf_counter()
        try:
            done = subprocess.run(
                argv, cwd=name, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"took longer than {LIMIT_S:.0f} s"
        took = time.perf_counter() - begin
    said = re.search(r"Simulation time ([0-9.]+)", done.stdout + done.stderr)
    if done.returncode != 0 or said is None:
        return f"ended with code {done.returncode}"
    return float(said[1]), took


def ours(trace: Path) -> tuple[float, float]:
    """Return the replay's prediction and what it takes for it, its start included [s]."""
    begin = time.perf_counter()
    found = replaying.replay(trace, [NETWORK], nodes=[])
    return found.results[0].time_ns * 1e-9, time.perf_counter() - begin


def beside_each_other(trace: Path, ranks: int, rounds: int) -> list[Figure]:
    """Run both by turns."""
    ours(trace)  # it is built
    there, here = [], []
    apart = 0.0
    for _ in range(rounds):
        found = smpi(trace, ranks)
        if isinstance(found, str):
            print(f"  SMPI {found}: no ratio")
            return []
        predicted, took = ours(trace)
        there.append(found[1])
        here.append(took)
        apart = found[0] / predicted - 1
    slower = statistics.median(there) / statistics.median(here)
    print(
        f"  {ranks} ranks × {ITERATIONS} iterations: SMPI {statistics.median(there):.2f} s "
        f"({min(there):.2f} to {max(there):.2f}), wulf-replay {1e3 * statistics.median(here):.0f} ms "
        f"({1e3 * min(here):.0f} to {1e3 * max(here):.0f}), {slower:.0f} times; predictions {apart:+.1%} apart"
    )
    return [Figure(name=f"{SLOWER:.0f}-times-faster-{ranks}", value=SLOWER / slower, goal=1.0)]


def failing(directory: Path, *, with_smpi: bool) -> Figure:
    """Replay the three programs; the figure is how many of them are not taken."""
    refused = 0
    for number, (what, fill) in enumerate(FAILURES.items()):
        trace = made(directory / f"f{number}.wtrace", 4, fill)
        try:
            said = f"{1e6 * ours(trace)[0]:.1f} µs"
        except TraceError as error:
            said, refused = f"refused: {error}", refused + 1
        peer = ""
        if with_smpi:
            found = smpi(trace, 4)
            peer = (
                f"; SMPI from the export: {found if isinstance(found, str) else f'{1e6 * found[0]:.1f} µs'}"
            )
        print(f"  {what}: {said}{peer}")
    return Figure(name="failures", value=float(refused), goal=0.0)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    quick = "--quick" in arguments
    there = shutil.which("smpirun") is not None
    figures = []
    with tempfile.TemporaryDirectory(prefix="wulf-peers-") as name:
        directory = Path(name)
        for side, rounds in QUICK if quick else GRIDS:
            if there:
                trace = made(directory / "stencil.wtrace", side * side, stencil(side, ITERATIONS))
                figures += beside_each_other(trace, side * side, rounds)
        if not there:
            print("  smpirun is not installed (Debian: libsimgrid-dev): no ratio")
        figures.append(failing(directory, with_smpi=there))
    return finish("peers", figures)
