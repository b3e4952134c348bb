"""Sizes of a launch that disturb each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.unit import make_records as make
from tests.unit.test_cells import cells
from wulf.base.records import Advice, Operation
from wulf.stats.estimate import order_effects

SIZE = 64 << 10
ALONE = msgspec.structs.replace(make.operation("order_alone"), asked="mpi_pingpong")
OPERATIONS = [make.operation(), ALONE]


def told(
    ladder_us: float,
    alone_us: float = 40.0,
    largest: int = 1 << 20,
    operations: Sequence[Operation] = OPERATIONS,
) -> list[Advice]:
    """What is said of 8 launches that visit one more size, and 8 that do not."""
    results = []
    for index in range(16):
        op, time_us, sizes = (
            ("mpi_pingpong", ladder_us, (SIZE, largest)) if index % 2 else ("order_alone", alone_us, (SIZE,))
        )
        samples = [make.sample(index, size, time_us, op=op, seed=index) for size in sizes]
        results.append(msgspec.structs.replace(make.result(index, sizes=sizes, op=op), samples=samples))
    plan = make.plan(workload=make.workload(ops=tuple(one.name for one in operations)))
    return list(order_effects.advise(cells(results, plan, operations), operations))


def test_a_size_that_is_slower_beside_a_larger_one_is_told_with_both_figures() -> None:
    (advice,) = told(50.0)
    assert advice.kind == "order_effect" and advice.subject == "mpi_pingpong node01–node02"
    for said in (
        "64 KiB takes 39.8 µs ",
        "alone (order_alone)",
        "beside others up to 1 MiB (mpi_pingpong)",
        "+2",
    ):
        assert said in advice.text, advice.text


def test_after_smaller_ones_is_not_after_larger_ones() -> None:
    (advice,) = told(50.0, largest=1024)
    assert "beside smaller ones" in advice.text


@pytest.mark.parametrize("ladder_us", [40.0, 41.0])
def test_what_is_alike_is_not_told(ladder_us: float) -> None:
    assert told(ladder_us) == []


def test_traffic_of_others_is_no_order() -> None:
    beside = msgspec.structs.replace(ALONE, beside_traffic=True)
    assert told(50.0, operations=[make.operation(), beside]) == []
