"""SimGrid's SMPI beside the replay: the same work from the same traces, on the same network, in the same script.

A 2-D stencil with a small reduction in every iteration, exported as SMPI's time-independent traces and platform:
64 ranks, then 256. Ratio of the wall-clock times (goal: SMPI takes at least 20 times as long), and how far the two
predictions are apart. Then three programs at which others fail: a task farm that receives from any source, a collective
of two of four ranks, and scan, gatherv and alltoallv. The replay must take all of them; what SMPI does with the
exports is printed.

How SMPI is set, decided before any run, for these reasons, and reported for both selectors whatever they give:

* selector `ompi`: SMPI chooses algorithms of collectives as Open MPI does. The replay expands them by Open MPI's rules,
  so only this is the same work; the goal is held against it.
* selector `default`: what SMPI does when nobody sets anything (its own choice, linear trees at all sizes). It is what a
  user gets, and is shown beside the other, with no goal.
* latency, bandwidth, send and receive overheads and the limit of eager messages are those of the replay's network.
  Factors by which SMPI corrects latency and bandwidth of small messages are 1, and its TCP window is without end:
  they describe a cluster that neither program is told of.

A run that takes longer than its share of five minutes, or ends with an error, is said and has no ratio; the rest goes
on. SMPI: Debian's libsimgrid-dev; without it the three programs are replayed all the same.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.common import Figure, finish
from wulf.base.errors import TraceError
from wulf.base.text import last_line
from wulf.base.trace.layout import ANY, Flag, Kind
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import replaying
from wulf.stats.prediction.network import Link, Network, Piece
from wulf.tools.trace.exporting import export

#: Gigabit Ethernet, tuned.
LINK = Link(15_000, 65_536, (Piece(0, 4_000, 0.2),), (Piece(0, 4_500, 0.2),), (Piece(0, 0.0, 8.5),))
NETWORK = Network(LINK, None)
ITERATIONS = 50
#: Side of the grid of ranks, and how often.
GRIDS = ((8, 5), (16, 3))
QUICK = ((4, 2),)
#: The first one is what the goal is held against.
SELECTORS = ("ompi", "default")
SLOWER = 20.0
#: Of all runs of SMPI, and of one of them [s].
BUDGET_S, LIMIT_S = 240.0, 60.0

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


class Budget:
    """What is left of the time for SMPI."""

    def __init__(self, whole_s: float) -> None:
        self._end_s = time.monotonic() + whole_s

    def of_one(self) -> float:
        """Return how long the next run may take [s]; nothing is left where it is 0."""
        return max(0.0, min(LIMIT_S, self._end_s - time.monotonic()))


def smpi(trace: Path, ranks: int, selector: str, budget: Budget) -> tuple[float, float] | str:
    """Return SMPI's prediction and what it takes for it [s], or why there is none."""
    limit_s = budget.of_one()
    if limit_s == 0:
        return "was left out: its time is spent"
    with tempfile.TemporaryDirectory() as name:
        export(trace, "smpi", Path(name), NETWORK)
        argv = ["smpirun", "-np", str(ranks), "-hostfile", f"{trace.stem}.hosts"]
        argv += ["-platform", f"{trace.stem}.platform.xml", "-replay", f"{trace.stem}.traces"]
        # What the command line says stands, whatever the platform's own settings are.
        argv += [f"--cfg=smpi/coll-selector:{selector}"]
        begin = time.perf_counter()
        process = subprocess.Popen(
            argv,
            cwd=name,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            told, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            # smpirun is a shell script: what it has started goes with it.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"took longer than {limit_s:.0f} s"
        took = time.perf_counter() - begin
    said = re.search(r"Simulation time ([0-9.]+)", told)
    if process.returncode != 0 or said is None:
        return f"ended with code {process.returncode}: {last_line(told)[:120]}"
    return float(said[1]), took


def ours(trace: Path) -> tuple[float, float]:
    """Return the replay's prediction and what it takes for it, its start included [s]."""
    begin = time.perf_counter()
    found = replaying.replay(trace, [NETWORK], nodes=[])
    return found.results[0].time_ns * 1e-9, time.perf_counter() - begin


def beside_each_other(trace: Path, ranks: int, rounds: int, budget: Budget) -> list[Figure]:
    """Run both by turns, SMPI with each of its selectors."""
    ours(trace)  # it is built
    figures = []
    for selector in SELECTORS:
        found = [(smpi(trace, ranks, selector, budget), ours(trace)) for _ in range(rounds)]
        done = [(there, here) for there, here in found if not isinstance(there, str)]
        what = f"  {ranks} ranks × {ITERATIONS} iterations, SMPI's selector {selector}: "
        if not done:
            print(f"{what}SMPI {found[0][0]}: no ratio")
            continue
        theirs, own = [there[1] for there, _ in done], [here[1] for _, here in done]
        slower = statistics.median(theirs) / statistics.median(own)
        apart = done[0][0][0] / done[0][1][0] - 1
        print(
            f"{what}SMPI {_spread(theirs, 1, 's')}, wulf-replay {_spread(own, 1e3, 'ms')} with its start and the "
            f"reading of the trace, {slower:.0f} times; predictions {apart:+.1%} apart; {len(done)} of {rounds} runs"
        )
        if selector == SELECTORS[0]:
            figures.append(Figure(name=f"{SLOWER:.0f}-times-faster-{ranks}", value=SLOWER / slower, goal=1.0))
    return figures


def _spread(times: list[float], scale: float, unit: str) -> str:
    median, low, high = (scale * one for one in (statistics.median(times), min(times), max(times)))
    return f"{median:.3g} {unit} ({low:.3g} to {high:.3g})"


def failing(directory: Path, budget: Budget | None) -> Figure:
    """Replay the three programs; the figure is how many of them are not taken."""
    refused = 0
    for number, (what, fill) in enumerate(FAILURES.items()):
        trace = made(directory / f"f{number}.wtrace", 4, fill)
        try:
            said = f"{1e6 * ours(trace)[0]:.1f} µs"
        except TraceError as error:
            said, refused = f"refused: {error}", refused + 1
        peer = ""
        if budget is not None:
            found = smpi(trace, 4, SELECTORS[0], budget)
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
    budget = Budget(BUDGET_S)
    with tempfile.TemporaryDirectory(prefix="wulf-peers-") as name:
        directory = Path(name)
        # First what takes no time.
        figures.append(failing(directory, budget if there else None))
        if not there:
            print("  smpirun is not installed (Debian: libsimgrid-dev): no ratio")
        for side, rounds in (QUICK if quick else GRIDS) if there else ():
            trace = made(directory / "stencil.wtrace", side * side, stencil(side, ITERATIONS))
            figures += beside_each_other(trace, side * side, rounds, budget)
    return finish("peers", figures)
