"""A made-up mending before the made-up tuning of `tuning_fixture`: what both brought together."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from tests.unit import tuning_fixture
from wulf.base.records import ChangeOutcome, Estimate, MendEffect, Mending, Pair, Part, Verdict, Workload
from wulf.stats import estimate
from wulf.tools.tune.page import TuningReport

PAIRS: list[Pair] = [("node01", "node03"), ("node02", "node04")]
KEPT = ChangeOutcome(change="c", kept=True, nodes=[])


def ratio(value: float, low: float | None, high: float | None, n: int = 9) -> Estimate:
    return Estimate(value=value, low=low, high=high, confidence=0.95, unit="ratio", n=n, method="test")


def effect(metric: str, found: Estimate, verdict: Verdict) -> MendEffect:
    return MendEffect(metric=metric, ratio=found, p_value=0.01, verdict=verdict)


#: It helped large messages; of small ones nobody can tell.
EFFECTS = [
    effect("mpi_pingpong 1 B", ratio(0.98, 0.87, 1.11), "no decision"),
    effect("mpi_pingpong 8 KiB", ratio(0.20, 0.19, 0.21), "better"),
]


def mending(**fields: object) -> Mending:
    """A mending that was measured between two pairs and kept; `fields` are otherwise."""
    found = Mending(findings=[], refused=[], pairs=PAIRS, blocks=9, effects=EFFECTS, outcome=KEPT)
    return msgspec.structs.replace(found, **fields)


def workload(places: list[Pair]) -> Workload:
    return Workload(
        parts=[Part(op="mpi_pingpong", sizes_bytes=[1, 8192], places=list(places))], sweeps=12, visit_us=1000
    )


def report(tuned: TuningReport, mended: Mending, places: list[Pair] = PAIRS) -> TuningReport:
    """Put a mending before a tuning."""
    whole = estimate.whole(mended, workload(places), tuned.plan, tuned.trials, tuned.tuning)
    return replace(tuned, mended=mended, whole=whole)


def make() -> TuningReport:
    """Mending helped large messages, tuning all of them."""
    return report(tuning_fixture.make(), mending())
