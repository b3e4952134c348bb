"""The report on a terminal.  ``WULF_UPDATE_GOLDEN=1`` writes the golden files anew."""

from __future__ import annotations

import io
import os
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.unit import report_fixture
from wulf.page.operations import SPARK_WIDTH, sparkline
from wulf.page.parts import Column, Item, Table, Warning
from wulf.page.terminal import Printer, page_text, print_page
from wulf.tools.compare import page
from wulf.tools.measure import page as run

GOLDEN = Path(__file__).parents[1] / "golden"
NARROW = 80


def console(width: int = NARROW, **options: object) -> Console:
    """Return a terminal without colours; `force_terminal` makes it another one."""
    options = {"force_terminal": True, "color_system": None, **options}
    return Console(file=io.StringIO(), width=width, highlight=False, **options)


def printed(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def stripped(output: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def agrees(name: str, output: str) -> None:
    path = GOLDEN / name
    if os.environ.get("WULF_UPDATE_GOLDEN"):
        path.write_text(output, encoding="utf-8")
    assert output == path.read_text(encoding="utf-8")


def test_report_at_80_columns() -> None:
    on = console()
    print_page(run.build(*report_fixture.make(sizes=12)), on)
    agrees("report.txt", stripped(printed(on)))


def test_comparison_at_80_columns() -> None:
    on = console()
    print_page(page.build(report_fixture.comparison()), on)
    agrees("report-comparison.txt", stripped(printed(on)))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    on = console(width)
    print_page(run.build(*report_fixture.make(ops=("udp_rr", "mpi_pingpong"), sizes=60)), on)
    assert max(cell_len(line) for line in printed(on).splitlines()) <= width


def test_a_wide_terminal_shows_all_quantiles() -> None:
    on = console(200)
    print_page(run.build(*report_fixture.make(ops=("tcp_rr",), sizes=4)), on)
    assert "p99.9" in printed(on) and "p25" in printed(on)


def test_a_file_gets_no_colour_codes_and_a_terminal_does() -> None:
    records = report_fixture.make(ops=("tcp_rr",), sizes=2)
    assert "\x1b" not in page_text(run.build(*records))
    on = console(force_terminal=True, color_system="standard", no_color=False)
    print_page(run.build(*records), on)
    assert "\x1b[" in printed(on)


def test_hostile_names_are_neither_escapes_nor_markup() -> None:
    records = report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=2, hostile=True)
    output = page_text(run.build(*records))
    assert "\x1b" not in output
    assert "�[31mred�[0m" in output


def test_an_empty_run_says_so() -> None:
    assert "Nothing was measured" in page_text(run.build(*report_fixture.empty()))


def test_sparkline_is_logarithmic() -> None:
    assert sparkline([1, 10, 100]) == "▁▅█"
    assert sparkline([5, 5]) == "▁▁"
    assert sparkline([]) == sparkline([0.0]) == ""
    assert len(sparkline([float(n) for n in range(1, 100)])) == SPARK_WIDTH


def unknown_records():
    """Return a run with cells in which nothing is known: a stream, and a model that was not fitted."""
    manifest, nodes, launches, analysis = report_fixture.make(ops=("mpi_pingpong", "tcp_stream"), sizes=12)
    notes = ["the number of segments is not identifiable: too few launches to tell steps from noise"]
    models = [
        msgspec.structs.replace(
            model,
            segments=[],
            zero_byte_latency=None,
            asymptotic_bandwidth=None,
            n_half_bytes=None,
            notes=notes,
        )
        for model in analysis.models
    ]
    return manifest, nodes, launches, msgspec.structs.replace(analysis, models=models)


@pytest.mark.parametrize("width", [50, 80, 120])
def test_an_unknown_value_takes_no_room_from_the_others(width: int) -> None:
    on = console(width)
    print_page(run.build(*unknown_records()), on)
    output = printed(on)
    assert "node02 → node04" in output.partition("Pairs, worst first")[2].partition("In detail")[0]
    assert max(cell_len(line) for line in output.splitlines()) <= width


def test_a_file_has_whole_tables() -> None:
    rows = page_text(run.build(*unknown_records())).partition("Pairs, worst first\n")[2].splitlines()
    assert rows[1].split() == ["node02", "→", "node04", "unknown", "unknown", "11", "of", "12"]
    assert "unknown: the number of segments is not identifiable" in " ".join(rows[4:6])


def test_a_table_in_a_pipe_is_neither_wrapped_nor_cut() -> None:
    words = "word " * 60
    table = Table("T", (Column("a"), Column("b", numeric=True)), ((Item(words.strip()), Item("1" * 90)),))
    on = console(force_terminal=False)
    Printer(on).table(table)
    assert f"{words.strip()}  {'1' * 90}" in printed(on)


def test_a_table_that_is_wider_than_the_terminal_is_a_list() -> None:
    columns = (Column("pair", whole=True), *(Column(f"figure {n}", numeric=True) for n in range(4)))
    row = (Item("node01 → node02"), *(Item(f"{n}{n}{n} ± 1 µs") for n in range(4)))
    on = console(40)
    Printer(on).table(Table("T", columns, (row,)))
    assert stripped(printed(on)).splitlines()[2:] == [
        "node01 → node02",
        *(f"  figure {n}  {n}{n}{n} ± 1 µs" for n in range(4)),
    ]


@pytest.mark.parametrize("width", [80, 60])
def test_rows_without_a_title_fit_any_terminal(width: int) -> None:
    columns = (
        Column("run", whole=True),
        Column("status"),
        Column("operations"),
        Column("launches", numeric=True),
    )
    row = (
        Item("2026-11-26-080134-of-the-afternoon"),
        Item("complete"),
        Item("mpi_pingpong, tcp_rr"),
        Item("12"),
    )
    on = console(width)
    Printer(on).rows(Table("", columns, (row,)))
    lines = printed(on).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(item.text.split()[0] in printed(on) for item in row) and lines[0].strip()
    headless = console(width)
    Printer(headless).rows(Table("", columns[:2], (row[:2],)), heads=False)
    assert printed(headless).split() == [item.text for item in row[:2]]


def test_on_a_terminal_a_warning_is_a_line_unless_more_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = tuple(
        f"case {number}, told in many words, more than fit a line of a terminal" for number in range(4)
    )
    warned = [
        Warning("error", "failed launch", "Look at its cable.", cases),
        Warning("note", "lost", "Look.", ("x",)),
    ]

    def shown(*, terminal: bool) -> list[str]:
        on = console(60, force_terminal=terminal)
        Printer(on).warnings(warned)
        return printed(on).splitlines()

    brief = shown(terminal=True)
    assert brief[0].startswith("error: failed launch: case 0")
    assert brief[0].endswith("… (and 3 more)")
    assert brief[1] == "note: lost: x"
    assert "--explain" in " ".join(brief[2:])
    assert len(brief) < 5
    assert all(cell_len(line) <= 60 for line in brief)
    assert "Look at its cable." in " ".join(shown(terminal=False))
    monkeypatch.setattr(Printer, "explained", True)
    assert "Look at its cable." in " ".join(shown(terminal=True))
