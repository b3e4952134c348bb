"""What a paper takes from a run: methods, tables, bibliography, charts."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest
from typer.testing import CliRunner

from tests.unit import report_fixture, tuning_fixture
from tests.unit.make_records import manifest
from tests.unit.pages import operations, said
from wulf.face.cli.main import app
from wulf.page.blocks import Command, Page
from wulf.page.citation import bibtex
from wulf.page.pictures import pictures
from wulf.tools.measure.page import methods, paper, view
from wulf.tools.tune import page


@pytest.fixture(scope="module")
def shown() -> Page:
    return view.build(*report_fixture.make(sizes=12))


def test_the_methods_say_on_what_with_what_and_how_often(shown: Page) -> None:
    for words in (
        "4 nodes (node[01-04]): processor AMD EPYC 7302P 16-Core Processor;",
        "driver igb, 1 Gbit/s, MTU 1500 B;",
        "Linux 6.1.0-18-amd64 (node[01-02,04]), 6.1.0-21-amd64 (node03).",
        "Measured with wulf 0.1.0 over Open MPI 4.1.4,",
        "mpi_pingpong (blocking MPI ping-pong; a value is the half round trip)",
        "between 3 pairs of nodes, 12 message sizes from 0 B to 1 KiB.",
        "12 launches per cell",
        "with its 95 % interval (order statistics of launch medians)",
    ):
        assert words in said(shown)[-1]


def without_intervals(share: float) -> str:
    manifest, nodes, launches, analysis = report_fixture.make(ops=("tcp_rr",), sizes=10)
    bare = round(share * len(analysis.cells))
    cells = [
        msgspec.structs.replace(
            cell, time=msgspec.structs.replace(cell.time, low=None, high=None, n=3), reached=False
        )
        if index < bare
        else cell
        for index, cell in enumerate(analysis.cells)
    ]
    return methods.paragraph(manifest, nodes, launches, msgspec.structs.replace(analysis, cells=cells))


def test_the_methods_claim_no_interval_where_there_is_none() -> None:
    said = without_intervals(1.0)
    assert "3 launches per cell" in said
    assert "too few launches for an interval." in said and "95 %" not in said
    said = without_intervals(0.5)
    assert "3 to 12 launches per cell" in said
    assert "15 of 30 cells had too few launches for an interval" in said


@pytest.mark.parametrize(
    ("raw", "tidy"),
    [
        (
            "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
            "Open MPI 4.1.4",
        ),
        ("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 2022\nMPICH ABI: 14:2:2", "MPICH 4.0.2"),
        ("MPICH Version:      4.0.2 MPICH Release date: Thu Apr  7 2022", "MPICH 4.0.2"),
        ("Open MPI v5.0.3", "Open MPI 5.0.3"),
    ],
)
def test_an_mpi_library_is_its_name_and_version(raw: str, tidy: str) -> None:
    assert methods.library(raw) == tidy


def test_a_command_line_keeps_its_quotes() -> None:
    manifest, *rest = report_fixture.make(ops=("tcp_rr",), sizes=2)
    manifest = msgspec.structs.replace(manifest, command_line=["wulf", "tune", "--objective", "app: ./a b"])
    assert Command("Command line", "wulf tune --objective 'app: ./a b'") in view.build(manifest, *rest).blocks


def test_an_empty_run_has_methods_and_no_table() -> None:
    empty = view.build(*report_fixture.empty())
    assert "no launches per cell" in said(empty)[-1]
    assert paper.latex(empty) == ""


def test_latex_has_a_table_of_pairs_and_one_of_sizes(shown: Page) -> None:
    text = paper.latex(shown)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2 * len(operations(shown))
    assert r"node02 $\rightarrow$ node04 & 32.8 $\pm$ 0.4 \textmu{}s" in text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert all(ord(char) < 128 for line in body for char in line)
    assert all(line.count("&") == line.count(" & ") for line in body)
    stream = text.partition("% tcp_stream: Pairs")[2]
    assert "% unknown: a stream has no zero-byte latency" in stream and "-- & 100.8" in stream


def test_hostile_names_are_no_latex() -> None:
    hostile = view.build(*report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=2, hostile=True))
    body = [line for line in paper.latex(hostile).splitlines() if not line.startswith(("%", "\\"))]
    assert not any(re.search(r"(?<!\\)[_#]", line) for line in body)


def test_bibtex_names_the_run() -> None:
    head = manifest(id="2026-11-21_a b", created_at="2026-11-21T08:00:00")
    text = bibtex(head, "4 nodes: mpi_pingpong", 7)
    assert text.startswith("@misc{wulf-run-2026-11-21-a-b,\n")
    assert r"{4 nodes: mpi\_pingpong}" in text and "month        = nov" in text
    assert text.count("@misc{") == 2 and text.count("{") == text.count("}")


def test_every_chart_is_a_picture_with_its_marks(shown: Page) -> None:
    operation = operations(shown)[0]
    drawn = dict(pictures([(operation.name, figure) for figure in operation.overview[:1]], "svg"))
    assert list(drawn) == ["mpi_pingpong-latency.svg"]
    root = ElementTree.fromstring(drawn["mpi_pingpong-latency.svg"])
    words = "".join(root.itertext())
    assert root.tag.endswith("svg") and "1 KiB" in words and "node02 → node04" in words
    one = operation.detail[0]
    names = [name for name, _ in pictures([(operation.name, one)], "svg")]
    assert names == [
        f"mpi_pingpong-box-{pair}.svg" for pair in ("node02-node04", "node01-node03", "node01-node02")
    ]


def test_a_tuning_run_is_drawn_as_pdf() -> None:
    effects = page.build(tuning_fixture.make()).figures[0]
    ((name, content),) = pictures([("tuning", effects)], "pdf")
    assert name == "tuning-effects.pdf" and content.startswith(b"%PDF-")


def test_two_forms_at_once_are_refused() -> None:
    found = CliRunner().invoke(app, ["report", "--svg", "--latex"])
    assert "choose one of --html" in str(found.exception) + found.output
