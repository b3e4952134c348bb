"""A study with planted effects, as it would have been run."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import msgspec

from wulf.tools.study import design, work
from wulf.tools.study.conclude import conclude
from wulf.tools.study.record import (
    DesignKind,
    Study,
    StudyFactor,
    StudyLevel,
    StudyManifest,
    StudyMetric,
    StudyPlan,
    StudyPrice,
    StudyPublished,
    StudyTrial,
)

FACTORS = [
    StudyFactor(
        name="MTU",
        levels=[StudyLevel(name="1500"), StudyLevel(name="9000", set={"nic.mtu": "9000"})],
    ),
    StudyFactor(
        name="BLAS", about="libraries", levels=[StudyLevel(name=name, blas=name) for name in ("a", "b", "c")]
    ),
]
METRICS = [
    StudyMetric(name="latency", kind="operation", op="tcp_rr", sizes_bytes=[64, 512, 1518], line=True),
    StudyMetric(name="HPL", kind="command", unit="GFLOPS", better="higher", command="./hpl", match="(.*)"),
]
#: Level → ratio of each metric; both of the two factors together bring INTERACTION more.
TRUE: Mapping[str, Mapping[str, float]] = {
    "latency": {"9000": 0.8, "b": 1.0, "c": 1.0},
    "HPL": {"9000": 1.1, "b": 1.5, "c": 0.7},
}
INTERACTION = 1.2


def plan(kind: DesignKind = "full", replications: int = 8) -> StudyPlan:
    made = design.combinations(FACTORS, kind)
    return StudyPlan(
        study="planted",
        title="What is planted",
        factors=FACTORS,
        metrics=METRICS,
        design=kind,
        cells=made.cells,
        aliases=made.aliases,
        replications=replications,
        budget_s=60.0,
        margin=0.02,
        seed=7,
        published=[
            StudyPublished(figure="latency 64 B", value=50e-6, note="then"),
            StudyPublished(figure="HPL", levels={"BLAS": "b"}, value=13.26),
            *(
                StudyPublished(figure=f"latency {n} B", of="Linux", value=2e-4 + 3e-7 * n)
                for n in (64, 512, 1518)
            ),
        ],
        prices=[StudyPrice(name="then", price=2490.0)],
        watts=900.0,
        left_out={"BLAS: d": "no BLAS library is called 'd'"},
        nodes=["node01", "node02"],
    )


def trials(of: StudyPlan, seed: int = 3, noise: float = 0.01) -> list[StudyTrial]:
    """Return the runs of a plan, with a drift and noise; the launches of a pair drift together."""
    order = random.Random(seed)
    found: list[StudyTrial] = []
    for turn in design.turns(len(of.cells), of.replications, of.seed):
        drift = 0.1 * math.sin(len(found) / 7)
        for is_base in [turn.base_first, not turn.base_first] if turn.cell else [True]:
            levels = of.levels_of(0 if is_base else turn.cell)
            found.append(
                StudyTrial(
                    index=len(found),
                    replication=turn.replication,
                    cell=turn.cell,
                    is_base=is_base,
                    started_at="2026-11-26T10:00:00+00:00",
                    wall_s=1.0,
                    values={
                        name: _true(metric.name, size, levels) * math.exp(drift + order.gauss(0, noise))
                        for metric in of.metrics
                        for name, size in metric.figures
                    },
                )
            )
    return found


def _true(metric: str, size: int, levels: Mapping[str, str]) -> float:
    base = 20e-6 + 1e-9 * size if metric == "latency" else 12.0
    for level in levels.values():
        base *= TRUE[metric].get(level, 1.0)
    together = levels["MTU"] == "9000" and levels["BLAS"] == "b" and metric == "HPL"
    return base * (INTERACTION if together else 1.0)


def manifest(of: StudyPlan, status: str = "complete") -> StudyManifest:
    return StudyManifest(
        schema_version=2,
        id="planted",
        created_at="2026-11-26T10:00:00+00:00",
        updated_at="2026-11-26T11:00:00+00:00",
        status=status,  # type: ignore[arg-type]
        wulf_version="0",
        command_line=["wulf", "study", "planted.toml"],
        operations=[],
        cluster="",
        software={},
        plan=of,
    )


def done(kind: DesignKind = "full", status: str = "complete") -> Study:
    of = plan(kind)
    return Study(
        schema_version=2, plan=of, result=conclude(manifest(of, status), trials(of)), run="runs/planted"
    )


def failing() -> Study:
    """Return a study that was cut short, of which one combination never worked."""
    of = plan("one at a time", 2)
    made = [one if one.is_base or one.cell != 1 else _failed(one) for one in trials(of)[:6]]
    return Study(schema_version=2, plan=of, result=conclude(manifest(of, "budget"), made), run="runs/planted")


def _failed(trial: StudyTrial) -> StudyTrial:
    return msgspec.structs.replace(
        trial, values={}, failures={"latency": "node01: silent", "HPL": "exit code 1"}, contamination=["load"]
    )


def planned() -> Study:
    of = plan()
    return Study(schema_version=2, plan=of, forecast=work.forecast(of))
