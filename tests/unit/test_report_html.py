"""The page as a file: self-contained, escaped, not too large."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from tests.unit import report_fixture
from wulf.page.page import html
from wulf.tools.compare import page as compare
from wulf.tools.measure import page as run

LARGEST = 3_000_000
#: Element → attribute that makes a browser fetch something.
FETCHING = {"src", "srcset", "poster", "data", "background"}


class Page(HTMLParser):
    """Collects what the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.fetches: list[str] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.elements: list[str] = []
        self.handlers: list[str] = []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name in FETCHING or (name == "href" and not (value or "").startswith("#")):
                self.fetches.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.handlers.append(name)
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[-1] += data

    @property
    def payload(self) -> dict:
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def large() -> str:
    return html(run.build(*report_fixture.make(pairs=6)))


@pytest.fixture(scope="module")
def hostile() -> str:
    return html(run.build(*report_fixture.make(ops=("mpi_pingpong",), pairs=6, sizes=8, hostile=True)))


def test_a_page_of_60_sizes_and_6_pairs_is_small_enough(large: str) -> None:
    assert len(large.encode()) <= LARGEST


def test_the_page_fetches_nothing_and_names_its_scripts(large: str) -> None:
    page = Page(large)
    assert page.fetches == [] and page.handlers == []
    assert "link" not in page.elements and "iframe" not in page.elements
    assert "@import" not in large and "default-src &#39;none&#39;" in large


def test_ids_are_unique_and_headings_leave_no_level_out(large: str) -> None:
    page = Page(large)
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    steps = [after - before for before, after in zip(page.headings, page.headings[1:], strict=False)]
    assert max(steps) == 1


def test_every_chart_has_a_summary_and_named_buttons(large: str) -> None:
    charts = len(Page(large).payload["figures"])
    assert (
        charts
        == large.count('role="img"')
        == large.count('data-save="svg"')
        == large.count('data-save="csv"')
    )
    assert 'role="img" aria-label=""' not in large
    assert large.count('aria-label="Download chart') == charts


def test_hostile_names_stay_text(hostile: str) -> None:
    page = Page(hostile)
    assert len(page.scripts) == 3 and "img" not in page.elements
    assert "alert(1)" not in "".join(page.scripts[1:])
    assert page.handlers == [] and "\x1b" not in hostile
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile
    # Text of a node is never run as a template.
    assert "{{7*7}}" in hostile
    pairs = page.payload["figures"]["op0-latency"]["variants"][0]["datasets"]["main"]["pair"]
    assert "node01 → <script>alert(1)</script>" in pairs


def test_an_empty_run_is_a_page_without_charts() -> None:
    text = html(run.build(*report_fixture.empty()))
    assert Page(text).payload["figures"] == {}
    assert "Nothing was measured" in text and "no node was asked for its facts" in text


def test_notices_of_what_is_embedded_are_in_the_page(large: str) -> None:
    assert "University of Washington Interactive Data Lab" in large
    assert "Mike Bostock" in large


def test_a_comparison_is_a_page_with_a_chart_per_pair() -> None:
    text = html(compare.build(report_fixture.comparison(hostile=True)))
    page = Page(text)
    assert list(page.payload["figures"]) == ["c0", "c1"]
    assert page.payload["figures"]["c0"]["variants"][0]["datasets"]["limits"] == {
        "low": [0.98],
        "high": [1.02],
        "one": [1.0],
    }
    assert "img" not in page.elements and page.fetches == []


def test_rendering_is_reproducible() -> None:
    assert html(run.build(*report_fixture.empty())) == html(run.build(*report_fixture.empty()))
