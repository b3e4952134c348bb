"""Large traces in seconds: a 2-D stencil with a small reduction, as numpy arrays.

``python -m bench.traces RANKS ITERATIONS FILE [--bytes N]`` writes one and says how many operations it has.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wulf.base.trace.layout import RECORD, Kind
from wulf.base.trace.writer import StreamWriter, write_container

#: The reduction at the end of each iteration [B].
REDUCED_BYTES = 8
#: What a rank computes in an iteration: exponential around that, at least a tenth of it [ns].
COMPUTE_NS = 200_000


@dataclass(frozen=True)
class Stencil:
    """Ranks on a torus: each sends to its four neighbours and receives from them, waits, and reduces.

    Attributes
    ----------
    ranks
        A power of four: the torus is square.
    bytes
        Of each message.
    """

    ranks: int
    iterations: int
    bytes: int = 4096

    @property
    def rounds(self) -> int:
        """Exchanges of a rank in a reduction by recursive doubling."""
        return int(math.log2(self.ranks))

    @property
    def messages(self) -> int:
        """Messages sent and received, those of the reductions included."""
        return self.ranks * self.iterations * (8 + 2 * self.rounds)

    @property
    def operations(self) -> int:
        """The same and what is computed (calc), as LogGOPSim counts: once an iteration, and in each round."""
        return self.messages + self.ranks * self.iterations * (1 + self.rounds)

    @property
    def records(self) -> int:
        """Records of the trace: four receives and four sends that are begun, eight waits, a reduction."""
        return self.ranks * self.iterations * 17

    def write(self, path: Path, seed: int = 1) -> None:
        """Write the trace."""
        side = math.isqrt(self.ranks)
        if side * side != self.ranks or side & (side - 1):
            raise ValueError(f"{self.ranks} ranks: not a power of four")
        streams = []
        for rank in range(self.ranks):
            stream = StreamWriter(rank, self.ranks)
            stream.extend(self._rank(rank, side, np.random.default_rng((seed, rank))))
            streams.append(stream.finish(self.iterations * COMPUTE_NS))
        write_container(path, {"command": f"stencil of {self.ranks} ranks"}, streams)

    def _rank(self, rank: int, side: int, random: np.random.Generator) -> NDArray[np.void]:
        x, y = rank % side, rank // side
        beside = [
            ((x + dx) % side) + ((y + dy) % side) * side for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        once = np.zeros(17, dtype=RECORD)
        once["kind"] = [Kind.IRECV] * 4 + [Kind.ISEND] * 4 + [Kind.WAIT] * 8 + [Kind.ALLREDUCE]
        # What goes east comes from the west of who gets it: a tag for each direction tells two ways apart.
        once["peer"] = [*beside, *beside, *beside, *beside, -1]
        once["tag"] = [1, 0, 3, 2, 0, 1, 2, 3, 1, 0, 3, 2, 0, 1, 2, 3, 0]
        once["request"] = [*range(1, 9), *range(1, 9), 0]
        once["bytes"] = [self.bytes] * 8 + [0] * 8 + [REDUCED_BYTES]
        records = np.tile(once, self.iterations)
        computed = random.exponential(0.9 * COMPUTE_NS, self.iterations) + 0.1 * COMPUTE_NS
        records["compute_ns"][::17] = computed.astype(np.uint32)
        return records


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", type=int)
    parser.add_argument("iterations", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--bytes", type=int, default=4096)
    given = parser.parse_args()
    stencil = Stencil(given.ranks, given.iterations, given.bytes)
    stencil.write(given.file)
    print(
        f"{stencil.records} records, {stencil.messages} messages sent and received, {stencil.operations} operations"
    )


if __name__ == "__main__":
    main()
