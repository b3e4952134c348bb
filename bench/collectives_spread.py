"""How far launches of a broadcast to four ranks are apart: begun at a common time, and begun with a barrier.

Four virtual nodes, ten launches of each in turn, at 8 B and 64 KiB. Common start: of each launch the median over the
broadcasts of the time from the common start to the last rank's end. Barrier: of each launch the mean over the
broadcasts of the longest time of a rank since the barrier, as other benchmarks print it. The spread is the largest
launch ÷ the smallest one.

Goal: at both sizes the spread with a common start is no larger than that of the barrier-started mean.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence

from bench.common import Figure, finish
from bench.tune_lab import Scene, raised
from wulf.base.records import Sample
from wulf.base.store import load

NODES, LAUNCHES = 4, 10
SIZES = (8, 64 << 10)
CLOCK, BARRIER = "mpi_bcast", "mpi_bcast_barrier"


def median_s(sample: Sample) -> float:
    """Return the median of a launch's visits' medians."""
    return statistics.median(sample.batch_medians_ns) * 1e-9


def mean_s(sample: Sample) -> float:
    """Return the mean over all broadcasts of a launch."""
    count = sum(number for _, number in sample.histogram)
    return sum(value * number for value, number in sample.histogram) / count * 1e-9


def measured(scene: Scene) -> dict[tuple[str, int], list[float]]:
    """Measure both in turn; return one value of each launch, by operation and size."""
    words = ("--min-launches", str(LAUNCHES), "--max-launches", str(LAUNCHES), "--budget", "5m")
    plan = scene.directory / "plan.toml"
    sizes = ", ".join(map(str, SIZES))
    plan.write_text(
        'title = "broadcast"\n'
        + "".join(f'[[experiment]]\nop = "{op}"\nsizes = [{sizes}]\n' for op in (CLOCK, BARRIER)),
        encoding="utf-8",
    )
    scene.wulf("measure", "--run", "spread", "--cluster", "lab", "--plan", str(plan), *words)
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for result in load(scene.directory / "runs" / "spread").results:
        for sample in result.samples if result.launch.purpose == "measure" else []:
            value = median_s if sample.cell.op == CLOCK else mean_s
            found[sample.cell.op, sample.cell.size_bytes].append(value(sample))
    return found


def spread(values: Sequence[float]) -> float:
    """Return the largest ÷ the smallest."""
    return max(values) / min(values)


def main(_: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    with raised(None, NODES) as scene:
        values = measured(scene)
    figures = []
    for size in SIZES:
        both = {op: values[op, size] for op in (CLOCK, BARRIER)}
        for op, launches in both.items():
            shown = ", ".join(f"{value * 1e6:.1f}" for value in launches)
            print(f"  {op:18} {size:6} B  spread {spread(launches):.3f}  of {shown} µs")
        figures.append(
            Figure(name=f"{size}B/barrier", value=spread(both[CLOCK]) / spread(both[BARRIER]), goal=1.0)
        )
    return finish("collectives-spread", figures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
