"""A run as data."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest

from tests.unit import report_fixture
from wulf.base.records import Analysis, Manifest
from wulf.tools.measure.page import export


def test_csv_has_one_line_per_cell_with_its_numbers() -> None:
    *_, analysis = report_fixture.make(sizes=5)
    rows = list(csv.DictReader(io.StringIO(export.csv(analysis))))
    assert len(rows) == len(analysis.cells)
    for row, cell in zip(rows, analysis.cells, strict=True):
        assert (row["op"], row["source"], row["destination"]) == (cell.cell.op, *cell.cell.place)
        assert int(row["size_bytes"]) == cell.cell.size_bytes
        assert float(row["time_s"]) == cell.time.value
        assert float(row["time_low_s"]) == cell.time.low
        assert float(row["p99.9_s"]) == cell.quantiles_s["p99.9"]
        assert int(row["launches"]) == cell.time.n


def test_csv_leaves_empty_what_is_unknown() -> None:
    *_, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=1)
    (row,) = csv.DictReader(io.StringIO(export.csv(analysis)))
    # A message of no bytes has no bandwidth, which is not a bandwidth of zero.
    assert row["size_bytes"] == "0" and row["bandwidth_bytes_per_s"] == ""


def test_csv_of_nothing_is_its_header() -> None:
    *_, analysis = report_fixture.empty()
    assert export.csv(analysis) == ",".join(export.HEADER) + "\n"


def test_csv_quotes_what_would_break_a_line() -> None:
    *_, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=1)
    (cell,) = analysis.cells
    odd = msgspec.structs.replace(cell, notes=['a "b",\nc'])
    (row,) = csv.DictReader(io.StringIO(export.csv(msgspec.structs.replace(analysis, cells=[odd]))))
    assert row["notes"] == 'a "b",\nc'


def test_json_reads_back_as_the_records_it_was_made_of() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), sizes=3, hostile=True)
    data = json.loads(export.json(manifest, nodes, launches, analysis))
    assert msgspec.convert(data["manifest"], Manifest) == manifest
    assert msgspec.convert(data["analysis"], Analysis) == analysis
    assert len(data["launches"]) == len(launches)
    assert [node["node"] for node in data["nodes"]] == [node.node for node in nodes]


def test_json_says_null_for_what_is_unknown() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=1)
    data = json.loads(export.json(manifest, nodes, launches, analysis))
    assert data["analysis"]["cells"][0]["bandwidth"] is None
    assert data["analysis"]["cells"][0]["time"]["value"] == pytest.approx(analysis.cells[0].time.value)
