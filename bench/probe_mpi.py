"""The MPI probe against a bare loop in C and against NetPIPE, on the same pair, with the same library.

Goals: the probe's median half round trip ÷ the bare loop's median <= 1.02 at 1 B and 64 KiB, and ÷
NetPIPE's best value <= 1.05. NetPIPE reports the best of several averages, which flatters it; the probe's
median does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from bench import common
from wulf.errors import ProbeError
from wulf.probe import build, parse
from wulf.stats.quantiles import weighted_quantile

SIZES = (1, 65536)
BARE = Path(__file__).parent / "native" / "pingpong_bare.c"
#: As many iterations as the probe makes in 20 visits of 2 ms at about 10 µs.
ITERATIONS = 2000


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


def bare(pair: common.Pair, mpi: build.MpiLibrary, program: str) -> Callable[[], dict[str, float]]:
    """Return the arm that launches the bare loop."""
    arguments = [str(ITERATIONS), *map(str, SIZES)]

    def run() -> dict[str, float]:
        lines = pair.mpirun(mpi, program, arguments).splitlines()
        said = json.loads(next(line for line in lines if line.startswith("{")))
        return {f"{size} B": said[str(size)] for size in SIZES}

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
        program = pair.install(build.build(mpi).path)
        arms = {
            "probe": probe(pair, mpi, program),
            "bare loop": bare(pair, mpi, pair.install(common.compile_mpi(BARE, mpi))),
            "NetPIPE": netpipe(pair, mpi, their),
        }
        print(
            f"{rounds} rounds of one launch each, in random order; {mpi.version}; {' – '.join(common.PAIR)}"
        )
        values = common.interleave(arms, rounds)
    common.show(values, "µs", 1e6)
    goals = {"bare loop": 1.02, "NetPIPE": 1.05}
    return common.finish(
        "probe-mpi",
        [
            common.ratio(
                f"{size}B/{other.replace(' ', '-')}", values["probe"][f"{size} B"], numbers, goals[other]
            )
            for other in values
            if other != "probe"
            for size in SIZES
            for numbers in [values[other][f"{size} B"]]
        ],
    )
