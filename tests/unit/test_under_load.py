"""What load does to requests: every quantile with its interval."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from tests.unit.make_records import PAIR, manifest, operation, plan, result, sample
from wulf.base import store
from wulf.base.records import LaunchResult, Traffic
from wulf.node.measuring.analysis import analyze
from wulf.page.drawing import spec
from wulf.stats.estimate import under_load
from wulf.tools.measure.page import loads, summary_tables


def measured(path, factors, values=1000, beside=()):
    operations = [
        msgspec.structs.replace(
            operation(name, "net"), asked=f"tcp_loaded:{load}", beside_traffic=name in beside
        )
        for name, load, _ in factors
    ]
    wanted = plan(ops=[name for name, _, _ in factors], pairs=[PAIR], sizes_bytes=[64])
    with store.create(path, manifest(plan=wanted, operations=operations)) as writer:
        for index, ((name, _, factor), _) in enumerate(itertools.product(factors, range(8))):
            made = sample(index, 64, 20 * factor, PAIR, name, spread=0.01)
            counted = [(value, values // 5) for value, _ in made.histogram]
            made = msgspec.structs.replace(made, histogram=counted, iterations=values)
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
    table = summary_tables.loads_table(found)
    assert [row[0].text for row in table.rows] == ["full", "half"]
    assert [row[1].text for row in table.rows] == ["unloaded", "unloaded"]
    assert table.rows[0][3].text.startswith("+20") or table.rows[0][3].text.startswith("+19")


def test_times_are_drawn_against_the_load(tmp_path):
    factors = [("unloaded", 0, 1.0), ("half", 50, 1.5), ("full", 90, 3.0)]
    operations = {
        name: msgspec.structs.replace(operation(name, "net"), asked=f"tcp_loaded:{load}")
        for name, load, _ in factors
    }
    (figure,) = loads.curves(measured(tmp_path / "r", factors).loads, operations)
    drawn = figure.variants[0].datasets["main"]
    medians = {
        load: ratio
        for load, ratio, quantile in zip(drawn["load"], drawn["ratio"], drawn["quantile"], strict=True)
        if quantile == "p50"
    }
    assert medians == {0.5: pytest.approx(1.5, rel=0.02), 0.9: pytest.approx(3.0, rel=0.02)}
    assert figure.x.labels == ("50 %", "90 %")
    assert "at worst" in figure.variants[0].summary
    assert spec(figure)["layer"]


def test_one_load_is_no_curve(tmp_path):
    found = measured(tmp_path / "r", [("unloaded", 0, 1.0), ("half", 50, 1.5)]).loads
    half = msgspec.structs.replace(operation("half", "net"), asked="tcp_loaded:50")
    assert list(loads.curves(found, {"half": half})) == []


def test_a_quantile_takes_its_values(tmp_path):
    found = measured(tmp_path / "r", [("unloaded", 0, 1.0), ("half", 50, 1.5)], values=500).loads
    assert {one.quantile for one in found} == {"p50", "p99"}


def test_a_high_quantile_takes_as_many_values_on_both_sides(tmp_path):
    factors = [("unloaded", 0, 1.0), ("half", 50, 1.5)]
    few, many = (measured(tmp_path / str(n), factors, values=n).cells for n in (1000, 5000))
    base = next(cell for cell in few if cell.cell.op == "unloaded")
    loaded = next(cell for cell in many if cell.cell.op == "half")
    operations = [
        msgspec.structs.replace(operation(name, "net"), asked=f"tcp_loaded:{load}")
        for name, load, _ in factors
    ]
    found = {one.quantile for one in under_load([base, loaded], operations)}
    assert found == {"p50", "p99"}, "1000 values are ample for a p99, and not for a p99.9"


def test_beside_traffic_is_held_against_the_same_without(tmp_path):
    factors = [("none", 0, 1.0), ("half", 50, 1.5), ("beside", 0, 2.0), ("half_beside", 50, 6.0)]
    found = measured(tmp_path / "r", factors, beside=("beside", "half_beside")).loads
    medians = {(one.op, one.base): one.ratio for one in found if one.quantile == "p99.9"}
    assert medians.keys() == {("half", "none"), ("beside", "none"), ("half_beside", "half")}
    assert medians["beside", "none"].low < 2.0 < medians["beside", "none"].high
    assert medians["half_beside", "half"].low < 4.0 < medians["half_beside", "half"].high


def test_beside_traffic_alone_is_held_against_nothing(tmp_path):
    assert measured(tmp_path / "r", [("beside", 0, 2.0)], beside=("beside",)).loads == []


def test_the_table_says_how_much_traffic_there_was():
    launch = msgspec.structs.replace(
        result(0, op="beside").launch,
        beside=[Traffic(pair=("node03", "node04"), moved_bytes=200_000_000, lasted_s=2.0)],
    )
    assert (
        "Beside beside 1 other pair streamed at 100 MB/s each"
        in summary_tables.loads_table([], [launch]).note
    )


def test_without_an_unloaded_one_nothing_is_said(tmp_path):
    assert measured(tmp_path / "r", [("half", 50, 1.5)]).loads == []
