"""The MPI probe's loop against a bare loop in the same launch, and the probe against NetPIPE on the same pair.

Bare loop: MPI_Send and MPI_Recv, nothing else, timed as a whole by MPI_Wtime. The probe's own object files measure it
and their own ping-pong in turn, visit by visit in random order (bench/native/paired), so that what the host does
to one it does to the other. Of each launch the median ratio of neighbouring visits; the interval is that of the
launches' pseudo-median. Goal: <= 1.01 at 1 B and 64 KiB, and the interval within ± 0.005. The bare loop
against itself is shown beside: its interval must hold 1.

The probe's median half round trip ÷ NetPIPE's best value, launches in turn: goal <= 1.05. NetPIPE reports the best
of several averages, which flatters it; the probe's median does not.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bench import common
from wulf.base.errors import ProbeError
from wulf.base.native import build
from wulf.node.probe import parse
from wulf.stats.core.quantiles import weighted_quantile

SIZES = (1, 65536)
SOURCE = Path(__file__).parent / "native" / "paired"
PAIRED = "paired"
ARMS = ("probe", "bare", "again")
#: Length of a visit of the paired program. So short that most of them are not interrupted on a busy host; the loop is
#: the same however often it turns.
VISIT_US = 300
#: Blocks of a visit of each arm at each size in each launch.
BLOCKS = 1000
HALF_WIDTH = 0.005


def probe(pair: common.Pair, mpi: build.MpiLibrary, program: str) -> Callable[[], dict[str, float]]:
    """Return the arm that launches the probe."""
    arguments = ["--op", "mpi_pingpong", "--sizes", ",".join(map(str, SIZES)), "--sweeps", "20"]
    return lambda: cell_medians(pair.mpirun(mpi, program, arguments))


def cell_medians(output: str) -> dict[str, float]:
    """Medians [s] by size from what the probe printed."""
    result = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        said = parse.message(line.encode())
        if isinstance(said, parse.ErrorLine):
            raise ProbeError(said.message)
        if isinstance(said, parse.CellLine):
            values, counts = zip(*said.histogram, strict=True)
            result[f"{said.size} B"] = weighted_quantile(values, counts, 0.5) * 1e-9 / said.divisor
    return result


class Visits(msgspec.Struct, frozen=True):
    """What one launch of the paired program says of one size."""

    size: int
    iterations: int
    corrupt: int
    #: Arm and mean half round trip [ns], in the order of time; every three are one block.
    visits: list[tuple[str, float]]

    def ratio(self, arm: str, others: tuple[str, ...]) -> float:
        """An arm's time by that of others: median of the ratios of neighbours.

        Every ratio is of two visits of one block in random order. So its logarithm is distributed evenly around
        zero where the arms do not differ, however noisy the host; that of a visit and the mean of two others
        is not. The median, as on a busy host one visit in five takes several times as long.
        """
        size = len(ARMS)
        blocks = [dict(self.visits[begin : begin + size]) for begin in range(0, len(self.visits), size)]
        if self.corrupt or not blocks or any(set(block) != set(ARMS) for block in blocks):
            raise SystemExit(f"bench: {PAIRED} said what cannot be of {self.size} B")
        return math.exp(
            statistics.median(math.log(block[arm] / block[other]) for block in blocks for other in others)
        )


def visits(output: str) -> list[Visits]:
    """Read what the paired program printed, among what a launcher says."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    return [msgspec.json.decode(line, type=Visits) for line in lines]


def alternating(
    pair: common.Pair,
    mpi: build.MpiLibrary,
    program: str,
    op: str = "mpi_pingpong",
    sizes: Sequence[int] = SIZES,
    blocks: int = BLOCKS,
) -> Callable[[], dict[str, float]]:
    """Return the arm that launches the probe's loop of an operation and a bare loop in one."""
    seeds = itertools.count(1)

    def run() -> dict[str, float]:
        words = [op, VISIT_US, blocks, next(seeds), *sizes]
        result = {}
        for said in visits(pair.mpirun(mpi, program, [str(word) for word in words])):
            result[f"{said.size} B"] = said.ratio("probe", ("bare", "again"))
            result[f"{said.size} B, control"] = said.ratio("again", ("bare",))
        return result

    return run


def netpipe(pair: common.Pair, mpi: build.MpiLibrary, program: str) -> Callable[[], dict[str, float]]:
    """Return the arm that launches NetPIPE, once per size."""

    def run() -> dict[str, float]:
        result = {}
        for size in SIZES:
            arguments = ["-l", str(size), "-u", str(size + 1), "-p", "0", "-o", "/dev/null"]
            said = pair.mpirun(mpi, program, arguments)
            found = re.search(rf"^\s*\d+:\s+{size} bytes .* in\s+([\d.]+) usec", said, re.MULTILINE)
            if found is None:
                raise SystemExit(f"bench: NetPIPE printed no time for {size} B:\n{said}")
            result[f"{size} B"] = float(found[1]) * 1e-6
        return result

    return run


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    rounds = 6 if "--quick" in arguments else 30
    mpi = build.find_mpi("openmpi")[0]
    their = common.require("NPopenmpi", package="netpipe-openmpi")
    with common.pair() as pair:
        arms = {
            "probe": probe(pair, mpi, pair.install(build.build(mpi).path)),
            "NetPIPE": netpipe(pair, mpi, their),
            "alternating": alternating(pair, mpi, pair.install(common.build_mpi(SOURCE, PAIRED, mpi))),
        }
        print(
            f"{rounds} rounds of one launch each, in random order; {mpi.version}; {' – '.join(common.PAIR)}; "
            f"alternating: {BLOCKS} visits of {VISIT_US} µs of each loop at each size"
        )
        values = common.interleave(arms, rounds)
    ratios = values.pop("alternating")
    common.show(values, "µs", 1e6)
    for size in SIZES:
        control = common.shift("", ratios[f"{size} B, control"], 1)
        print(
            f"  the bare loop against itself at {size} B: {control.value:.4f}"
            f"  95 % interval {control.low:.4f} to {control.high:.4f}"
        )
    return common.finish(
        "probe-mpi",
        [
            *(common.shift(f"{size}B/bare-loop", ratios[f"{size} B"], 1.01, HALF_WIDTH) for size in SIZES),
            *(
                common.ratio(
                    f"{size}B/NetPIPE", values["probe"][f"{size} B"], values["NetPIPE"][f"{size} B"], 1.05
                )
                for size in SIZES
            ),
        ],
    )
