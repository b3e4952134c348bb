"""What is said of operations that vary nothing, of one size, and of groups: no curve, no size, no pair."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.unit import report_fixture
from tests.unit.pages import operations, table, tables
from wulf.base.records import (
    Analysis,
    Cell,
    CellComparison,
    CellEstimate,
    Comparison,
    Launch,
    Manifest,
    NodeRecord,
    Operation,
    Part,
    Place,
)
from wulf.page.page import html
from wulf.page.parts import OperationResult
from wulf.page.pictures import pictures
from wulf.page.terminal import page_text
from wulf.page.words import place_name
from wulf.tools.compare import page as compare
from wulf.tools.compare.page import view as compare_view
from wulf.tools.measure import page as run
from wulf.tools.measure.page import view

Records = tuple[Manifest, list[NodeRecord], list[Launch], Analysis]
replace = msgspec.structs.replace
BOX = {
    "min": 0.9,
    "p5": 0.95,
    "p25": 0.98,
    "p50": 1.0,
    "p75": 1.02,
    "p95": 1.1,
    "p99": 1.3,
    "p99.9": 2,
    "max": 3,
}
FOUR = ("node01", "node02", "node03", "node04")
TWO = FOUR[:2]


def measured(operation: Operation, places: list[Place], size: int = 0) -> Records:
    """Return a run of one operation at one size."""
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=3)
    cells = [cell for cell in analysis.cells if cell.cell.size_bytes == 1][: len(places)]
    moved = [_moved(cell, operation, place, size) for cell, place in zip(cells, places, strict=True)]
    part = Part(op=operation.name, sizes_bytes=[size], places=places, group=operation.ranks != 2)
    plan = replace(manifest.plan, workload=replace(manifest.plan.workload, parts=[part]))
    return (
        replace(manifest, operations=[operation], plan=plan),
        nodes,
        [replace(launch, op=operation.name, place=places[0]) for launch in launches],
        replace(analysis, cells=moved, models=[], warnings=[]),
    )


def _moved(cell: CellEstimate, operation: Operation, place: Place, size: int) -> CellEstimate:
    points = [
        replace(point, quantiles_s={key: point.median_s * by for key, by in BOX.items()})
        for point in cell.launches
    ]
    return replace(
        cell,
        cell=Cell(op=operation.name, size_bytes=size, place=place),
        launches=points,
        bandwidth=cell.bandwidth if operation.moves_bytes and size else None,
    )


def operation(**changes: object) -> Operation:
    manifest, *_ = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=1)
    return replace(manifest.operations[0], **changes)


def barrier() -> Operation:
    return operation(
        name="mpi_barrier",
        transport="mpi",
        ranks=0,
        pattern="barrier",
        axis="",
        axis_unit="",
        quantity="barrier",
        moves_bytes=False,
        max_size_bytes=0,
        summary="MPI_Barrier among all",
    )


def command() -> Operation:
    return replace(
        barrier(), name="command", transport="command", ranks=1, quantity="run time", summary="sleep 1"
    )


def shown(records: Records) -> OperationResult:
    (found,) = operations(view.build(*records))
    return found


def words(page: str) -> str:
    """Return what a reader of a page sees and hears, without its code."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page.partition("<main")[2], flags=re.DOTALL)
    heard = " ".join(re.findall(r'aria-label="([^"]*)"', body))
    return heard + re.sub(r"<[^>]+>", " ", body)


@pytest.mark.parametrize(
    ("kind", "places"), [(barrier(), [FOUR]), (barrier(), [TWO]), (command(), [("node01",)])]
)
def test_nothing_is_said_of_sizes_and_pairs_where_there_are_none(
    kind: Operation, places: list[Place]
) -> None:
    records = measured(kind, places)
    for text in (page_text(run.build(*records)), words(html(run.build(*records)))):
        said = text.partition("Provenance")[0] + text.partition("Methods")[2]
        for wrong in (
            r"\b0 B\b",
            r"\bsizes?\b",
            r"\bpairs?\b",
            "→",
            "zero-byte",
            "asymptotic",
            "egment",
            "n½",
        ):
            assert not re.search(wrong, said), (wrong, re.findall(f".{{60}}{wrong}.{{20}}", said))
        assert "ladder" not in text


def test_the_estimate_is_shown_with_its_interval_and_its_launches() -> None:
    found = shown(measured(barrier(), [FOUR]))
    (figure,) = found.overview
    main, launches = (figure.variants[0].datasets[name] for name in ("main", "launches"))
    assert figure.chart.name == "estimates" and figure.title == "Barrier" and figure.x_title == "barrier"
    assert main["low_s"][0] < main["time_s"][0] < main["high_s"][0]
    assert list(main["place"]) == ["node[01-04] (4 ranks)"]
    assert len(launches["median_s"]) == report_fixture.LAUNCHES and sum(launches["contaminated"]) == 1
    inside = [
        mark for mark in figure.x.values if min(launches["median_s"]) < mark < max(launches["median_s"])
    ]
    assert len(inside) > 2, "an axis that does not begin at zero is marked where the values are"
    (boxes,) = found.detail
    assert boxes.chart.name == "launches" and len(boxes.variants[0].datasets["main"]["p50_s"]) == 12


def test_a_launch_of_one_value_has_no_box() -> None:
    records = measured(command(), [("node01",)])
    (cell,) = records[3].cells
    once = replace(cell, iterations=len(cell.launches))
    assert shown((*records[:3], replace(records[3], cells=[once]))).detail == ()


def test_pairs_at_one_size_share_a_figure() -> None:
    places: list[Place] = [("node01", "node02"), ("node01", "node03"), ("node02", "node04")]
    found = shown(measured(operation(), places, size=64))
    (figure,) = found.overview
    assert figure.title == "Half round trip at 64 B by pair"
    assert figure.variants[0].datasets["main"]["place"][0] == found.key_figures[0].worst_pair
    assert "of 3 pairs: from " in figure.variants[0].summary
    assert [column.name for column in found.pairs.columns] == [
        "pair",
        "half round trip at 64 B",
        "bandwidth",
        "launches",
        "on target",
    ]
    assert all(detail.segments is None and not detail.notes for detail in found.details)


def test_many_places_are_counted_and_times_far_apart_are_logarithmic() -> None:
    records = measured(operation(), [("a", "b")], size=64)
    (cell,) = records[3].cells
    many = [
        replace(
            cell,
            cell=replace(cell.cell, place=("a", f"b{at:02d}")),
            time=report_fixture.estimate(1e-5 * (at + 1), 0.01, "s"),
        )
        for at in range(40)
    ]
    (figure,) = shown((*records[:3], replace(records[3], cells=many))).overview
    assert figure.logarithmic and figure.x_title == "half round trip (logarithmic)"
    assert len(figure.variants[0].datasets["main"]["place"]) == 30
    assert "Of 40 pairs the 29 worst and the best." in figure.variants[0].caption


@pytest.mark.parametrize("bounded", [True, False])
def test_its_charts_can_be_drawn(bounded: bool) -> None:
    records = measured(barrier(), [FOUR])
    (cell,) = records[3].cells
    if not bounded:
        cell = replace(cell, time=replace(cell.time, low=None, high=None, n=1), launches=cell.launches[:1])
    found = shown((*records[:3], replace(records[3], cells=[cell])))
    drawn = dict(pictures([(found.name, figure) for figure in (*found.overview, *found.detail)], "svg"))
    assert list(drawn) == ["mpi_barrier-estimates.svg", "mpi_barrier-launches.svg"]
    assert "µs</text>" in drawn["mpi_barrier-estimates.svg"].decode()


def test_an_operation_that_has_sizes_names_the_one_it_was_measured_at() -> None:
    found = shown(measured(operation(), [("node01", "node02")]))
    assert found.key_figures[0].name == "half round trip at 0 B"
    assert found.details[0].sizes.columns[0].name == "size"


def test_axes_are_named_after_what_is_varied() -> None:
    manifest, *rest = report_fixture.make(ops=("tcp_rr",), sizes=12)
    named = replace(manifest, operations=[replace(manifest.operations[0], axis="payload")])
    found = shown((named, *rest))
    assert found.overview[0].title == "Half round trip against payload"
    assert found.overview[0].x_title == "payload (logarithmic)"
    assert "against payload" in found.overview[1].variants[0].summary


def test_a_group_of_two_is_no_pair() -> None:
    group = replace(operation(), ranks=0, name="mpi_bcast", quantity="broadcast")
    assert place_name(TWO) == "node01 → node02"
    assert place_name(TWO, group) == "node01,node02 (2 ranks)"
    assert place_name(("node01", "node01"), group) == "node01 (2 ranks)"
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=12)
    cells = [replace(cell, reached=False) for cell in analysis.cells]
    records = (replace(manifest, operations=[replace(group, name="tcp_rr")]), nodes, launches)
    text = page_text(run.build(*records, replace(analysis, cells=cells)))
    assert "→" not in text and "node01,node02 (2 ranks)" in text
    assert "Groups, worst first" in text and "among 2 ranks on node[01-02]" in text
    assert "(operation, group and size)" in text


def test_who_measures_alone_is_a_node() -> None:
    alone = replace(operation(), ranks=1)
    assert place_name(("node01",), alone) == "node01"
    assert place_name(TWO, alone) == "node01 beside node02"


def compared(places: list[Place]) -> Comparison:
    comparison = report_fixture.comparison()
    cells: list[CellComparison] = [
        replace(comparison.cells[3], op="mpi_barrier", size_bytes=0, place=place) for place in places
    ]
    pooled = {"mpi_barrier": replace(comparison.pooled["mpi_pingpong"], op="mpi_barrier")}
    return replace(comparison, cells=cells, pooled=pooled, verdict="no decision")


def test_a_comparison_of_what_varies_nothing_has_a_row_for_each_place() -> None:
    found = compare_view.build(compared([TWO, FOUR]), [barrier()])
    (figure,), cells = found.figures, table(found, "mpi_barrier")
    assert figure.title == cells.title == "mpi_barrier" and figure.y_title == "group"
    assert list(figure.variants[0].datasets["main"]["place"]) == [
        "node01,node02 (2 ranks)",
        "node[01-04] (4 ranks)",
    ]
    assert {one.title for one in tables(found)} == {"Over all groups", "mpi_barrier", "Facts that differ"}
    assert [section.title for section in found.sections][1] == "Per group"
    assert found.title.startswith("No decision over all groups, but 2 of 2 groups faster: ")
    page = words(html(compare.build(compared([FOUR]), [barrier()])))
    assert not re.search(r"\b0 B\b|\bpairs?\b|\bsizes?\b", page)
    assert next(pictures([("", figure)], "svg"))[1]


def test_the_title_counts_pairs_where_there_are_some() -> None:
    alone = replace(operation(), ranks=1, max_size_bytes=0)
    assert view.build(*measured(alone, [TWO])).lede.startswith("2 nodes: tcp_rr. ")
    assert view.build(*measured(operation(), [TWO], size=1)).lede.startswith("2 nodes, 1 pair: tcp_rr. ")
