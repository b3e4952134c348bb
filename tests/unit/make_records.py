"""Small whole records for the tests of this folder."""

from __future__ import annotations

import random

from wulf.base.records import (
    SCHEMA_VERSION,
    Cell,
    Launch,
    LaunchResult,
    Manifest,
    NodeContext,
    NodeRecord,
    Operation,
    Part,
    Plan,
    Sample,
    Workload,
)

PAIR = ("node01", "node02")


def operation(name="mpi_pingpong", transport="mpi", largest=4 << 20):
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
        max_size_bytes=largest,
        lossy=False,
        summary="ping-pong",
    )


def workload(ops=("mpi_pingpong",), pairs=(PAIR,), sizes_bytes=(64, 128, 256), places=None, **changes):
    """Return a workload: every operation between the pairs at the sizes, unless `places` names who takes part."""
    own = places or {}
    parts = [
        Part(op=op, sizes_bytes=list(sizes_bytes), places=list(own.get(op, pairs)), group=op in own)
        for op in ops
    ]
    return Workload(**dict(parts=parts, sweeps=5, visit_us=2000) | changes)


def plan(**changes):
    of_workload = ("ops", "pairs", "sizes_bytes", "places", "sweeps", "visit_us", "at_once", "reference_us")
    values = dict(
        workload=workload(**{name: changes.pop(name) for name in of_workload if name in changes}),
        ladder="rfc2544",
        max_size_bytes=256,
        precision=0.02,
        confidence=0.95,
        budget_s=60.0,
        min_launches=6,
        max_launches=40,
        seed=1,
    )
    return Plan(**values | changes)


def manifest(**changes):
    values = dict(
        schema_version=SCHEMA_VERSION,
        id="test",
        created_at="2026-11-21T08:00:00+00:00",
        updated_at="2026-11-21T08:00:00+00:00",
        status="running",
        wulf_version="0.1.0",
        command_line=["wulf", "measure"],
        plan=plan(),
        operations=[operation()],
        cluster='[cluster]\nnodes = "node[01-02]"\n',
        software={"python": "3.11"},
    )
    return Manifest(**values | changes)


def node(name="node01"):
    return NodeRecord(node=name, reachable=True, facts={"kernel": "6.1"}, unknown={"driver": "no ethtool"})


def sample(index=0, size=64, half_us=10.0, pair=PAIR, op="mpi_pingpong", spread=0.02, seed=0):
    random_ = random.Random(f"{seed}:{index}:{size}:{op}")
    middle = half_us * random_.gauss(1, spread)
    visits = [2000 * middle * random_.gauss(1, spread / 4) for _ in range(5)]
    histogram = [(round(visit), 20) for visit in sorted(visits)]
    return Sample(
        launch=f"{index:05d}",
        cell=Cell(op=op, size_bytes=size, place=pair),
        timing="iteration",
        divisor=2.0,
        iterations=100,
        batch_iterations=20,
        histogram=histogram,
        min_ns=histogram[0][0],
        max_ns=histogram[-1][0],
        batch_medians_ns=visits,
        warmup_medians_ns=[visits[0] * 1.2, visits[0]],
        warmup_settled=True,
    )


def result(index=0, sizes=(64, 128, 256), status="ok", pair=PAIR, op="mpi_pingpong", purpose="measure"):
    samples = [sample(index, size, 10 + size / 100, pair, op) for size in sizes] if status == "ok" else []
    launch = Launch(
        id=f"{index:05d}",
        index=index,
        op=op,
        place=pair,
        setting="default",
        purpose=purpose,
        sizes_bytes=list(sizes),
        seed=index,
        started_at="2026-11-21T08:00:00+00:00",
        duration_s=1.0,
        status=status,
        error=None if status == "ok" else "node02: it is gone",
        argv=["mpirun"],
        probe=None,
        context=[NodeContext(node=name) for name in pair],
        contamination=[],
    )
    return LaunchResult(launch=launch, samples=samples)
