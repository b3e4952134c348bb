"""The tuning page in a browser: offline, on every kind of screen, with nothing over anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.browse import LOCAL
from tests.browser.conftest import Open
from tests.browser.layout import at_widths, sideways, troubles
from tests.tiers import thorough
from tests.unit import tuning_fixture
from wulf.page.page import html
from wulf.tools.tune.page import build

pytestmark = pytest.mark.browser

STATES = ("make", "many", "nothing", "interrupted", "failing", "application", "empty", "hostile")
#: Pairs of words in one drawing that cover each other by more than two pixels both ways.
OVERLAPS = """() => [...document.querySelectorAll(".plot svg")].flatMap((svg) => {
  const words = [...svg.querySelectorAll("text")]
    .filter((text) => text.textContent.trim() && getComputedStyle(text).opacity !== "0")
    .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }))
    .filter(({ box }) => box.width && box.height);
  const apart = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) <= 2
    || Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) <= 2;
  return words.flatMap((a, i) => words.slice(i + 1)
    .filter((b) => !apart(a.box, b.box)).map((b) => `${a.text} | ${b.text}`));
})"""
#: Words of a drawing that stand outside of it.
CUT = """() => [...document.querySelectorAll(".plot svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1))
    .map(([text]) => text);
})"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tuning")
    for name in STATES:
        (folder / f"{name}.html").write_text(html(build(getattr(tuning_fixture, name)())), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in STATES}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize(("width", "scheme"), [thorough(1200, "light"), (360, "dark")])
def test_no_error_no_request_no_overflow(look: Open, name: str, width: int, scheme: str) -> None:
    opened = look(name, width, scheme)
    opened.shot(f"tuning-{name}-{width}-{scheme}")
    assert opened.errors == []
    assert opened.requests and all(url.startswith(LOCAL) for url in opened.requests)
    assert opened.overflow() <= 0


@pytest.mark.parametrize(
    ("name", "scheme"), [("make", "dark"), thorough("many", "light"), thorough("application", "dark")]
)
def test_every_width_can_be_read(visit: Open, name: str, scheme: str) -> None:
    opened = visit(name, scheme=scheme)
    for width in at_widths(opened):
        opened.shot(f"tuning-{name}-{width}-{scheme}")
        assert opened.overflow() <= 0, width
        assert troubles(opened) == [], width


@pytest.mark.parametrize("name", ["make", thorough("many")])
def test_all_columns_of_the_values_tried_are_seen(visit: Open, name: str) -> None:
    opened = visit(name)
    for width in at_widths(opened, (1280, 1920)):
        assert sideways(opened, ".effects") <= 1, width


@pytest.mark.parametrize("width", [360, thorough(800), thorough(1200)])
@pytest.mark.parametrize("name", ["make", thorough("application")])
def test_no_words_stand_over_others_or_are_cut(look: Open, name: str, width: int) -> None:
    opened = look(name, width, "dark")
    assert opened.page.evaluate(OVERLAPS) == []
    assert opened.page.evaluate(CUT) == []


def test_the_first_screen_says_what_to_do(look: Open) -> None:
    opened = look("make")
    title = opened.page.locator("h1")
    assert "3 settings kept" in title.inner_text()
    first = opened.page.locator(".changes > li").first.bounding_box()
    assert first is not None and first["y"] + first["height"] < 900


def test_points_stand_where_their_ratios_are(look: Open) -> None:
    opened = look("make")
    points = opened.page.evaluate("""() => {
      const view = wulf.views["effects"];
      const scale = view.scale("x");
      return view.data("main").filter((row) => row.ratio).map((row) => [row.ratio, scale(row.ratio), scale(1)]);
    }""")
    assert len(points) == 8
    for ratio, place, one in points:
        assert (place < one) == (ratio < 1)
    rows = {row["label"]: row for row in opened.data("effects")}
    judged = {effect.knob: effect for effect in tuning_fixture.make().judged}
    assert rows["nic.gro = off"]["low"] == pytest.approx(judged["nic.gro"].ratio.low, rel=1e-6)


def test_dark_screens_get_dark_charts(look: Open) -> None:
    opened = look("make", 360, "dark")
    backgrounds = opened.page.evaluate("Object.values(wulf.views).map((view) => view.background())")
    assert set(backgrounds) == {"#171b1f"}


def test_paper_gets_light_charts_and_no_buttons(visit: Open) -> None:
    opened = visit("make", scheme="dark")
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.page.wait_for_timeout(800)
    opened.shot("tuning-make-print")
    assert opened.page.locator("button:visible").count() == 0
    backgrounds = opened.page.evaluate("Object.values(wulf.views).map((view) => view.background())")
    assert set(backgrounds) == {"#ffffff"}
    assert opened.errors == []


def test_every_drawing_says_in_words_what_it_shows(look: Open) -> None:
    opened = look("make")
    said = opened.page.evaluate("[...document.querySelectorAll('.plot')].map((p) => p.ariaLabel)")
    assert len(said) == 10
    assert all(len(words) > 40 for words in said)


def test_hostile_texts_stay_text(look: Open) -> None:
    opened = look("hostile", 360, "dark")
    assert opened.errors == []
    assert opened.page.locator("img").count() == 0
