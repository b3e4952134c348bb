"""What MPI costs over TCP between the same nodes."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.make_records import manifest, node, operation, plan, result, sample
from wulf.base import store
from wulf.base.records import LaunchResult
from wulf.node.measuring.analysis import analyze
from wulf.tools.measure.page import summary_tables

PAIRS = [("node01", "node02"), ("node01", "node03")]


def measured(path, mpi_us, ops=("mpi_pingpong", "tcp_rr")):
    operations = [operation("mpi_pingpong"), operation("tcp_rr", "net")]
    wanted = plan(ops=list(ops), pairs=PAIRS, sizes_bytes=[64, 1024])
    with store.create(path, manifest(plan=wanted, operations=operations)) as writer:
        for index, (pair, op, _) in enumerate(itertools.product(PAIRS, ops, range(8))):
            middle = mpi_us if op == "mpi_pingpong" else 20.0
            samples = [
                sample(index, size, middle * (1 + size / 1024), pair, op, spread=0.01) for size in (64, 1024)
            ]
            writer.append(LaunchResult(launch=result(index, pair=pair, op=op).launch, samples=samples))
        writer.append(node())
        writer.update(status="complete")
    return analyze(store.load(path))


def test_the_ratio_has_an_interval_that_holds_the_truth(tmp_path):
    found = measured(tmp_path / "run", 25.0).overheads
    assert {(one.op, one.base, one.size_bytes, one.place) for one in found} == {
        ("mpi_pingpong", "tcp_rr", size, pair) for size in (64, 1024) for pair in PAIRS
    }
    for one in found:
        assert one.ratio.low < 1.25 < one.ratio.high
        assert one.base_s == pytest.approx(20e-6 * (1 + one.size_bytes / 1024), rel=0.02)
    table = summary_tables.overheads_table(found)
    assert [row[1].text for row in table.rows] == ["64 B", "1 KiB"]
    assert "(worst of 2)" in table.rows[0][2].text
    assert table.rows[0][3].text.startswith("+2") and "µs" in table.rows[0][4].text
    assert table.rows[0][4].raw == pytest.approx(5.3e-6, rel=0.1)


def test_mpi_that_is_quicker_costs_less_than_nothing(tmp_path):
    found = measured(tmp_path / "run", 15.0).overheads
    assert all(one.ratio.high < 1 for one in found)
    assert summary_tables.overheads_table(found).rows[0][4].text.startswith("−")


def test_where_one_of_them_was_not_measured_nothing_is_said(tmp_path):
    assert measured(tmp_path / "run", 25.0, ops=("mpi_pingpong",)).overheads == []
