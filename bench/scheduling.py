"""What choosing the next launch costs in a large run of 1,984 operations and pairs, early in it and late.

The launches themselves are made up and take no time; what is timed is all that a run does between two of them, but
for writing to the disk. Goals: it does not grow with the launches that were made (at most 1.5 times as long), and
takes less than a hundredth of the shortest launch there is (0.5 s: starting a probe, looking at two nodes).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, cast

from bench.common import Figure, finish
from wulf import __version__
from wulf.base.records import (
    SCHEMA_VERSION,
    Cell,
    Launch,
    LaunchResult,
    Manifest,
    Operation,
    Part,
    Place,
    Plan,
    Sample,
    Workload,
)
from wulf.base.store import Writer
from wulf.node.measuring import loop
from wulf.node.probe.budget import Fit
from wulf.node.probe.schedule import LaunchPlan

NODES = 32
OPS = ("mpi_pingpong", "tcp_rr", "udp_rr", "tcp_stream")
SIZES = [64, 1024, 65536]
LAUNCHES, QUICK_LAUNCHES = 5000, 1000
SHORTEST_LAUNCH_S = 0.5
AIMED_SHARE = 0.01


class EnoughError(Exception):
    """So many launches were made."""


class Memory:
    """Takes what a run writes."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest

    def append(self, _: LaunchResult) -> None:
        """Keep nothing: the session itself does."""


class Silent:
    """Shows nothing."""

    def stage(self, text: str) -> None:
        """Announce nothing."""

    def launched(self, state: loop.State) -> None:
        """Show nothing."""

    def fits(self, plan: Plan, fit: Fit, spent_s: float) -> None:
        """Say nothing."""

    def paused(self, until_next_s: float, spent_s: float, left_s: float) -> None:
        """Show nothing."""


class Launcher:
    """Makes launches up, and notes the time between two of them."""

    def __init__(self, launches: int) -> None:
        self.between_s: list[float] = []
        self._left = launches
        self._ended = time.perf_counter()

    def __call__(self, plan: LaunchPlan) -> LaunchResult:
        """Return a launch that took no time; every fifth one is half as slow again."""
        self.between_s.append(time.perf_counter() - self._ended)
        self._left -= 1
        if self._left < 0:
            raise EnoughError
        result = LaunchResult(
            launch=_launch(plan),
            samples=[
                _sample(plan, place, size)
                for place in list[Place](plan.pairs) or [plan.place]
                for size in plan.sizes_bytes
            ],
        )
        self._ended = time.perf_counter()
        return result


def _launch(plan: LaunchPlan) -> Launch:
    return Launch(
        id=plan.id,
        index=plan.index,
        op=plan.op,
        place=plan.place,
        pairs=plan.pairs,
        setting=plan.setting,
        purpose=plan.purpose,
        sizes_bytes=plan.sizes_bytes,
        seed=plan.seed,
        started_at="2026-01-01T00:00:00.000+00:00",
        duration_s=SHORTEST_LAUNCH_S,
        status="ok",
        error=None,
        argv=[],
        probe=None,
        context=[],
        contamination=[],
    )


def _sample(plan: LaunchPlan, place: Place, size: int) -> Sample:
    value = 20_000 + size + 10_000 * (plan.index % 5 == 0) + plan.seed % 1000
    return Sample(
        launch=plan.id,
        cell=Cell(op=plan.op, size_bytes=size, place=place),
        timing="iteration",
        divisor=2.0,
        iterations=300,
        batch_iterations=50,
        histogram=[(value, 200), (value + 50, 100)],
        min_ns=value,
        max_ns=value + 50,
        batch_medians_ns=[float(value)] * 5,
        warmup_medians_ns=[float(value)],
        warmup_settled=True,
    )


def ping_pong(name: str, transport: Literal["net", "mpi"], *, lossy: bool = False) -> Operation:
    """Return an operation of two ranks that says nothing of itself but its name."""
    return Operation(
        name=name,
        transport=transport,
        ranks=2,
        pattern="ping-pong",
        axis="message size",
        axis_unit="B",
        quantity="half round trip",
        better="lower",
        moves_bytes=True,
        usual=1,
        divisor=2.0,
        timing="iteration",
        min_size_bytes=0,
        max_size_bytes=1 << 24,
        lossy=lossy,
        summary="",
    )


def manifest(
    nodes: int, ops: Sequence[str], sizes_bytes: list[int], transport: Literal["net", "mpi"], *, at_once: bool
) -> Manifest:
    """Return a run of all pairs that is begun."""
    pairs: list[Place] = list(itertools.combinations([f"node{number:04}" for number in range(nodes)], 2))
    plan = Plan(
        workload=Workload(
            parts=[Part(op=op, sizes_bytes=sizes_bytes, places=pairs) for op in ops],
            sweeps=5,
            visit_us=1000,
            at_once=at_once,
        ),
        ladder="named",
        max_size_bytes=max(sizes_bytes),
        precision=0.02,
        confidence=0.95,
        budget_s=1e7,
        min_launches=6,
        max_launches=40,
        seed=1,
    )
    operations = [ping_pong(op, transport) for op in ops]
    return Manifest(
        schema_version=SCHEMA_VERSION,
        id="scheduling",
        created_at="",
        updated_at="",
        status="running",
        wulf_version=__version__,
        command_line=[],
        plan=plan,
        operations=operations,
        cluster="",
        software={},
    )


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    launches = QUICK_LAUNCHES if "--quick" in arguments else LAUNCHES
    launcher = Launcher(launches)
    session = loop.Session(
        cast("Writer", Memory(manifest(NODES, OPS, SIZES, "net", at_once=False))), [], launcher, Silent()
    )
    with suppress(EnoughError):
        session.measure()
    fifth = launches // 5
    early, late = (sum(times) / fifth for times in (launcher.between_s[:fifth], launcher.between_s[-fifth:]))
    print(f"  {len(OPS) * NODES * (NODES - 1) // 2} operations and pairs, {launches} launches")
    print(f"  between two launches: {early * 1e3:.2f} ms in the first fifth, {late * 1e3:.2f} ms in the last")
    return finish(
        "scheduling",
        [
            Figure(name="late-by-early", value=late / early, goal=1.5),
            Figure(name="share-of-a-launch", value=late / SHORTEST_LAUNCH_S, goal=AIMED_SHARE),
        ],
    )
