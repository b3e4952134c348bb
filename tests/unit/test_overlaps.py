"""How much of a non-blocking collective goes on during a computation: planted shares come out, with their interval."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest

from tests.unit.make_records import manifest, node, operation, plan, result, sample
from wulf.base import store
from wulf.base.records import LaunchResult
from wulf.node.measuring.analysis import analyze
from wulf.page.page import html
from wulf.page.terminal import page_text
from wulf.tools.measure import page as run
from wulf.tools.measure.page import export, summary_tables

FOUR = ("node01", "node02", "node03", "node04")
NODES = [FOUR, FOUR[:3]]
SIZES = (8, 1024)
ALONE_US = 20.0


def measured(path, share, names=("mpi_ibcast", "mpi_ibcast_overlap"), kept=None):
    """Return a run in which so much of a broadcast overlaps."""
    alone, beside = names
    group = msgspec.structs.replace(operation(), ranks=0, pattern="broadcast")
    operations = [
        msgspec.structs.replace(group, name=alone, asked="mpi_ibcast"),
        msgspec.structs.replace(
            group, name=beside, asked="mpi_ibcast_overlap", overlaps="mpi_ibcast", moves_bytes=False
        ),
    ]
    ops = [name for name in names if kept in (None, name)]
    wanted = plan(ops=ops, places={op: NODES for op in ops}, sizes_bytes=SIZES)
    middles = {alone: ALONE_US, beside: ALONE_US * (1 - share)}
    with store.create(path, manifest(plan=wanted, operations=operations)) as writer:
        for index, (place, op, _) in enumerate(itertools.product(NODES, ops, range(8))):
            samples = [
                sample(index, size, middles[op] * (1 + size / 1024), place, op, spread=0.01) for size in SIZES
            ]
            writer.append(LaunchResult(launch=result(index, pair=place, op=op).launch, samples=samples))
        writer.append(node())
        writer.update(status="complete")
    return store.load(path)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_share_has_an_interval_that_holds_the_truth(tmp_path, share):
    found = analyze(measured(tmp_path / "run", share)).overlaps
    assert {(one.op, one.base, one.size_bytes, one.place) for one in found} == {
        ("mpi_ibcast_overlap", "mpi_ibcast", size, place) for size in SIZES for place in NODES
    }
    for one in found:
        assert one.base_s == pytest.approx(ALONE_US * 1e-6 * (1 + one.size_bytes / 1024), rel=0.02)
        assert one.share.low <= one.share.value <= one.share.high
        # What is left of a time may be zero; the smallest step of the probe's values is then held against it.
        assert one.share.low - 1e-4 < share < one.share.high + 1e-4
        assert one.share.high - one.share.low < 0.05


def test_a_share_below_zero_is_shown_as_measured(tmp_path):
    loaded = measured(tmp_path / "run", -0.25)
    found = analyze(loaded).overlaps
    assert all(one.share.high < -0.2 for one in found)
    table = summary_tables.overlaps_table(found, {})
    assert [row[1].text for row in table.rows] == ["8 B", "1 KiB"]
    assert "(least of 2)" in table.rows[0][2].text
    assert table.rows[0][3].text.startswith("−2") and table.rows[0][3].raw == pytest.approx(-0.25, abs=0.02)


def test_operations_that_a_plan_calls_something_else_are_known(tmp_path):
    loaded = measured(tmp_path / "run", 0.5, names=("alone", "beside"))
    assert {(one.op, one.base) for one in analyze(loaded).overlaps} == {("beside", "alone")}


@pytest.mark.parametrize("kept", ["mpi_ibcast", "mpi_ibcast_overlap"])
def test_where_one_of_them_was_not_measured_nothing_is_said(tmp_path, kept):
    loaded = measured(tmp_path / "run", 0.5, kept=kept)
    assert analyze(loaded).overlaps == []
    assert "Overlap" not in shown(loaded)


def shown(loaded):
    launches = [result.launch for result in loaded.results]
    return page_text(run.build(loaded.manifest, loaded.nodes, launches, analyze(loaded)))


def test_it_is_in_text_page_and_export(tmp_path):
    loaded = measured(tmp_path / "run", 0.5)
    analysis = analyze(loaded)
    launches = [result.launch for result in loaded.results]
    said = summary_tables.overlaps_table(analysis.overlaps, {}).rows[0][3].text
    assert said.endswith("%)")
    text = shown(loaded)
    assert "Overlap with computation" in text and said in text
    # What is left of a time is not a time of bytes.
    assert all(cell.bandwidth is None for cell in analysis.cells if cell.cell.op == "mpi_ibcast_overlap")
    page = html(run.build(loaded.manifest, loaded.nodes, launches, analysis))
    assert "Overlap with computation" in page and said in page
    data = json.loads(export.json(loaded.manifest, loaded.nodes, launches, analysis))
    assert [one["share"]["value"] for one in data["analysis"]["overlaps"]] == [
        one.share.value for one in analysis.overlaps
    ]
