"""What load does to requests: every quantile with its interval."""

from __future__ import annotations

import itertools

import msgspec

from tests.unit.make_records import PAIR, manifest, operation, plan, result, sample
from wulf import store
from wulf.procedure.analysis import analyze
from wulf.records import LaunchResult
from wulf.report.run import tables


def measured(path, factors):
    operations = [
        msgspec.structs.replace(operation(name, "net"), asked=f"tcp_loaded:{load}")
        for name, load, _ in factors
    ]
    wanted = plan(ops=[name for name, _, _ in factors], pairs=[PAIR], sizes_bytes=[64])
    with store.create(path, manifest(plan=wanted, operations=operations)) as writer:
        for index, ((name, _, factor), _) in enumerate(itertools.product(factors, range(8))):
            made = sample(index, 64, 20 * factor, PAIR, name, spread=0.01)
            writer.append(LaunchResult(launch=result(index, op=name).launch, samples=[made]))
        writer.update(status="complete")
    return analyze(store.load(path))


def test_each_load_is_held_against_none(tmp_path):
    found = measured(tmp_path / "r", [("unloaded", 0, 1.0), ("half", 50, 1.5), ("full", 90, 3.0)]).loads
    assert {(one.op, one.base, one.quantile) for one in found} == {
        (op, "unloaded", quantile) for op in ("half", "full") for quantile in ("p50", "p99", "p99.9")
    }
    for one in found:
        assert one.ratio.low < {"half": 1.5, "full": 3.0}[one.op] < one.ratio.high
    table = tables.loads_table(found)
    assert [row[0].text for row in table.rows] == ["full", "half"]
    assert table.rows[0][2].text.startswith("+20") or table.rows[0][2].text.startswith("+19")


def test_without_an_unloaded_one_nothing_is_said(tmp_path):
    assert measured(tmp_path / "r", [("half", 50, 1.5)]).loads == []
