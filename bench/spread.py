"""How far apart ten reported latencies are while other processes keep both CPUs busy, raw and adjusted.

Ten runs of ``wulf measure`` of 1 B between two virtual nodes, each beside another load on both CPUs (steady loops,
loops that come and go, copying of memory), and two on the quiet host, before and after: their mean is the truth.
Adjusted figures are those at the reference of the quiet runs, and all runs together tell how times follow it; where
nothing is adjusted, the answer is the raw figure.
Goals: largest ÷ smallest adjusted answer <= 1.15, and the truth is within the interval of all but one of ten at most
(an interval of 95 % misses one of twenty). The raw spread is shown beside.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import common
from wulf.base import store
from wulf.base.records import Estimate
from wulf.node.measuring.analysis import measuring
from wulf.stats import estimate

SIZE = 1
#: What keeps a CPU busy.
LOADS = {
    "steady": "while :; do :; done",
    "comes and goes": "while :; do timeout --foreground 0.$((RANDOM % 8 + 1)) sh -c 'while :; do :; done'; "
    "sleep 0.$((RANDOM % 8 + 1)); done",
    "memory": "exec dd if=/dev/zero of=/dev/null bs=16M status=none",
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one run says."""

    raw: Estimate
    #: None where nothing was adjusted.
    adjusted: Estimate | None
    #: Median over the launches [s].
    reference_s: float

    @property
    def best(self) -> Estimate:
        """The adjusted figure where there is one."""
        return self.adjusted or self.raw


@contextmanager
def busy(load: str) -> Iterator[None]:
    """Keep every CPU of this machine busy with a process, and those that it starts."""
    loops = [
        subprocess.Popen(["taskset", "-c", str(cpu), "bash", "-c", load], start_new_session=True)
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for loop in loops:
            os.killpg(loop.pid, 9)
            loop.wait()


def measure(runs: Path, name: str) -> None:
    """Make one run of the latency at 1 B."""
    ladder = ("--ladder", "adaptive", "--max-size", str(SIZE))
    common.measured(runs, name, "--ops", "mpi_pingpong", *ladder, "--budget", "25s")


def answers(paths: list[Path], quiet: int) -> list[Answer]:
    """Return what runs say at the reference of the first `quiet` of them, all launches telling how to get there."""
    runs = [store.load(path) for path in paths]
    evidence = [measuring(run.results) for run in runs]
    references = [
        statistics.median(result.reference_s for result in results if result.reference_s is not None)
        for results in evidence
    ]
    measured = [
        estimate.Measured(run.require_analysis().cells, results, run.manifest.plan)
        for run, results in zip(runs, evidence, strict=True)
    ]
    found = []
    adjusted = estimate.adjust_all(measured, statistics.fmean(references[:quiet]))
    for cells, reference_s in zip(adjusted, references, strict=True):
        cell = next(cell for cell in cells if cell.cell.size_bytes == SIZE)
        taken = cell.adjusted.time if cell.adjusted else None
        found.append(Answer(raw=cell.time, adjusted=taken, reference_s=reference_s))
    return found


def show(name: str, said: Answer) -> None:
    """Print one answer."""
    words = [
        f"{what} {one.value * 1e6:.2f} ({(one.low or 0) * 1e6:.2f} to {(one.high or 0) * 1e6:.2f}) µs"
        if one
        else f"not {what}"
        for what, one in (("raw", said.raw), ("adjusted", said.adjusted))
    ]
    print(
        f"  {name:24s} {'; '.join(words)}; {said.raw.n} launches; reference {said.reference_s * 1e6:.2f} µs"
    )


def holds(one: Estimate, truth_s: float) -> bool:
    """Whether an interval is there and has the truth in it."""
    return one.low is not None and one.high is not None and one.low <= truth_s <= one.high


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    count = 3 if "--quick" in arguments else 10
    kinds = list(LOADS)
    loads = [kinds[number % len(kinds)] for number in range(count)]
    with common.pair(), tempfile.TemporaryDirectory(prefix="wulf-spread-") as directory:
        runs = Path(directory)
        measure(runs, "before")
        for number, load in enumerate(loads):
            with busy(LOADS[load]):
                measure(runs, f"busy{number:02d}")
        measure(runs, "after")
        names = ["before", "after", *(f"busy{number:02d}" for number in range(count))]
        said = answers([runs / name for name in names], quiet=2)
    for name, one in zip(["quiet, before", "quiet, after", *loads], said, strict=True):
        show(name, one)
    quiet, loaded = said[:2], said[2:]
    truth_s = statistics.fmean(one.best.value for one in quiet)
    at_s = statistics.fmean(one.reference_s for one in quiet)
    spreads = {
        what: max(values) / min(values)
        for what, values in (
            ("raw", [one.raw.value for one in loaded]),
            ("adjusted", [one.best.value for one in loaded]),
        )
    }
    missed = sum(not holds(one.best, truth_s) for one in loaded)
    raw_missed = sum(not holds(one.raw, truth_s) for one in loaded)
    print(f"  quiet {truth_s * 1e6:.2f} µs at a reference of {at_s * 1e6:.2f} µs")
    print(f"  raw: spread {spreads['raw']:.3f}, {raw_missed} of {count} intervals miss the quiet answer")
    return common.finish(
        "spread",
        [
            common.Figure(name="adjusted", value=spreads["adjusted"], goal=1.15),
            common.Figure(name="missed", value=missed / count, goal=0.1),
        ],
    )
