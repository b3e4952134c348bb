"""Engine B of the replay, event by event, beside SimGrid's SMPI: the same work, the same network, by turns.

The stencil of ``peers``: 1024 ranks, 50 iterations, four neighbours and a small reduction. Figures: what one replay
takes, its start and the reading of the trace included (goal: 1 s); how many times as long as it should an event takes
(goal: 5 million events a second on one core), by what 20 more networks take; how much slower SMPI is on 64 ranks (goal:
at least 10 times), and on all 1024 once.

An event is a message, or a piece of one above 64 KiB, that comes to an interface or an uplink; or a rank that goes on
in step with others to choose who comes first. A message of the stencil has two: at its sender's interface and at its
receiver's. Those at a receiver's are ordered among all others in the queue; that at a sender's is not where a rank is
alone on its node, as here. What ranks do in between is part of the time.

Then the three programs at which others fail, which must end, and the same seed twice, which must print the same bytes.

SMPI: Debian's libsimgrid-dev; without it there is no ratio.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.common import Figure, finish
from bench.peers import FAILURES, ITERATIONS, LIMIT_S, NETWORK, Budget, made, smpi, stencil
from wulf.base.errors import TraceError
from wulf.node.replay import replaying
from wulf.stats.prediction import network
from wulf.stats.prediction.replayed import Replayed

SIDE, ROUNDS = 32, 7
QUICK = (8, 3)
MORE = 20
EVENTS_A_SECOND = 5e6
SECONDS = 1.0
#: Ranks that SMPI is compared on several times.
SMPI_SIDE, SMPI_ROUNDS, SLOWER = 8, 3, 10.0


def replayed(trace: Path, networks: int = 1) -> tuple[Replayed, float]:
    """Return what the replay says event by event, and what it takes for it [s]."""
    begin = time.perf_counter()
    found = replaying.replay(trace, [NETWORK] * networks, nodes=[], options=["--engine", "events"])
    return found, time.perf_counter() - begin


def speed(trace: Path, ranks: int, rounds: int) -> list[Figure]:
    """Measure one replay, and what more of them add."""
    replayed(trace)  # it is built
    whole, each = [], []
    events = 0
    for _ in range(rounds):
        found, once = replayed(trace)
        _, often = replayed(trace, 1 + MORE)
        events = found.contended[0].events
        whole.append(once)
        each.append((often - once) / MORE / events)
    took, event = statistics.median(whole), statistics.median(each)
    print(
        f"  {ranks} ranks × {ITERATIONS} iterations, {events} events: {took:.3f} s ({min(whole):.3f} to "
        f"{max(whole):.3f}) from file to result; {1e-6 / event:.2f} M events/s "
        f"({1e-6 / max(each):.2f} to {1e-6 / min(each):.2f})"
    )
    return [
        Figure(name=f"seconds-{ranks}", value=took, goal=SECONDS),
        Figure(name="of-5M-events/s", value=EVENTS_A_SECOND * event, goal=1.0),
    ]


def beside_smpi(directory: Path, side: int, rounds: int) -> Figure | None:
    """Run both by turns; None where SMPI does not finish."""
    ranks = side * side
    trace = made(directory / "stencil.wtrace", ranks, stencil(side, ITERATIONS))
    there, here, apart = [], [], 0.0
    for _ in range(rounds):
        # Its algorithms of collectives are then those that ours are, as bench/peers.py says.
        found = smpi(trace, ranks, "ompi", Budget(LIMIT_S))
        if isinstance(found, str):
            print(f"  SMPI {found} on {ranks} ranks: no ratio")
            return None
        ours, took = replayed(trace)
        there.append(found[1])
        here.append(took)
        apart = found[0] / (ours.contended[0].times_ns[0] * 1e-9) - 1
    slower = statistics.median(there) / statistics.median(here)
    print(
        f"  {ranks} ranks: SMPI {statistics.median(there):.2f} s, engine B {1e3 * statistics.median(here):.0f} ms, "
        f"{slower:.0f} times; predictions {apart:+.1%} apart"
    )
    return Figure(name=f"{SLOWER:.0f}-times-faster-{ranks}", value=SLOWER / slower, goal=1.0)


def failing(directory: Path) -> Figure:
    """Replay the programs at which others fail; the figure is how many of them are not taken."""
    refused = 0
    for number, (what, fill) in enumerate(FAILURES.items()):
        trace = made(directory / f"f{number}.wtrace", 4, fill)
        try:
            one = replayed(trace)[0].contended[0]
            said = f"{1e-3 * one.times_ns[0]:.1f} µs, {one.moved} messages came earlier than as recorded"
        except TraceError as error:
            said, refused = f"refused: {error}", refused + 1
        print(f"  {what}: {said}")
    return Figure(name="failures", value=float(refused), goal=0.0)


def differing(directory: Path, trace: Path) -> Figure:
    """Count seeds of which a second replay prints other bytes."""
    networks = directory / "networks"
    networks.write_text(network.text([NETWORK]))
    argv = [str(replaying.program()), str(trace), str(networks), "--engine", "events", "--seed"]
    printed = [
        [subprocess.run([*argv, seed], capture_output=True, check=True).stdout for _ in range(2)]
        for seed in ("1", "2", "3")
    ]
    return Figure(name="differing", value=float(sum(one != other for one, other in printed)), goal=0.0)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    side, rounds = QUICK if "--quick" in arguments else (SIDE, ROUNDS)
    with tempfile.TemporaryDirectory(prefix="wulf-engine-b-") as name:
        directory = Path(name)
        trace = made(directory / "large.wtrace", side * side, stencil(side, ITERATIONS))
        figures = speed(trace, side * side, rounds)
        figures += [differing(directory, trace), failing(directory)]
        if shutil.which("smpirun") is None:
            print("  smpirun is not installed (Debian: libsimgrid-dev): no ratio")
        else:
            compared = [beside_smpi(directory, SMPI_SIDE, SMPI_ROUNDS)]
            if "--quick" not in arguments:
                compared.append(beside_smpi(directory, SIDE, 1))
            figures += [one for one in compared if one is not None]
    return finish("engine-b", figures)
