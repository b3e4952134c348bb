"""What ``wulf program run`` adds to a command: the run time that it says against that of the same command started bare.

Commands that take next to nothing, 0.2 s and 2 s, and one that computes; each started by turns, in random order, as a
launch starts it (transport of this machine, time taken by the node's shell) and by a plain shell whose whole life is
timed. Goal: at most 1 % or 20 ms of a command more, whichever is larger; the figure is the worst difference ÷ that.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from collections.abc import Callable

from bench.common import Figure, finish
from wulf.base.contracts import Transport
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.probe import command
from wulf.stats.core import intervals

COMMANDS = (
    "true",
    "sleep 0.2",
    "sleep 2",
    "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done",
)
ROUNDS = 30
SHARE, LEAST_S = 0.01, 0.020


def bare(text: str) -> float:
    """Return the run time of a command in a shell [s]."""
    begin = time.perf_counter()
    subprocess.run(["sh", "-c", text], check=True)
    return time.perf_counter() - begin


def launched(transport: Transport, node: str, text: str) -> float:
    """Return the run time that a launch says [s]."""
    return command.run_time_s(command.run(transport, node, text, {}))


def compared(transport: Transport, node: str, text: str, rounds: int) -> Figure:
    """Measure both by turns; the difference as a share of what is allowed."""
    order = random.Random(text)
    arms: tuple[Callable[[], float], ...] = (
        lambda: bare(text),
        lambda: launched(transport, node, text),
    )
    pairs = []
    for _ in range(rounds):
        turns = [0, 1]
        order.shuffle(turns)
        times = {arm: arms[arm]() for arm in turns}
        pairs.append((times[0], times[1]))
    usual_s = statistics.median(first for first, _ in pairs)
    allowed_s = max(SHARE * usual_s, LEAST_S)
    more = intervals.median([second - first for first, second in pairs], 0.95)
    bounds = [None if bound is None else 1e3 * bound for bound in (more.low, more.high)]
    print(
        f"  {text[:40]}: {1e3 * usual_s:.1f} ms bare, {1e3 * more.value:+.2f} ms "
        f"({bounds[0]:.2f} to {bounds[1]:.2f}) with wulf, {1e3 * allowed_s:.0f} ms allowed"
    )
    return Figure(name=text.partition(";")[0].replace(" ", "-"), value=more.value / allowed_s, goal=1.0)


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    config = inventory.local()
    transport = open_transport(config)
    try:
        rounds = 8 if "--quick" in arguments else ROUNDS
        figures = [compared(transport, config.nodes[0], text, rounds) for text in COMMANDS]
    finally:
        transport.close()
    return finish("app-overhead", figures)
