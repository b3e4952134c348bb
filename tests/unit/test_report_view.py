"""What a report says, before it is drawn."""

from __future__ import annotations

import math

import msgspec
import pytest

from tests.unit import report_fixture
from tests.unit.pages import operations, said, verdict
from tests.unit.pages import table as table_of
from wulf.base.records import CellEstimate, CellMode, Estimate, NodeRecord
from wulf.page import ticks
from wulf.page.blocks import Page, Verdict
from wulf.page.parts import OperationResult, Table
from wulf.page.words import change_item, duration, percent, place_name
from wulf.tools.compare.page import view as compare
from wulf.tools.measure.page import headline, provenance, ranking, view


@pytest.fixture(scope="module")
def shown() -> Page:
    return view.build(*report_fixture.make())


def texts(table: Table) -> list[list[str]]:
    return [[item.text for item in row] for row in table.rows]


def test_key_figures_name_the_worst_pair_and_the_best(shown: Page) -> None:
    latency, bandwidth, n_half = operations(shown)[0].key_figures
    assert latency.name == "zero-byte half round trip"
    # The fixture's factors are 1.17 for the worst pair and 1.00 for the best, of 28 µs.
    assert latency.worst.raw == pytest.approx(1.17 * 28e-6)
    assert latency.worst_pair == "node02 → node04"
    assert latency.best is not None and latency.best.raw == pytest.approx(28e-6)
    assert latency.best_pair == "node01 → node02"
    assert bandwidth.worst.raw == pytest.approx(1 / (1.17 * 8.6e-9))
    assert bandwidth.worst_pair == "node02 → node04"
    assert n_half.worst_pair == "all 3 pairs alike"


def test_where_no_model_gives_a_latency_the_smallest_size_does(shown: Page) -> None:
    stream = operations(shown)[3]
    assert stream.key_figures[0].name == "time per message at 1 B"
    assert "a stream has no zero-byte latency" in texts(stream.pairs)[0][1]


def changed_ends(**changes: object) -> OperationResult:
    """The first operation of the fixture, with its smallest and largest cells changed."""
    manifest, nodes, launches, analysis = report_fixture.make()
    ends = {min(report_fixture.ladder(256)), max(cell.cell.size_bytes for cell in analysis.cells)}
    cells = [
        msgspec.structs.replace(cell, **changes) if cell.cell.size_bytes in ends else cell
        for cell in analysis.cells
    ]
    changed = msgspec.structs.replace(analysis, cells=cells)
    return operations(view.build(manifest, nodes, launches, changed))[0]


def test_launches_that_lie_far_apart_have_no_single_headline() -> None:
    operation = changed_ends(range_s=(66e-6, 97e-6), modes_between=2)
    assert "too far apart for one figure" in operation.pairs.note
    latency, bandwidth, _ = operation.key_figures
    assert latency.name == "half round trip at 0 B"
    assert latency.worst.text == "66.0 µs to 97.0 µs"
    assert latency.note.startswith(
        "no single figure: nine of ten launch medians lie between 66.0 µs and 97.0 µs, in 2 groups; median "
    )
    assert "±" in latency.note
    assert bandwidth.name.startswith("bandwidth at ")
    low, high = bandwidth.worst.text.split(" to ")
    assert low != high
    assert "B/s" in high


def test_launches_of_a_printed_number_that_lie_far_apart_are_shown_as_printed() -> None:
    cell = report_fixture.make()[3].cells[0]
    rate = msgspec.structs.replace(cell.time, value=28.0, low=24.4, high=32.9, unit="Gflops")
    printed = msgspec.structs.replace(cell, time=rate, range_s=(24.4, 32.9), modes_between=2)
    assert headline._item(rate, printed).text == "24.4 Gflops to 32.9 Gflops"


def test_two_modes_within_the_launches_are_both_in_the_headline() -> None:
    modes = [
        CellMode(time_s=40e-6, low_s=39e-6, high_s=41e-6, share=0.8),
        CellMode(time_s=136e-6, low_s=130e-6, high_s=140e-6, share=0.2),
    ]
    latency, *_ = changed_ends(modes_within=modes, launches_with_modes=7).key_figures
    assert latency.worst.text == "40.0 µs and 136 µs"
    assert "two modes in 7 of 12 launches, with 80 % and 20 % of the messages" in latency.note


def test_one_figure_needs_no_word(shown: Page) -> None:
    assert all(figure.note == "" for figure in operations(shown)[0].key_figures)
    assert "too far apart" not in operations(shown)[0].pairs.note


def test_pairs_come_worst_first(shown: Page) -> None:
    assert [row[0] for row in texts(operations(shown)[0].pairs)] == [
        "node02 → node04",
        "node01 → node03",
        "node01 → node02",
    ]


def test_many_pairs_show_the_worst_ones_and_the_best() -> None:
    pairs = [("n", str(index)) for index in range(20)]
    assert ranking.shown(pairs) == [*pairs[:5], pairs[-1]]


def test_chart_data_are_the_numbers_of_the_analysis(shown: Page) -> None:
    *_, analysis = report_fixture.make()
    cells = [cell for cell in analysis.cells if cell.cell.op == "mpi_pingpong"]
    main = operations(shown)[0].overview[0].variants[0].datasets["main"]
    drawn = {(p, n): t for p, n, t in zip(main["pair"], main["size_bytes"], main["time_s"], strict=True)}
    assert len(drawn) == len(cells) == 180
    for cell in cells:
        assert drawn[" → ".join(cell.cell.place), cell.cell.size_bytes] == pytest.approx(
            cell.time.value, rel=1e-6
        )


def test_breakpoints_of_several_pairs_are_one_mark(shown: Page) -> None:
    breaks = operations(shown)[0].overview[0].variants[0].datasets["breaks"]
    assert list(breaks["size_bytes"]) == [65537]
    assert list(breaks["label"]) == ["65537 B: likely the eager limit (64 KiB)"]
    assert breaks["pairs"][0] == "node01 → node02, node01 → node03, node02 → node04"


def test_missed_targets_say_how_far_they_are(shown: Page) -> None:
    rows = texts(table_of(shown, "Targets not reached"))
    assert rows and all(", target 2 %" in row[4] for row in rows)
    widths = [row[4].raw for row in table_of(shown, "Targets not reached").rows]
    assert widths == sorted(widths, reverse=True)
    *_, analysis = report_fixture.make()
    assert sum(row[3].raw for row in table_of(shown, "Targets not reached").rows) == sum(
        not cell.reached for cell in analysis.cells
    )


def test_unknown_facts_say_why_and_are_not_zero(shown: Page) -> None:
    assert ["nic.firmware", "unknown: ethtool is not installed", "node01, node02, node03, node04"] in texts(
        table_of(shown, "Unknown")
    )
    assert ["everything", "unknown: no route to host", "node99"] in texts(table_of(shown, "Unknown"))
    assert not any(row[0] == "nic.firmware" for row in texts(table_of(shown, "Facts of the nodes")))


def test_facts_that_differ_are_marked(shown: Page) -> None:
    kernels = [row for row in table_of(shown, "Facts of the nodes").rows if row[0].text == "kernel release"]
    assert [(row[1].text, row[1].flag, row[2].text) for row in kernels] == [
        ("6.1.0-18-amd64", "warning", "node01, node02, node04"),
        ("6.1.0-21-amd64", "warning", "node03"),
    ]


def test_a_fact_without_value_or_reason_is_listed_as_unknown() -> None:
    manifest, _, launches, analysis = report_fixture.empty()
    nodes = [NodeRecord(node="n1", reachable=True, facts={"mtu_bytes": None})]
    shown = view.build(manifest, nodes, launches, analysis)
    assert ["mtu_bytes", "unknown: no reason recorded", "n1"] in texts(table_of(shown, "Unknown"))


def test_an_empty_run_says_that_nothing_was_measured() -> None:
    shown = view.build(*report_fixture.empty())
    assert (verdict(shown).flag, verdict(shown).title) == ("nothing", "Nothing was measured")
    assert operations(shown) == ()
    assert table_of(shown, "Targets not reached").empty == "nothing was measured"
    assert table_of(shown, "Failed and contaminated").empty == "there was no launch"
    assert "no interval was computed" in said(shown)[-1]


def test_trust_is_good_only_when_everything_is_as_asked() -> None:
    manifest, _, _, analysis = report_fixture.make(sizes=3)
    clean = msgspec.structs.replace(
        analysis,
        warnings=[],
        launches_failed=0,
        launches_contaminated=0,
        cells=[msgspec.structs.replace(cell, reached=True) for cell in analysis.cells],
    )
    done = msgspec.structs.replace(manifest, status="complete")
    assert headline.trust(done, clean) == "good"
    assert headline.trust(manifest, clean) == "fair"
    assert headline.trust(done, msgspec.structs.replace(clean, launches_contaminated=1)) == "fair"
    assert headline.trust(done, msgspec.structs.replace(clean, launches_failed=1)) == "poor"
    unsure = [msgspec.structs.replace(cell, reached=False) for cell in clean.cells]
    assert headline.trust(done, msgspec.structs.replace(clean, cells=unsure[:1] + clean.cells[1:])) == "fair"
    assert headline.trust(done, msgspec.structs.replace(clean, cells=unsure)) == "poor"


def test_facts_unknown_for_one_reason_share_a_row() -> None:
    manifest, _, launches, analysis = report_fixture.empty()
    unknown = {f"nic.fact{index}": "no interface" for index in range(9)} | {"time.zone": "no bus"}
    nodes = [NodeRecord(node=node, reachable=True, facts={}, unknown=unknown) for node in ("n1", "n2")]
    rows = texts(table_of(view.build(manifest, nodes, launches, analysis), "Unknown"))
    assert [row[1:] for row in rows if row[2] == "all 2 nodes"] == [
        ["unknown: no interface", "all 2 nodes"],
        ["unknown: no bus", "all 2 nodes"],
    ]
    assert rows[0][0].endswith("nic.fact5 and 3 more")


def test_scouts_beside_load_are_no_contaminated_launches() -> None:
    manifest, nodes, launches, analysis = report_fixture.make()
    beside = [msgspec.structs.replace(x, status="ok", contamination=["load"]) for x in launches]
    scouts = [msgspec.structs.replace(x, purpose="scout") for x in beside[:4]]
    rows = table_of(
        view.build(manifest, nodes, scouts + beside[4:], analysis), "Failed and contaminated"
    ).rows
    assert sum(row[0].raw for row in rows) == len(launches) - 4


def test_a_clock_is_named_once_whatever_a_reading_cost() -> None:
    _, _, launches, _ = report_fixture.make()
    assert launches[0].probe is not None
    clock = launches[0].probe.clock
    probes = [
        msgspec.structs.replace(launches[0].probe, clock=msgspec.structs.replace(clock, cost_ns=cost))
        for cost in (27.2, 29.4, 28.0)
    ]
    asked = [msgspec.structs.replace(launches[0], probe=probe) for probe in probes]
    (text,) = provenance.clock_texts(asked)
    assert "one reading 27 to 29 ns" in text


def test_tables_of_what_went_wrong_are_folded() -> None:
    manifest, nodes, launches, analysis = report_fixture.make()
    cells = [msgspec.structs.replace(cell, reached=False) for cell in analysis.cells]
    bad = [
        msgspec.structs.replace(
            launch,
            status="failed",
            error=f"{launch.place[1]}: ssh: connect to host 10.0.0.{index % 9} port 22: Connection refused",
        )
        for index, launch in enumerate(launches)
    ]
    shown = view.build(manifest, nodes, bad, msgspec.structs.replace(analysis, cells=cells))
    rows = texts(table_of(shown, "Targets not reached"))
    assert [row[:2] for row in sorted(rows)] == [
        [op, "all 3 pairs"] for op in sorted(report_fixture.OPERATIONS)
    ]
    assert {row[2] for row in rows if row[0] == "tcp_rr"} == {"0 B to 1 MiB"}
    assert len(table_of(shown, "Failed and contaminated").rows) == 4
    assert sum(row[0].raw for row in table_of(shown, "Failed and contaminated").rows) == len(bad)
    assert "such as: " in texts(table_of(shown, "Failed and contaminated"))[0][5]


def test_one_launch_has_no_interval_and_says_so() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=1)
    (cell,) = analysis.cells
    alone = msgspec.structs.replace(cell.time, low=None, high=None, n=1)
    lone: CellEstimate = msgspec.structs.replace(cell, time=alone, reached=False)
    shown = view.build(manifest, nodes, launches, msgspec.structs.replace(analysis, cells=[lone]))
    assert texts(table_of(shown, "Targets not reached"))[0][4:] == ["no interval, target 2 %", "1"]
    assert "no interval" in texts(operations(shown)[0].details[0].sizes)[0][1]
    main = operations(shown)[0].overview[0].variants[0].datasets["main"]
    assert list(main["low_s"]) == [None]


def test_control_characters_of_nodes_do_not_pass() -> None:
    shown = view.build(*report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=2, hostile=True))
    values = [row[1] for row in texts(table_of(shown, "Facts of the nodes"))]
    assert any("�[31mred" in value for value in values)
    assert not any("\x1b" in value for value in values)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.9, 0.892, 0.908, "−10.0 % (−10.8 to −9.2)"),
        (1.0, 0.9988, 1.0012, "0 % (−0.12 to +0.12)"),
        (1.5, None, None, "+50 % (no interval)"),
    ],
)
def test_changes_have_the_digits_of_their_interval(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    ratio = Estimate(value=value, low=low, high=high, confidence=0.95, unit="ratio", n=12, method="")
    assert change_item(ratio).text == text


def test_percent_and_duration() -> None:
    assert [percent(ratio) for ratio in (0.0712, 0.02, 0.5, 1.234, 0)] == [
        "7.1 %",
        "2 %",
        "50 %",
        "123 %",
        "0 %",
    ]
    assert [duration(seconds) for seconds in (90, 1500, 7200)] == ["90 s", "25 min", "2 h"]


def test_ticks_cover_what_is_drawn() -> None:
    marks = ticks.times([28e-6, 10.6e-3])
    assert marks.values[0] <= 28e-6 and marks.values[-1] >= 10e-3
    assert "100 µs" in marks.labels and "2 ms" in marks.labels
    sizes = ticks.sizes([0, 1, 4 << 20])
    assert sizes.values[0] == 0 and sizes.labels[-1] == "4 MiB" and len(sizes.values) <= 13
    changes = ticks.changes([0.9, 1.1])
    assert changes.labels[changes.values.index(1.0)] == "0 %"
    assert math.isclose(changes.values[0], 0.9) and changes.labels[0] == "−10 %"
    assert ticks.bandwidths([117e6]).labels[1] == "20 MB/s"


def test_comparison_counts_verdicts_and_keeps_sizes_in_order() -> None:
    shown = compare.build(report_fixture.comparison())
    assert shown.title.startswith("Latency is better below 64 KiB and worse at 1 MiB: ")
    assert isinstance(shown.head[0], Verdict) and shown.head[0].flag == "warning"
    main = shown.figures[0].variants[0].datasets["main"]
    assert list(main["size_bytes"]) == sorted(main["size_bytes"])
    assert "19 better, 1 worse" in shown.figures[0].variants[0].summary
    assert texts(table_of(shown, "Facts that differ")) == [
        ["interrupt_coalescing", "–", "rx-usecs 3", "rx-usecs 0"]
    ]
    assert "Changes between −1.2 % and +1.2 % may go unseen between these runs." in said(shown)


def test_nodes_that_do_not_answer_for_one_reason_are_one_row() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), sizes=2)
    gone = [
        NodeRecord(
            node=f"node{number}",
            reachable=False,
            error=f"node{number}: ssh: connect to host 10.1.0.{number} port 22: Connection refused",
        )
        for number in range(50, 80)
    ]
    shown = view.build(manifest, [*nodes, *gone], launches, analysis)
    refused = [row for row in texts(table_of(shown, "Unknown")) if "Connection refused" in row[1]]
    assert len(refused) == 1 and "node50" in refused[0][2]


def test_a_spent_budget_does_not_contradict_targets_that_were_reached() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), sizes=4)
    cells = [msgspec.structs.replace(cell, reached=True) for cell in analysis.cells]
    lines = verdict(
        view.build(manifest, nodes, launches, msgspec.structs.replace(analysis, cells=cells))
    ).lines
    assert f"{len(cells)} of {len(cells)} cells reached ±2 % (95 % intervals)." in lines
    assert not any("before all" in line for line in lines)
    assert any("before everything that was planned was measured" in line for line in lines)


def test_nothing_is_said_of_segments_that_were_not_found() -> None:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), pairs=1, sizes=4)
    note = "the number of segments is not identifiable: too few launches to tell steps from noise"
    bare = msgspec.structs.replace(
        analysis.models[0], segments=[], asymptotic_bandwidth=None, n_half_bytes=None, notes=[note]
    )
    shown = view.build(manifest, nodes, launches, msgspec.structs.replace(analysis, models=[bare]))
    assert operations(shown)[0].details[0].segments.empty == note


def test_a_pooled_no_decision_does_not_hide_a_pair_that_is_faster() -> None:
    whole = report_fixture.comparison()
    cells = [
        msgspec.structs.replace(
            cell,
            verdict="better"
            if cell.place == ("node01", "node03") and cell.size_bytes < 512
            else "no decision",
        )
        for cell in whole.cells
    ]
    undecided = msgspec.structs.replace(whole, cells=cells, verdict="no decision")
    shown = compare.build(undecided)
    assert shown.title.startswith(
        "No decision over all sizes and pairs, but 1 of 2 pairs faster at some sizes: "
    )
    rows = texts(table_of(shown, "By "))
    assert [row[1:3] for row in rows] == [["node01 → node02", "no decision"], ["node01 → node03", "better"]]
    assert rows[1][3] == "12 of 24: 0 B to 256 B"
    assert rows[1][4].startswith("−1")


def test_facts_that_differ_alike_share_a_row() -> None:
    facts = {f"node{number:02}: kernel.release": ("6.1", "6.12") for number in range(1, 31)}
    facts |= {f"node{number:02}: fact.{index}": ("1", "unknown") for number in (1, 2) for index in range(90)}
    shown = compare.build(msgspec.structs.replace(report_fixture.comparison(), differing_facts=facts))
    assert texts(table_of(shown, "Facts that differ")) == [
        ["kernel.release", "node[01-30]", "6.1", "6.12"],
        ["fact.0, fact.1, fact.10, fact.11, fact.12, fact.13 and 84 more", "node[01-02]", "known", "unknown"],
    ]


def test_who_takes_part_is_named():
    assert place_name(("a", "b")) == "a → b"
    assert place_name(("n1", "n2", "n3", "n3")) == "n[1-3] (4 ranks)"
    assert place_name(("n1",)) == "n1"
