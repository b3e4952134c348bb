"""The page in a browser: it draws the numbers of the analysis, offline, on every kind of screen."""

from __future__ import annotations

import csv
import io
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.browser.browse import LOCAL, Opened
from tests.browser.conftest import Open
from tests.browser.layout import at_widths, troubles
from tests.tiers import thorough
from tests.unit import report_fixture
from wulf.base.records import CellEstimate
from wulf.page.page import html
from wulf.tools.compare import page as compare
from wulf.tools.measure import page as run

pytestmark = pytest.mark.browser

PAGES = ("large", "hostile", "empty", "comparison")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of a large run, a hostile one, an empty one and a comparison."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "large": html(run.build(*report_fixture.make(), report_fixture.audit())),
        "hostile": html(run.build(*report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=10, hostile=True))),
        "empty": html(run.build(*report_fixture.empty())),
        "comparison": html(compare.build(report_fixture.comparison(hostile=True))),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def cells(op: str) -> dict[tuple[str, int], CellEstimate]:
    *_, analysis = report_fixture.make()
    return {
        (" → ".join(cell.cell.place), cell.cell.size_bytes): cell
        for cell in analysis.cells
        if cell.cell.op == op
    }


def download(opened: Opened, chart: str, kind: str) -> str:
    with opened.page.expect_download() as waiting:
        opened.page.click(f"#{chart} button[data-save={kind}]")
    assert waiting.value.suggested_filename.endswith(f".{kind}")
    return Path(waiting.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), thorough(1200, "dark"), thorough(390, "light")]
)
def test_no_error_no_request_no_overflow(look: Open, name: str, width: int, scheme: str) -> None:
    opened = look(name, width, scheme)
    opened.shot(f"report-{name}-{width}-{scheme}")
    assert opened.errors == []
    assert opened.requests and all(url.startswith(LOCAL) for url in opened.requests)
    assert opened.overflow() <= 0


@pytest.mark.parametrize(
    ("name", "scheme"), [thorough("large", "light"), ("hostile", "dark"), thorough("comparison", "dark")]
)
def test_every_width_can_be_read(visit: Open, name: str, scheme: str) -> None:
    opened = visit(name, scheme=scheme)
    for width in at_widths(opened):
        opened.shot(f"report-{name}-{width}-{scheme}")
        assert opened.overflow() <= 0, width
        assert troubles(opened) == [], width


def test_the_charts_hold_the_numbers_of_the_analysis(look: Open) -> None:
    opened = look("large")
    for index, op in enumerate(report_fixture.OPERATIONS):
        expected = cells(op)
        rows = opened.data(f"op{index}-latency")
        assert len(rows) == len(expected)
        for row in rows:
            cell = expected[row["pair"], row["size_bytes"]]
            assert row["time_s"] == pytest.approx(cell.time.value, rel=1e-6)
            assert row["low_s"] == pytest.approx(cell.time.low, rel=1e-6)
            assert row["high_s"] == pytest.approx(cell.time.high, rel=1e-6)


def test_points_stand_where_their_values_are(look: Open) -> None:
    """The drawing itself: height of the points against the logarithm of the time."""
    opened = look("large")
    points = opened.page.evaluate("""() => {
      const view = wulf.views["op0-latency"];
      const scale = view.scale("y");
      return view.data("main").map((row) => [row.time_s, scale(row.time_s)]);
    }""")
    (time0, y0), (time1, y1) = min(points), max(points)
    slope = (y1 - y0) / math.log(time1 / time0)
    assert slope < -20
    for time, y in points:
        assert y == pytest.approx(y0 + slope * math.log(time / time0), abs=0.5)


def test_choosing_a_pair_shows_its_data_and_its_table(visit: Open) -> None:
    opened = visit("large")
    opened.page.select_option("select[data-operation=op0]", "2")
    opened.settle()
    opened.page.wait_for_timeout(300)
    expected = cells("mpi_pingpong")
    rows = opened.data("op0-box")
    assert len(rows) == 60
    for row in rows:
        cell = expected["node01 → node02", row["size_bytes"]]
        assert row["p50_s"] == pytest.approx(cell.quantiles_s["p50"], rel=1e-6)
        assert row["max_s"] == pytest.approx(cell.quantiles_s["max"], rel=1e-6)
    captions = opened.page.locator("#op0 .pair-detail:visible caption").all_inner_texts()
    assert captions and all("node01 → node02" in caption for caption in captions)
    assert "node01 → node02" in (opened.page.get_attribute("#op0-box .plot", "aria-label") or "")


def test_choosing_an_operation_shows_only_it(visit: Open) -> None:
    opened = visit("large")
    opened.page.check("input[value=op2]", force=True)
    assert opened.page.locator("section.operation:visible h2").all_inner_texts()[0].startswith("udp_rr")
    assert opened.page.locator("section.operation:visible").count() == 1
    assert opened.page.locator("#op2-latency svg").count() == 1


def test_csv_has_the_numbers(look: Open) -> None:
    rows = list(csv.DictReader(io.StringIO(download(look("large"), "op0-latency", "csv"))))
    expected = cells("mpi_pingpong")
    assert len(rows) == len(expected)
    for row in rows:
        cell = expected[row["pair"], int(row["size_bytes"])]
        assert float(row["time_s"]) == pytest.approx(cell.time.value, rel=1e-6)
        assert int(row["launches"]) == cell.time.n


@pytest.mark.parametrize("scheme", [thorough("light"), "dark"])
def test_svg_is_a_drawing_on_white_paper(look: Open, scheme: str) -> None:
    root = ET.fromstring(download(look("large", scheme=scheme), "op0-latency", "svg"))
    assert root.tag == f"{SVG}svg"
    words = " ".join(text for text in root.itertext())
    assert "half round trip" in words and "64 KiB" in words and "node02 → node04" in words
    marks = [path for path in root.iter(f"{SVG}path") if path.get("aria-roledescription") == "point"]
    assert len(marks) == 180
    assert any(rect.get("fill") == "#ffffff" for rect in root.iter(f"{SVG}rect"))


def test_dark_screens_get_dark_charts_and_the_button_turns_them(visit: Open) -> None:
    opened = visit("large", scheme="dark")
    background = "() => wulf.views['op0-latency'].background()"
    assert opened.page.evaluate(background) == "#171b1f"
    opened.page.click("#theme")
    opened.page.wait_for_timeout(500)
    assert opened.page.evaluate(background) == "#ffffff"
    assert opened.page.inner_text("#theme") == "Dark"


def test_print_shows_all_operations_and_no_buttons(visit: Open) -> None:
    opened = visit("large", scheme="dark")
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.page.wait_for_timeout(800)
    opened.shot("report-large-print")
    assert opened.page.locator("section.operation:visible").count() == 4
    assert opened.page.locator("button:visible").count() == 0
    backgrounds = opened.page.evaluate("Object.values(wulf.views).map((view) => view.background())")
    assert set(backgrounds) == {"#ffffff"}
    assert opened.errors == []


def test_tab_reaches_every_control(visit: Open) -> None:
    opened = visit("large")
    wanted = opened.page.evaluate("""() => [...document.querySelectorAll("button, select, summary")]
      .filter((element) => element.checkVisibility() && !element.disabled)
      .map((element) => (element.dataset.mark = String(Math.random())))""")
    reached = set()
    # A group of radio buttons is one stop, and so is each region that scrolls.
    for _ in range(len(wanted) + 40):
        opened.page.keyboard.press("Tab")
        reached.add(
            opened.page.evaluate("document.activeElement.dataset.mark || document.activeElement.name")
        )
    assert set(wanted) <= reached
    assert "operation" in reached


def test_every_control_has_a_name(look: Open) -> None:
    opened = look("large")
    unnamed = opened.page.evaluate("""() => [...document.querySelectorAll("button, select, input")]
      .filter((e) => !(e.ariaLabel || e.innerText || e.labels?.[0]?.innerText))
      .map((e) => e.outerHTML)""")
    assert unnamed == []


def test_every_drawing_says_in_words_what_it_shows(look: Open) -> None:
    opened = look("large")
    pairs = opened.page.evaluate("""() => Object.entries(wulf.payload.figures).map(([id, figure]) =>
      [document.querySelector(`#${id} .plot`).getAttribute("aria-label"), figure.variants[0].summary])""")
    assert len(pairs) >= 20
    assert all(said == meant and len(meant) > 40 for said, meant in pairs)


def test_hostile_strings_stay_text(look: Open) -> None:
    opened = look("hostile")
    assert opened.errors == []
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("td", has_text="onerror=alert(2)").count() >= 1
    assert "<script>alert(1)</script>" in opened.page.inner_text("table >> nth=0")


def test_a_comparison_draws_ratio_and_interval(look: Open) -> None:
    opened = look("comparison")
    comparison = report_fixture.comparison()
    expected = {c.size_bytes: c for c in comparison.cells if c.place == report_fixture.PAIRS[0]}
    rows = opened.data("c0")
    assert len(rows) == len(expected) == 24
    for row in rows:
        ratio = expected[row["size_bytes"]].ratio
        assert (row["ratio"], row["low"], row["high"]) == pytest.approx(
            (ratio.value, ratio.low, ratio.high), rel=1e-6
        )
