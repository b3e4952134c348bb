"""A whole prediction: a trace of 1e5 operations on nine networks with all draws, as `wulf program predict` makes it.

Sixteen ranks × 390 iterations of a stencil with a small sum, on a calibration made up for the tests; from the file to
the finished record, with both engines as they come. Without the time in which Python loads its modules.

Figure: seconds of one prediction, median of rounds (goal: at most 2). Processor time is printed beside it.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path

from bench.common import Figure, finish
from bench.replay import machine
from bench.traces import Stencil
from tests.unit.predict_fixture import calibrated_run
from wulf.base import networks
from wulf.base.store import Run
from wulf.node.replay import asking, predicting, replaying

GOAL_S = 2.0
ROUNDS, QUICK_ROUNDS = 9, 3
STENCIL = Stencil(16, 390)


def processor_s() -> float:
    """Return the processor time of this process and of all that it has waited for [s]."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def once(trace: Path, run: Run) -> tuple[float, float, int]:
    """Predict once; return seconds of the clock and of the processor, and how many operations there are."""
    request = asking.PredictRequest(
        source=trace, run=run, what_if=",".join(networks.networks()), engine="auto"
    )
    begin, used = time.monotonic(), processor_s()
    found = predicting.predict(request, lambda _: None)
    return time.monotonic() - begin, processor_s() - used, found.operations


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    replaying.program()
    with tempfile.TemporaryDirectory(prefix="wulf-whole-") as name:
        trace = Path(name) / "stencil.wtrace"
        STENCIL.write(trace)
        run = calibrated_run(Path(name) / "cal")
        once(trace, run)  # loads modules, and the file
        found = [once(trace, run) for _ in range(QUICK_ROUNDS if "--quick" in arguments else ROUNDS)]
    walls, used, operations = zip(*found, strict=True)
    print(
        f"  {machine()}; {operations[0]:,} operations, {len(networks.networks())} networks, 200 draws: "
        f"{statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), of the processor "
        f"{statistics.median(used):.2f} s"
    )
    return finish("predict-whole", [Figure(name="s", value=statistics.median(walls), goal=GOAL_S)])
