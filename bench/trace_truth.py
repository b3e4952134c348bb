"""Whether a trace, replayed on the calibrated network that the program ran on, gives the program's own run time.

Nineteen small programs, one for each feature of MPI, that do nothing but call it, thousands of times, on two virtual
nodes (a network of 1 Gbit/s); each launch is traced. In each round comes one launch of every operation of the
calibration, and one of every program. Nothing is fitted to the programs: the model's time alone is held against the own
time of the very launch that was traced, within the interval for one launch. Goals: at least 93 % of
launches inside, median error at most 3 % on a calm machine.

`--rounds=N` (8), `--quick` (3), `--keep=DIRECTORY` and `--from=DIRECTORY` as of `bench accuracy`.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from bench.accuracy import Bench, how_many, judging, option, rounds_of
from bench.accuracy.launching import Starter
from bench.accuracy.networks import BASE, Networks
from bench.common import Figure, finish, pair
from wulf.base.native import build
from wulf.node import lab

ROUNDS, QUICK_ROUNDS = 8, 3
SOURCE = Path(__file__).parents[1] / "tests" / "native" / "traced.c"
#: Program → how often it is made: some tenths of a second.
TIMES = {
    "blocking": 2000,
    "modes": 2000,
    "nonblocking": 1500,
    "waitany": 3000,
    "waitsome": 3000,
    "testany": 3000,
    "testsome": 3000,
    "test": 2000,
    "farm": 1200,
    "persistent": 2500,
    "groups": 150,
    "mesh": 300,
    "graph": 300,
    "variable": 1500,
    "usual": 1000,
    "in_place": 2000,
    "begun": 1500,
    "types": 3000,
    "probes": 2500,
}


def measure(directory: Path, rounds: int) -> None:
    """Measure the network and all programs, round after round."""
    mpi = build.find_mpi("openmpi")[0]
    with pair() as nodes:
        raised = lab.current()
        assert raised is not None
        network, starter = Networks(nodes, raised), Starter(nodes, mpi)
        program = starter.built(SOURCE)
        words = {name: [program, name, str(times)] for name, times in TIMES.items()}
        rounds_of(directory, rounds, [BASE], words, Bench(network, starter, mpi.compiler))


def judge(directory: Path) -> int:
    """Print for each program how far the model is off, and the last line."""
    measured = judging.load(directory)
    found = [row for row, _ in judging.as_it_is(measured)]
    for program in measured.programs:
        mine = [row for row in found if row.program == program]
        ratios = [row.error + 1 for row in mine]
        one = mine[len(mine) // 2].predicted
        low, high = one.launch.low or 0.0, one.launch.high or 0.0  # type: ignore[union-attr]
        print(
            f"  {program:12s} own {1e3 * statistics.median(row.median for row in mine):7.1f} ms "
            f"({1e3 * min(row.median for row in mine):.1f} to {1e3 * max(row.median for row in mine):.1f}); model "
            f"{1e3 * one.time.value:7.1f} (a launch {1e3 * low:.1f} to {1e3 * high:.1f}); ÷ own "
            f"{statistics.median(ratios):.3f}; {sum(row.launches_inside for row in mine)} of {len(mine)} inside"
        )
    outside = 1 - sum(row.launches_inside for row in found) / len(found)
    error = statistics.median(abs(row.error) for row in found)
    return finish(
        "trace-truth",
        [
            Figure(name="launches-outside", value=outside, goal=1 - judging.INSIDE),
            Figure(name="median-error", value=error, goal=judging.ERROR),
        ],
    )


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    stored = option(arguments, "from")
    if stored is not None:
        return judge(Path(stored))
    rounds = how_many(arguments, QUICK_ROUNDS if "--quick" in arguments else ROUNDS)
    with tempfile.TemporaryDirectory(prefix="wulf-truth-") as name:
        directory = Path(option(arguments, "keep") or name)
        measure(directory, rounds)
        return judge(directory)
