"""How long the replay takes for its stages: it is asked itself (``wulf-replay --times``), on stencils of known size."""

from __future__ import annotations

import platform
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.traces import Stencil
from wulf.node.replay import replaying
from wulf.stats.prediction.network import Link, Network, Piece, text


class Plan(msgspec.Struct, frozen=True):
    """What the replay says of the trace."""

    operations: int
    computations: int
    steps: int
    bytes: int


class Times(msgspec.Struct, frozen=True):
    """One round through all stages [ns]."""

    vectors: str
    load_ns: float
    plan_ns: float
    evaluate_ns: float
    paths_ns: float
    curve_ns: float = 0.0
    lines: int = 0


@dataclass(frozen=True)
class Rounds:
    """What was said of one trace."""

    plan: Plan
    times: list[Times]

    @property
    def operations(self) -> int:
        """Sends, receives and computations (calc), as LogGOPSim counts."""
        return self.plan.operations + self.plan.computations


def network(latency_ns: float, faster: float = 1.0) -> Network:
    """Gigabit Ethernet, tuned, with another latency and a wire that is so many times as fast."""
    wire = (Piece(0, 0.0, 8.5 / faster),)
    link = Link(latency_ns, 65_536, (Piece(0, 4_000, 0.2),), (Piece(0, 4_500, 0.2),), wire)
    return Network(link, None, reduce_ns_per_byte=0.1)


#: Eight of them: one pass.
NETWORKS = [network(5_000.0 * (place + 1), place + 1) for place in range(8)]


def machine() -> str:
    """Return the machine's processor, as it names itself."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def rounds(
    stencil: Stencil,
    networks: Sequence[Network],
    count: int,
    options: Sequence[str] = (),
) -> Rounds:
    """Write a stencil's trace and ask the replay, so many times."""
    with tempfile.TemporaryDirectory(prefix="wulf-replay-") as name:
        trace, file = Path(name, "stencil.wtrace"), Path(name, "networks")
        stencil.write(trace)
        file.write_text(text(networks))
        argv = [str(replaying.program()), str(trace), str(file), "--times", str(count), *options]
        printed = subprocess.run(argv, capture_output=True, check=True).stdout.splitlines()
    plan = msgspec.json.decode(printed[0], type=Plan)
    found = Rounds(plan, [msgspec.json.decode(line, type=Times) for line in printed[1:]])
    if found.operations != stencil.operations:
        raise SystemExit(f"bench: {found.operations} operations were made of {stencil.operations}")
    return found


def said(stencil: Stencil) -> str:
    """Return what it is, in words."""
    return f"{stencil.ranks} ranks × {stencil.iterations} iterations, {stencil.bytes} B to each neighbour"
